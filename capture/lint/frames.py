"""Parse records of a capture as frames: command, ids, topic and error, or the reason why a frame is broken."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from pulsarium.capture.file import CaptureRecord
from pulsarium.capture.lint.members import Bounded
from pulsarium.proto.batch import unpack
from pulsarium.proto.commands import COMMANDS, CommandSpec, Direction, parse
from pulsarium.proto.compression import decompress
from pulsarium.proto.entry import opens_at_once, parse_metadata, payload_of
from pulsarium.proto.errors import BatchError, CommandError, CompressionError, EntryError
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, MessageMetadata, ServerError
from pulsarium.proto.text import text_of

_IDS = ("request_id", "producer_id", "consumer_id", "sequence_id")
_ERRORS = ("error", "error_code")
_TEXTS = ("message", "error_message")
_MOST_TOPICS = 50_000
_LONGEST_NAME = 200  # the expression takes quadratic time
_CLIENT = re.compile(r"(.*?)[\s_-]*v?(\d+(?:\.\d+)+.*)")


class FrameNames(NamedTuple):
    """Names of the fields of a command's body, or "" for missing ones."""

    ids: tuple[str, ...]
    topic: str
    error: str
    text: str


@dataclass(slots=True)  # a frozen one takes three times as long to make
class Frame:
    """A frame of a connection.

    number: number of the record in its connection, from 0.
    broken: reason why the frame cannot be parsed; the fields from `spec` on are then None or empty.
    topic: topic of the command, of its producer or consumer, or of the answered request.
    entry: bytes after the command; `whole` says whether all of them were kept.
    error: name of Pulsar's error in an answer.
    """

    number: int
    record: CaptureRecord
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
        """Return the name of the command."""
        return "" if self.spec is None else self.spec.name

    @property
    def faulted(self) -> bool:
        """Return whether a fault of the lab changed the frame, so that it is not as its sender meant it."""
        return bool(self.record.note)

    @property
    def legal(self) -> bool:
        """Return whether nothing changed the frame but what Pulsar, or its network, may do."""
        return not self.faulted or bool(self.record.note.get("legal"))

    @property
    def whole(self) -> bool:
        return len(self.entry) == self.entry_size


class Conversation:
    """State of a connection for parsing its next frame. It gets all frames in order."""

    def __init__(self) -> None:
        self.client = ""
        self.client_version = ""
        self.asked_version: int | None = None
        """Version of CONNECT."""
        self.protocol_version: int | None = None
        """Version of both sides, set by CONNECTED."""
        self.max_message_size: int | None = None
        self.client_flags: frozenset[str] = frozenset()
        self.broker_flags: frozenset[str] = frozenset()
        self.broker_version = ""
        """server_version of CONNECTED."""
        self.frames = 0
        """Number of frames so far."""
        self._topics: Bounded[tuple[str, int], str] = Bounded(
            _MOST_TOPICS
        )  # by ("producer_id", id), ("request_id", id), ...

    def feed(self, record: CaptureRecord) -> Frame:
        """Return the frame of a record of kind FRAME."""
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
            self.broker_version = text_of(body.server_version)

    def _topic(self, spec: CommandSpec, body: Any, names: FrameNames, ids: dict[str, int]) -> str | None:
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
                # A PRODUCER that waits gets another answer later.
                waits = spec.type == BaseCommand.PRODUCER_SUCCESS and not body.producer_ready
                topic = topic or (topics.get(key) if waits else topics.pop(key))
        if topic is not None and spec.type in (BaseCommand.PRODUCER, BaseCommand.SUBSCRIBE):
            for name, number in ids.items():
                if name != "request_id":
                    topics[name, number] = topic
        return topic


def client_of(text: str) -> tuple[str, str]:
    """Return name and version of CONNECT's `client_version`: ("Pulsar-Java", "4.0.1") for `Pulsar-Java-v4.0.1`."""
    found = _CLIENT.fullmatch(text[:_LONGEST_NAME])
    return (found[1], found[2]) if found else (text, "")


def _cut(record: CaptureRecord) -> tuple[str | None, bytes, bytes]:
    """Return the error in the lengths of a frame (or None), the command, and the kept part of the entry."""
    data = record.data
    if record.size < 8 or len(data) < 8:
        return f"the frame has only {record.size} bytes", b"", b""
    total, size = int.from_bytes(data[:4], "big"), int.from_bytes(data[4:8], "big")
    if total + 4 != record.size:
        return f"the frame's length is {total}, but {record.size - 4} bytes follow", b"", b""
    if size + 4 > total:
        return f"the command's length is {size}, in a frame of {total}", b"", b""
    return None, data[8 : 8 + size], data[8 + size :]


def _flags(body: Any) -> frozenset[str]:
    return frozenset(described.name for described, value in body.feature_flags.ListFields() if value)


def _names(body: Any) -> FrameNames:
    fields = {name for name, described in body.fields_by_name.items() if not described.is_repeated}

    def first(names: tuple[str, ...]) -> str:
        return next((name for name in names if name in fields), "")

    error = first(_ERRORS)
    return FrameNames(tuple(name for name in _IDS if name in fields), first(("topic",)), error, error and first(_TEXTS))


def _bodies() -> dict[int, FrameNames]:
    fields = BaseCommand.DESCRIPTOR.fields_by_number
    return {number: _names(fields[number].message_type) for number in COMMANDS}


_NAMES = _bodies()

WITH_REQUEST_ID = frozenset(COMMANDS[number].name for number, names in _NAMES.items() if "request_id" in names.ids)
"""Commands that may have a request_id."""


"""Most bytes of a decompressed payload. Larger payloads are not examined."""


class SentEntry:
    """An entry of a SEND. Parts that cannot be parsed are absent, and `wrong_*` says why."""

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
        """Return the payload as it was sent."""
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
        """Return the decompressed payload or its error, or None for an encrypted, chunked or huge message."""
        metadata = self.metadata
        if metadata is None or metadata.encryption_keys or self.chunked or not opens_at_once(metadata):
            return None  # the linter of a broker runs on the event loop
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
        """Return the decompressed payload, or None."""
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
        """Return metadata and payload of each message of a batch, or those of the single message."""
        if self.metadata is None or isinstance(self._messages, BatchError):
            return []
        if self.batched or self.plain_payload is None:
            return self._messages
        return [(self.metadata, self.plain_payload)]
