"""Names of topics and namespaces, with Pulsar's rules and error texts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote_plus, unquote_plus

from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.numbers import INT_MAX
from pulsarium.proto.text import text_of

PERSISTENT = "persistent"
NON_PERSISTENT = "non-persistent"
SCALABLE = "topic"  # a scalable topic (PIP-460)
SEGMENT = "segment"  # a segment of a scalable topic: an ordinary durable topic

PARTITION = "-partition-"
_CACHED = 1024  # characters
_MOST_PARTS = 3  # more than any name has

# Characters of tenants and namespaces. The local name of a topic may have any character.
_ENTITY = re.compile(r"[-=:.\w]*", re.ASCII)

# Parts of a segment's name, and the end of Java's text about wrong ones
_HEX = re.compile(r"[0-9a-fA-F]{1,7}")
_DECIMAL = re.compile(r"[0-9]{1,18}")
_RADIX = " under radix 16"

# Java's idea of white space lacks these of Python's.
_NOT_BLANK_IN_JAVA = frozenset("\x85\xa0\u2007\u202f")

_V1 = (
    "V1 topic names (with cluster component) are no longer supported. "
    "Please use the V2 format: '<domain>://tenant/namespace/topic'. Got: "
)
_SHORT = "it should be in the format of <tenant>/<namespace>/<topic> or <topic>"


@dataclass(frozen=True, slots=True)
class NamespaceName:
    """The name of a namespace: `tenant/namespace`."""

    tenant: str
    namespace: str

    @staticmethod
    def parse(text: str | bytes) -> NamespaceName:
        """Parse the name of a namespace.

        Raise `InvalidTopicName` when it is invalid. Slashes at its end are ignored.
        """
        text = text_of(text)
        return _parse_namespace(text) if len(text) <= _CACHED else _parse_namespace.__wrapped__(text)

    def topic(self, local_name: str, domain: str = PERSISTENT) -> TopicName:
        """Return the name of a topic in this namespace."""
        return TopicName.parse(f"{domain}://{self}/{local_name}")

    def __str__(self) -> str:
        return f"{self.tenant}/{self.namespace}"


@dataclass(frozen=True, slots=True)
class TopicName:
    """The name of a topic, a partitioned topic or a partition: `domain://tenant/namespace/local_name`."""

    domain: str
    tenant: str
    namespace: str
    local_name: str

    @staticmethod
    def parse(text: str | bytes) -> TopicName:
        """Parse a full name, or a short name of a persistent topic.

        Short names are `topic` (in public/default) and `tenant/namespace/topic`. Raise `InvalidTopicName` for any other
        text. protobuf returns bytes for a string that is not UTF-8; they are read with replacement characters, as in
        Pulsar.
        """
        text = text_of(text)
        # Very long names are not cached: anybody may send them.
        return _parse_topic(text) if len(text) <= _CACHED else _parse_topic.__wrapped__(text)

    @staticmethod
    def from_managed_ledger(path: str) -> TopicName:
        """Return the topic of a `managed_ledger_path`."""
        tenant, namespace, domain, encoded = path.split("/")
        return TopicName(domain, tenant, namespace, unquote_plus(encoded))

    @property
    def is_persistent(self) -> bool:
        """Return whether the topic stores its messages, as segments do too."""
        return self.domain != NON_PERSISTENT

    @property
    def is_scalable(self) -> bool:
        """Return whether the topic is scalable, and has segments."""
        return self.domain == SCALABLE

    @property
    def is_segment(self) -> bool:
        """Return whether the topic is a segment of a scalable topic."""
        return self.domain == SEGMENT

    @property
    def namespace_name(self) -> NamespaceName:
        """Return the namespace of the topic."""
        return NamespaceName(self.tenant, self.namespace)

    @property
    def partition_index(self) -> int:
        """Return N of a name that ends in `-partition-N` (no sign, no leading zeros), else -1."""
        _, suffix, number = self.local_name.rpartition(PARTITION)
        if not suffix or not number.isdecimal() or len(number) > 10:
            return -1
        index = int(number)
        return index if index <= INT_MAX and len(str(index)) == len(number) else -1

    @property
    def is_partition(self) -> bool:
        """Return whether the name is that of a partition."""
        return self.partition_index >= 0

    @property
    def partitioned_name(self) -> TopicName:
        """Return the partitioned topic of a partition, or the topic itself.

        Raise `InvalidTopicName` when nothing precedes `-partition-N`.
        """
        if self.partition_index < 0:
            return self
        name = TopicName(self.domain, self.tenant, self.namespace, self.local_name.rpartition(PARTITION)[0])
        _check_local_name(name.local_name, str(name))
        return name

    def partition(self, index: int) -> TopicName:
        """Return partition `index` of this topic. Return the topic itself for -1, or when it is that partition."""
        if index == -1 or self.local_name.endswith(f"{PARTITION}{index}"):
            return self
        return TopicName(self.domain, self.tenant, self.namespace, f"{self.local_name}{PARTITION}{index}")

    @property
    def encoded_local_name(self) -> str:
        """Return the local name for a URL or a path, encoded as Java's URLEncoder does."""
        return url_encoded(self.local_name)

    @property
    def rest_path(self) -> str:
        """Return the path below /admin/v2: `domain/tenant/namespace/topic`."""
        return f"{self.domain}/{self.tenant}/{self.namespace}/{self.encoded_local_name}"

    @property
    def managed_ledger_path(self) -> str:
        """Return the name of the managed ledger: `tenant/namespace/domain/topic`."""
        return f"{self.tenant}/{self.namespace}/{self.domain}/{self.encoded_local_name}"

    @property
    def schema_name(self) -> str:
        """Return the name of the schema, `tenant/namespace/topic`.

        Partitions share the schema of their topic, and segments that of their scalable topic.
        """
        if self.is_segment:
            return SegmentName.of(self).parent.schema_name
        return f"{self.tenant}/{self.namespace}/{self.partitioned_name.encoded_local_name}"

    def __str__(self) -> str:
        return f"{self.domain}://{self.tenant}/{self.namespace}/{self.local_name}"


