"""Read a seed file, and check all of it before anything is created."""

from __future__ import annotations

import base64
import binascii
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from json.decoder import scanstring  # type: ignore[attr-defined]
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from typing import Any, Final

from pulsarium.broker.jackson.errors import JsonError
from pulsarium.broker.model.namespace.values import NAME, read_policy
from pulsarium.broker.model.schema.data import TYPES, SchemaData
from pulsarium.broker.model.topic.joining import OWN_CURSORS, RESERVED_NAME
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import NamespaceName, TopicName
from pulsarium.rest.policies import NAMESPACE_DEFAULTS

Json = dict[str, Any]
PAYLOADS: Final = ("text", "json", "base64")
MOST: Final = 2**53  # every JSON library reads numbers up to this one exactly
KINDS: Final = {name.upper(): number for name, number in pb.Schema.Type.items()}


class SeedError(ValueError):
    """A seed that cannot be read. The text begins with the place, such as topics[2].messages[0].key."""


@dataclass(frozen=True)
class SeedMessage:
    """A message. Times are in milliseconds since the epoch; `deliver_after_ms` counts from the publish time."""

    payload: bytes
    key: str | None
    properties: Mapping[str, str]
    event_time: int | None
    deliver_at: int | None
    deliver_after_ms: int | None
    partition: int


@dataclass(frozen=True)
class SeedTopic:
    """A topic of a seed file."""

    name: TopicName
    partitions: int
    properties: Mapping[str, str]
    schema: SchemaData | None
    subscriptions: Mapping[str, bool]  # name -> whether the subscription begins with the first message
    messages: Sequence[SeedMessage]


@dataclass(frozen=True)
class Description:
    """The contents of a seed file."""

    tenants: Mapping[str, Json] = field(default_factory=dict)
    namespaces: Mapping[str, Json] = field(default_factory=dict)
    topics: Sequence[SeedTopic] = ()


class PatientDecoder(json.JSONDecoder):
    """Decode JSON in Python steps, so that other threads run meanwhile. The decoder in C would block them all.

    Raise `ValueError` for a text with half a surrogate pair, which UTF-8 cannot encode.
    """

    def __init__(self) -> None:
        super().__init__(object_pairs_hook=_table)
        self.parse_string = _sound_text
        self.scan_once = py_make_scanner(self)


def _sound_text(text: str, end: int, strict: bool = True) -> tuple[str, int]:
    found, end = scanstring(text, end, strict)
    found.encode()
    return found, end


def _table(pairs: list[tuple[str, Any]]) -> Json:
    for name, _ in pairs:
        name.encode()
    return dict(pairs)


