"""A record of a capture as the frame it is: command, ids, topic, error; broken ones with what is wrong with them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from pulsarium.capture.file import Record
from pulsarium.capture.lint.members import Bounded
from pulsarium.proto.batch import unpack
from pulsarium.proto.commands import COMMANDS, CommandSpec, Direction, parse
from pulsarium.proto.compression import decompress
from pulsarium.proto.entry import parse_metadata, payload_of
from pulsarium.proto.errors import BatchError, CommandError, CompressionError, EntryError
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, MessageMetadata, ServerError
from pulsarium.proto.text import text_of

_IDS = ("request_id", "producer_id", "consumer_id", "sequence_id")
_ERRORS = ("error", "error_code")
_TEXTS = ("message", "error_message")
_MOST_TOPICS = 50_000
_LONGEST_NAME = 200  # the expression takes the square of it
_CLIENT = re.compile(r"(.*?)[\s_-]*v?(\d+(?:\.\d+)+.*)")


class Names(NamedTuple):
    """Which fields of a command's body say what; empty: it has none."""

    ids: tuple[str, ...]
    topic: str
    error: str
    text: str


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a connection.

    number: of the record in its connection, from 0 on.
    broken: why it cannot be read; then `spec` and what follows it are None, or empty.
    topic: named by the command, or by what opened the producer or consumer, or by the request that is answered.
    entry: what follows the command; `whole` says whether all of it was kept.
    error: the name of Pulsar's error in an answer.
    """

    number: int
    record: Record
    broken: str | None
    spec: CommandSpec | None = None
    body: Any = None
    request_id: int | None = None
    producer_id: int | None = None
    consumer_id: int | None = None
    sequence_id: int | None = None
    topic: str | None = None
    error: str | None = None
    error_message: str | None = None
    entry: bytes = b""
    entry_size: int = 0

    @property
    def sender(self) -> Direction:
        return self.record.sender

    @property
    def name(self) -> str:
        """Of the command."""
        return "" if self.spec is None else self.spec.name

    @property
    def faulted(self) -> bool:
        """Whether a fault of the lab did something to it: then it is not as who sent it meant it."""
        return bool(self.record.note)

    @property
    def whole(self) -> bool:
        return len(self.entry) == self.entry_size


class Conversation:
    """What has to be known of a connection to understand its next frame. Feed it all frames, in order."""

    def __init__(self) -> None:
        self.client = ""
        self.client_version = ""
        self.asked_version: int | None = None
        """Of CONNECT."""
        self.protocol_version: int | None = None
        """What both sides speak, once CONNECTED has come."""
        self.max_message_size: int | None = None
        self.client_flags: frozenset[str] = frozenset()
        self.broker_flags: frozenset[str] = frozenset()
        self.frames = 0
        """So far."""
        self._topics: Bounded[tuple[str, int], str] = Bounded(
            _MOST_TOPICS
        )  # of ("producer_id", id), ("request_id", id), ...

    def feed(self, record: Record) -> Frame:
        """The frame of a record of kind FRAME."""
        number, self.frames = self.frames, self.frames + 1
        broken, command, entry = _cut(record)
        if broken is not None:
            return Frame(number, record, broken)
        message = BaseCommand()
        try:
            spec = parse(command, message, entry)
        except CommandError as refused:
            return Frame(number, record, str(refused))
        body = getattr(message, spec.field)
        self._greet(spec, body)
        names = _NAMES[spec.type]
        ids = {name: int(getattr(body, name)) for name in names.ids if body.HasField(name)}
        topic = self._topic(spec, body, names, ids)
        error = names.error if names.error and body.HasField(names.error) else None
        text = names.text if error and body.HasField(names.text) else None
        return Frame(
            number,
            record,
            None,
            spec,
            body,
            topic=topic,
            error=ServerError.Name(getattr(body, error)) if error else None,
            error_message=text_of(getattr(body, text)) if text else None,
            entry=entry,
            entry_size=record.size - 8 - len(command),
            **ids,
        )

    def _greet(self, spec: CommandSpec, body: Any) -> None:
        if spec.type == BaseCommand.CONNECT:
            self.client, self.client_version = client_of(text_of(body.client_version))
            self.asked_version = body.protocol_version
            self.client_flags = _flags(body)
        elif spec.type == BaseCommand.CONNECTED:
            self.protocol_version = min(self.asked_version or 0, body.protocol_version)
            self.max_message_size = body.max_message_size if body.HasField("max_message_size") else None
            self.broker_flags = _flags(body)

    def _topic(self, spec: CommandSpec, body: Any, names: Names, ids: dict[str, int]) -> str | None:
        topics = self._topics
        if names.topic:
            topic: str | None = text_of(getattr(body, names.topic))
        else:
            topic = next((topics.get(key) for key in ids.items() if key[0] != "request_id" and key in topics), None)
        if "request_id" in ids:
            key = ("request_id", ids["request_id"])
            if spec.reply is not None and topic is not None:
                topics[key] = topic
            elif spec.direction is Direction.BROKER:
                # A PRODUCER that waits is answered once more when its turn has come.
                waits = spec.type == BaseCommand.PRODUCER_SUCCESS and not body.producer_ready
                topic = topic or (topics.get(key) if waits else topics.pop(key))
        if topic is not None and spec.type in (BaseCommand.PRODUCER, BaseCommand.SUBSCRIBE):
            for name, number in ids.items():
                if name != "request_id":
                    topics[name, number] = topic
        return topic


def client_of(text: str) -> tuple[str, str]:
    """`client_version` of CONNECT as name and version: ("Pulsar-Java", "4.0.1") of `Pulsar-Java-v4.0.1`."""
    found = _CLIENT.fullmatch(text[:_LONGEST_NAME])
    return (found[1], found[2]) if found else (text, "")


def _cut(record: Record) -> tuple[str | None, bytes, bytes]:
    """What is wrong with the lengths of a frame, or None; its command, what is kept of its entry."""
    data = record.data
    if record.size < 8 or len(data) < 8:
        return f"a frame of {record.size} bytes", b"", b""
    total, size = int.from_bytes(data[:4], "big"), int.from_bytes(data[4:8], "big")
    if total + 4 != record.size:
        return f"a frame that claims {total} bytes behind its length, and has {record.size - 4}", b"", b""
    if size + 4 > total:
        return f"a command of {size} bytes in a frame of {total}", b"", b""
    return None, data[8 : 8 + size], data[8 + size :]


def _flags(body: Any) -> frozenset[str]:
    return frozenset(described.name for described, value in body.feature_flags.ListFields() if value)


def _names(body: Any) -> Names:
    fields = {name for name, described in body.fields_by_name.items() if not described.is_repeated}

    def first(names: tuple[str, ...]) -> str:
        return next((name for name in names if name in fields), "")

    error = first(_ERRORS)
    return Names(tuple(name for name in _IDS if name in fields), first(("topic",)), error, error and first(_TEXTS))


def _bodies() -> dict[int, Names]:
    fields = BaseCommand.DESCRIPTOR.fields_by_number
    return {number: _names(fields[number].message_type) for number in COMMANDS}


_NAMES = _bodies()


_MOST_OPENED = 16 << 20
"""Bytes of a decompressed payload; larger ones are not looked into."""


class Sent:
    """An entry; parts that cannot be read are absent, and `wrong_*` says why."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame

    @cached_property
    def metadata(self) -> MessageMetadata | None:
        try:
            return parse_metadata(self.frame.entry) if self.frame.whole else None
        except EntryError:
            return None

    @cached_property
    def payload(self) -> bytes:
        """As it was sent."""
        return b"" if self.metadata is None else payload_of(self.frame.entry)

    @property
    def chunked(self) -> bool:
        metadata = self.metadata
        return metadata is not None and metadata.num_chunks_from_msg > 1

    @property
    def batched(self) -> bool:
        return self.metadata is not None and self.metadata.HasField("num_messages_in_batch")

    @cached_property
    def _opened(self) -> bytes | CompressionError | None:
        """The payload as the application gave it; None where nobody can say: encrypted, a part of a message, huge."""
        metadata = self.metadata
        if metadata is None or metadata.encryption_keys or self.chunked or metadata.uncompressed_size > _MOST_OPENED:
            return None
        try:
            return decompress(metadata.compression, self.payload, metadata.uncompressed_size)
        except CompressionError as error:
            return error

    @property
    def wrong_compression(self) -> str:
        opened = self._opened
        return str(opened) if isinstance(opened, CompressionError) else ""

    @property
    def plain_payload(self) -> bytes | None:
        """Decompressed, where it can be."""
        return self._opened if isinstance(self._opened, bytes) else None

    @cached_property
    def _messages(self) -> list[tuple[Any, bytes]] | BatchError:
        if self.metadata is None or not self.batched or self.plain_payload is None:
            return []
        try:
            return unpack(self.plain_payload, self.metadata.num_messages_in_batch)
        except BatchError as error:
            return error

    @property
    def wrong_batch(self) -> str:
        return str(self._messages) if isinstance(self._messages, BatchError) else ""

    @property
    def messages(self) -> list[tuple[Any, bytes]]:
        """Of a batch that can be read: their metadata and payloads. A message alone: the entry's own."""
        if self.metadata is None or isinstance(self._messages, BatchError):
            return []
        if self.batched or self.plain_payload is None:
            return self._messages
        return [(self.metadata, self.plain_payload)]
