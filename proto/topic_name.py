"""Names of topics and namespaces, by Pulsar's rules and with its texts for names it refuses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import quote_plus, unquote_plus

from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.text import text_of

PERSISTENT = "persistent"
NON_PERSISTENT = "non-persistent"

_PARTITION = "-partition-"
_MAX_PARTITION = 2**31 - 1
_CACHED = 1024  # characters

# Tenants and namespaces; a topic's own name may have any character.
_ENTITY = re.compile(r"[-=:.\w]*", re.ASCII)

# Java's idea of white space lacks these of Python's.
_NOT_BLANK_IN_JAVA = frozenset("\x85\xa0\u2007\u202f")

_V1 = (
    "V1 topic names (with cluster component) are no longer supported. "
    "Please use the V2 format: '<domain>://tenant/namespace/topic'. Got: "
)
_SHORT = "it should be in the format of <tenant>/<namespace>/<topic> or <topic>"


@dataclass(frozen=True, slots=True)
class NamespaceName:
    """`tenant/namespace`."""

    tenant: str
    namespace: str

    @staticmethod
    def parse(text: str | bytes) -> NamespaceName:
        """InvalidTopicName for a text that names no namespace; slashes at its end do no harm."""
        text = text_of(text)
        return _parse_namespace(text) if len(text) <= _CACHED else _parse_namespace.__wrapped__(text)

    def topic(self, local_name: str, domain: str = PERSISTENT) -> TopicName:
        """A topic in here."""
        return TopicName.parse(f"{domain}://{self}/{local_name}")

    def __str__(self) -> str:
        return f"{self.tenant}/{self.namespace}"


@dataclass(frozen=True, slots=True)
class TopicName:
    """`domain://tenant/namespace/local_name`; of a topic, a partitioned topic, or one of its partitions."""

    domain: str
    tenant: str
    namespace: str
    local_name: str

    @staticmethod
    def parse(text: str | bytes) -> TopicName:
        """A full name, or a short one: `topic` (in public/default) or `tenant/namespace/topic`, both persistent.

        InvalidTopicName for any other text. Bytes are what protobuf hands over for a string that is not UTF-8; they
        are read with replacement characters, as Pulsar reads them.
        """
        text = text_of(text)
        # Monstrous names are a stranger's: they are not worth memory.
        return _parse_topic(text) if len(text) <= _CACHED else _parse_topic.__wrapped__(text)

    @staticmethod
    def from_managed_ledger(path: str) -> TopicName:
        """The topic of a `managed_ledger_path`."""
        tenant, namespace, domain, encoded = path.split("/")
        return TopicName(domain, tenant, namespace, unquote_plus(encoded))

    @property
    def is_persistent(self) -> bool:
        return self.domain == PERSISTENT

    @property
    def namespace_name(self) -> NamespaceName:
        return NamespaceName(self.tenant, self.namespace)

    @property
    def partition_index(self) -> int:
        """N if the name ends in `-partition-N`, written without sign or leading zeros; else -1."""
        _, suffix, number = self.local_name.rpartition(_PARTITION)
        if not suffix or not number.isdecimal() or len(number) > 10:
            return -1
        index = int(number)
        return index if index <= _MAX_PARTITION and len(str(index)) == len(number) else -1

    @property
    def is_partition(self) -> bool:
        return self.partition_index >= 0

    @property
    def partitioned_name(self) -> TopicName:
        """The topic this is a partition of, or itself. InvalidTopicName if nothing stands before `-partition-N`."""
        if self.partition_index < 0:
            return self
        name = TopicName(self.domain, self.tenant, self.namespace, self.local_name.rpartition(_PARTITION)[0])
        _check_local_name(name.local_name, str(name))
        return name

    def partition(self, index: int) -> TopicName:
        """Partition `index` of this topic; itself for -1 or if it is that partition."""
        if index == -1 or self.local_name.endswith(f"{_PARTITION}{index}"):
            return self
        return TopicName(self.domain, self.tenant, self.namespace, f"{self.local_name}{_PARTITION}{index}")

    @property
    def encoded_local_name(self) -> str:
        """The local name in a URL or a path, as Java's URLEncoder writes it."""
        # `~` and `*` are where the two languages disagree.
        return quote_plus(self.local_name, safe="*").replace("~", "%7E")

    @property
    def rest_path(self) -> str:
        """Under /admin/v2: `domain/tenant/namespace/topic`."""
        return f"{self.domain}/{self.tenant}/{self.namespace}/{self.encoded_local_name}"

    @property
    def managed_ledger_path(self) -> str:
        """The managed ledger's name in metadata: `tenant/namespace/domain/topic`."""
        return f"{self.tenant}/{self.namespace}/{self.domain}/{self.encoded_local_name}"

    @property
    def schema_name(self) -> str:
        """`tenant/namespace/topic`; partitions share the schema of their topic."""
        return f"{self.tenant}/{self.namespace}/{self.partitioned_name.encoded_local_name}"

    def __str__(self) -> str:
        return f"{self.domain}://{self.tenant}/{self.namespace}/{self.local_name}"