def read(text: str) -> Description:
    """Read TOML, or JSON when the text begins with a brace. Raise `SeedError`.

    Run this in a thread: a text takes 0.1 s a megabyte.
    """
    try:
        found = PatientDecoder().decode(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        why = str(error).partition("; use sys.")[0]  # the rest of Python's text about huge numbers is for programmers
        raise SeedError(f"neither TOML nor JSON: {why}") from None
    part = SeedTable("", found, ("tenants", "namespaces", "topics"))
    tenants = {
        _tenant_name(each): _tenant(each) for each in part.tables("tenants", ("name", "adminRoles", "allowedClusters"))
    }
    spaces = {_namespace(each): _policies(each) for each in part.tables("namespaces", ("name", "policies"))}
    keys = ("name", "partitions", "properties", "schema", "subscriptions", "messages")
    topics: dict[TopicName, SeedTopic] = {}
    for each in part.tables("topics", keys):
        topic = _topic(each)
        if topic.name in topics:
            raise each.wrong("name", "the topic is described twice")
        topics[topic.name] = topic
    return Description(tenants, spaces, list(topics.values()))


class SeedTable:
    """A table of the file, and its place."""

    def __init__(self, place: str, value: Any, known: Sequence[str]) -> None:
        self.place = place
        if not isinstance(value, dict):
            raise SeedError(f"{place or 'the file'}: a table, with {', '.join(known)}")
        for name in value:
            if name not in known:
                raise self.wrong(name, f"there are {', '.join(known)}")
        self._value = value

    def wrong(self, name: str, why: str) -> SeedError:
        return SeedError(f"{self.at(name)}: {why}")

    def at(self, name: str) -> str:
        return f"{self.place}.{name}" if self.place else name

    def has(self, name: str) -> bool:
        return name in self._value

    def value(self, name: str) -> Any:
        return self._value.get(name)

    def get(self, name: str, kind: type, words: str, default: Any) -> Any:
        value = self._value.get(name, default)
        if type(value) is not kind and name in self._value:
            raise self.wrong(name, words)
        return value

    def text(self, name: str) -> str:
        found: str = self.get(name, str, "a text", "")
        if not found:
            raise self.wrong(name, "a text is required")
        return found

    def number(self, name: str, default: int) -> int:
        found: int = self.get(name, int, "a number, 0 or more", default)
        if not 0 <= found <= MOST:
            raise self.wrong(name, f"a number, 0 to {MOST}")
        return found

    def texts(self, name: str) -> list[str]:
        found: list[str] = self.get(name, list, "a list of texts", [])
        if not all(isinstance(each, str) for each in found):
            raise self.wrong(name, "a list of texts")
        return found

    def pairs(self, name: str) -> dict[str, str]:
        found: dict[str, str] = self.get(name, dict, "a table of texts", {})
        if not all(isinstance(each, str) for each in found.values()):
            raise self.wrong(name, "a table of texts")
        return found

    def tables(self, name: str, known: Sequence[str], of: Callable[[Any], Any] = lambda each: each) -> list[SeedTable]:
        found: list[Any] = self.get(name, list, "a list of tables", [])
        return [SeedTable(f"{self.at(name)}[{index}]", of(each), known) for index, each in enumerate(found)]

    def time_ms(self, name: str) -> int | None:
        value = self._value.get(name)
        if value is None or (type(value) is int and 0 <= value <= MOST):
            return value
        try:
            moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        except (TypeError, ValueError):
            raise self.wrong(name, "milliseconds since the epoch, or a time such as 2030-01-01T00:00:00Z") from None
        if moment.tzinfo is None:
            raise self.wrong(name, "the time has no zone; write Z for UTC")
        time_ms = round(moment.timestamp() * 1000)
        if time_ms < 0:
            raise self.wrong(name, "the time is before 1970; a message cannot have that")
        return time_ms


def _tenant_name(part: SeedTable) -> str:
    name = part.text("name")
    if not NAME.fullmatch(name):
        raise part.wrong("name", "no name of a tenant")
    return name


def _tenant(part: SeedTable) -> Json:
    found: Json = {"adminRoles": part.texts("adminRoles")}
    if part.has("allowedClusters"):
        found["allowedClusters"] = part.texts("allowedClusters")
    return found


def _namespace(part: SeedTable) -> str:
    try:
        return str(NamespaceName.parse(part.text("name")))
    except InvalidTopicName as error:
        raise part.wrong("name", str(error)) from None


def _policies(part: SeedTable) -> Json:
    found: Json = part.get("policies", dict, "a table of policies, as REST shows them", {})
    read: Json = {}
    for name, value in found.items():
        if name not in NAMESPACE_DEFAULTS:
            raise part.wrong(
                f"policies.{name}", f"no policy of a namespace; there are {', '.join(sorted(NAMESPACE_DEFAULTS))}"
            )
        try:
            read[name] = read_policy(name, value)
        except JsonError as error:
            raise part.wrong(f"policies.{name}", str(error).partition("\n")[0]) from None
    return read


def _topic(part: SeedTable) -> SeedTopic:
    try:
        name = TopicName.parse(part.text("name"))
    except InvalidTopicName as error:
        raise part.wrong("name", str(error)) from None
    if not name.is_persistent:
        raise part.wrong("name", "a non-persistent topic exists only while clients use it; leave it out")
    if name.is_scalable or name.is_segment:
        raise part.wrong("name", "a seed has no scalable topics: use `pulsarium admin scalable-topics create`")
    if name.partition_index >= 0:
        raise part.wrong("name", f"a partition; describe {name.partitioned_name} with its partitions")
    partitions = part.number("partitions", 0)
    subscriptions = part.tables(
        "subscriptions", ("name", "position"), lambda each: {"name": each} if isinstance(each, str) else each
    )
    known = (*PAYLOADS, "key", "properties", "eventTime", "deliverAt", "deliverAfterMs", "partition")
    messages = part.tables("messages", known, lambda each: {"text": each} if isinstance(each, str) else each)
    return SeedTopic(
        name,
        partitions,
        part.pairs("properties"),
        _schema(part),
        {_subscription(each): _is_earliest(each) for each in subscriptions},
        [_message(each, partitions) for each in messages],
    )


def _subscription(part: SeedTable) -> str:
    name = part.text("name")
    if name in OWN_CURSORS:
        raise part.wrong("name", RESERVED_NAME)
    return name


def _is_earliest(part: SeedTable) -> bool:
    position = part.get("position", str, "earliest or latest", "earliest")
    if position not in ("earliest", "latest"):
        raise part.wrong("position", "earliest or latest")
    return bool(position == "earliest")


def _schema(part: SeedTable) -> SchemaData | None:
    given = part.get("schema", dict, "a table with type and schema", None)
    if given is None:
        return None
    inner = SeedTable(part.at("schema"), given, ("type", "schema", "properties"))
    kind = KINDS.get(inner.text("type").upper())
    if kind is None:
        raise inner.wrong("type", f"there are {', '.join(KINDS)}")
    text = given.get("schema", "")
    data = text if isinstance(text, str) else json.dumps(text)
    return SchemaData.of(TYPES[kind], data.encode(), inner.pairs("properties"))


def _message(part: SeedTable, partitions: int) -> SeedMessage:
    partition = part.number("partition", 0)
    if partition >= max(partitions, 1):
        raise part.wrong("partition", f"the topic has {partitions}")
    return SeedMessage(
        _payload(part),
        part.get("key", str, "a text", None),
        part.pairs("properties"),
        part.time_ms("eventTime"),
        part.time_ms("deliverAt"),
        part.number("deliverAfterMs", 0) or None,
        partition,
    )


def _payload(part: SeedTable) -> bytes:
    given = [name for name in PAYLOADS if part.has(name)]
    if len(given) > 1:
        raise part.wrong(given[1], "a message has one of text, json and base64")
    if part.has("json"):
        try:
            return json.dumps(part.value("json"), separators=(",", ":"), ensure_ascii=False).encode()
        except TypeError:
            raise part.wrong("json", "a value that JSON can express; write a TOML time as a text") from None
    if part.has("base64"):
        try:
            return base64.b64decode(part.get("base64", str, "a text", ""), validate=True)
        except (binascii.Error, ValueError) as error:
            raise part.wrong("base64", str(error)) from None
    found: str = part.get("text", str, "a text", "")
    return found.encode()