@dataclass(frozen=True, slots=True)
class SegmentName:
    """The name of a segment: `segment://tenant/namespace/topic/start-end-id`, with hexadecimal hashes."""

    parent: TopicName
    start: int
    end: int
    id: int

    @staticmethod
    def of(name: TopicName) -> SegmentName:
        """Return the parts of a segment's name. Raise `InvalidTopicName` for a local name that is no segment's."""
        parent, slash, descriptor = name.local_name.rpartition("/")
        if not slash or not parent:
            raise InvalidTopicName(
                "Invalid segment topic name: local name must contain "
                f"'<parent-topic>/<hashStart>-<hashEnd>-<segmentId>'. Got: {name}"
            )
        return SegmentName.parse(TopicName(SCALABLE, name.tenant, name.namespace, parent), descriptor)

    @staticmethod
    def parse(parent: TopicName, descriptor: str) -> SegmentName:
        """Return the segment `start-end-id` of `parent`. Raise `InvalidTopicName` for another text."""
        parts = descriptor.split("-")
        if len(parts) != 3:
            raise InvalidTopicName(
                f"Invalid segment descriptor: expected '<hexStart>-<hexEnd>-<segmentId>', got: '{descriptor}'"
            )
        for text, digits, radix in zip(parts, (_HEX, _HEX, _DECIMAL), (_RADIX, _RADIX, ""), strict=True):
            if not digits.fullmatch(text):
                raise InvalidTopicName(f'For input string: "{text}"{radix}')
        start, end, segment_id = int(parts[0], 16), int(parts[1], 16), int(parts[2])
        if not 0 <= start <= end <= 0xFFFF:
            raise InvalidTopicName(f"Invalid hash range: start={start}, end={end}")
        return SegmentName(parent, start, end, segment_id)

    @property
    def descriptor(self) -> str:
        """Return the range and the id as the name of the segment has them."""
        return f"{self.start:04x}-{self.end:04x}-{self.id}"

    @property
    def topic(self) -> TopicName:
        """Return the segment as a topic."""
        parent = self.parent
        return TopicName(SEGMENT, parent.tenant, parent.namespace, f"{parent.local_name}/{self.descriptor}")


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
    elif head.lower() in (SCALABLE, SEGMENT):
        domain = head.lower()
        parts = _split(rest, limit=3)  # a local name may have slashes
        if len(parts) != 3:
            raise InvalidTopicName(f"Invalid topic name {text}")
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
    name = TopicName(domain, tenant, namespace, local_name)
    if domain == SEGMENT:
        SegmentName.of(name)  # raises for a local name that is no segment's
    return name


def url_encoded(name: str) -> str:
    """Return a name for a URL or a path, encoded as Java's URLEncoder does."""
    # Java and Python encode `~` and `*` differently.
    return quote_plus(name, safe="*").replace("~", "%7E")


@lru_cache(maxsize=4096)
def _parse_namespace(text: str) -> NamespaceName:
    if not text:
        raise InvalidTopicName("Invalid null namespace: ")
    parts = text.rstrip("/").split("/", _MOST_PARTS)
    if len(parts) != 2 or not all(part and _ENTITY.fullmatch(part) for part in parts):
        raise InvalidTopicName(
            "Invalid namespace format. expected <tenant>/<namespace> or <tenant>/<cluster>/<namespace> but got: " + text
        )
    return NamespaceName(*parts)


def _split(text: str, limit: int = 0) -> list[str]:
    """Split at slashes, into `limit` parts at most. Only the last part may be empty, and only below the limit."""
    if not limit and (text.startswith("/") or "//" in text):
        raise InvalidTopicName(f"Invalid topic name {text}")
    parts = text.split("/", limit - 1 if limit else _MOST_PARTS)  # a client's text may have millions of slashes
    if "" in parts[:-1] or (len(parts) == limit and not parts[-1]):
        raise InvalidTopicName(f"Invalid topic name {text}")
    return parts


def _check_local_name(local_name: str, text: str) -> None:
    if not local_name or (local_name.isspace() and _NOT_BLANK_IN_JAVA.isdisjoint(local_name)):
        raise InvalidTopicName(f"Invalid topic name: {text}. Topic local name must not be blank.")


def _check_entity(name: str) -> None:
    if not _ENTITY.fullmatch(name):
        raise InvalidTopicName(f"Invalid named entity: {name}")