@lru_cache(maxsize=16384)
def _parse_topic(text: str) -> TopicName:
    head, mark, rest = text.partition("://")
    if not mark:
        domain = PERSISTENT
        parts = _split(text)
        if len(parts) == 1:
            parts = ["public", "default", text]
        if len(parts) != 3:
            raise InvalidTopicName(f"Invalid short topic name '{text}', {_SHORT}")
    else:
        domain = head.lower()
        parts = _split(rest, limit=4)
        if len(parts) == 4:
            raise InvalidTopicName(_V1 + text)
        if len(parts) != 3:
            raise InvalidTopicName(f"Invalid topic name {text}")
        if domain not in (PERSISTENT, NON_PERSISTENT):
            raise InvalidTopicName(f"Invalid topic domain: '{head}'")
    tenant, namespace, local_name = parts
    _check_local_name(local_name, text)
    _check_entity(tenant)
    _check_entity(namespace)
    return TopicName(domain, tenant, namespace, local_name)


@lru_cache(maxsize=4096)
def _parse_namespace(text: str) -> NamespaceName:
    if not text:
        raise InvalidTopicName("Invalid null namespace: ")
    parts = text.rstrip("/").split("/")
    if len(parts) != 2 or not all(part and _ENTITY.fullmatch(part) for part in parts):
        raise InvalidTopicName(
            "Invalid namespace format. expected <tenant>/<namespace> or <tenant>/<cluster>/<namespace> but got: " + text
        )
    return NamespaceName(*parts)


def _split(text: str, limit: int = 0) -> list[str]:
    """The parts between slashes, `limit` at most. Only the last may be empty, and not if the limit cut it off."""
    parts = text.split("/", limit - 1)
    if "" in parts[:-1] or (len(parts) == limit and not parts[-1]):
        raise InvalidTopicName(f"Invalid topic name {text}")
    return parts


def _check_local_name(local_name: str, text: str) -> None:
    if not local_name or (local_name.isspace() and _NOT_BLANK_IN_JAVA.isdisjoint(local_name)):
        raise InvalidTopicName(f"Invalid topic name: {text}. Topic local name must not be blank.")


def _check_entity(name: str) -> None:
    if not _ENTITY.fullmatch(name):
        raise InvalidTopicName(f"Invalid named entity: {name}")


CHANGE_EVENTS: Final = "__change_events"  # policies of topics
_SNAPSHOTS: Final = "__transaction_buffer_snapshot"
_OF_NAMESPACES: Final = frozenset({CHANGE_EVENTS, _SNAPSHOTS, f"{_SNAPSHOTS}_segments", f"{_SNAPSHOTS}_indexes"})
_PENDING_ACKS: Final = "__transaction_pending_ack"  # behind the name of a topic
_SYSTEM: Final = "pulsar/system"
_COORDINATORS: Final = "transaction_coordinator_assign"
_COORDINATOR_LOG: Final = "__transaction_log_"


def is_system_topic(name: TopicName) -> bool:
    """Whether it is one of them, or a partition of one."""
    local = name.partitioned_name.local_name
    if local in _OF_NAMESPACES or local.endswith(_PENDING_ACKS):
        return True
    in_system = str(name.namespace_name) == _SYSTEM
    return in_system and (local == _COORDINATORS or local.startswith(_COORDINATOR_LOG))


def is_change_events(name: TopicName) -> bool:
    """Whether it is that topic of its namespace."""
    return name.is_persistent and name.local_name == CHANGE_EVENTS


def change_events_of(namespace: str) -> TopicName:
    """The topic that has the changes of a namespace's topic policies."""
    return TopicName.parse(f"persistent://{namespace}/{CHANGE_EVENTS}")
