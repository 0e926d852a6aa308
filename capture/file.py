"""Read and write wire captures: frames of many connections, with their time, connection and sender.

A file is `b"pulscap1"` and records `[u32 size][u32 CRC32C of the rest][kind u8][body]`, with big-endian numbers. The
first record is the header, in JSON. The others are events of a connection:

    [connection u64][sender u8][monotonic ns i64][wall ns i64][size u32][note size u32][note: JSON][bytes kept]

`size` is the frame's size on the wire, of which fewer bytes may be kept. Records are only appended. The file of a
killed writer can be read up to its last whole record.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from struct import Struct
from typing import Any

from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from pulsarium.proto.commands import COMMANDS, CommandSpec, Direction
from pulsarium.proto.entry import crc32c
from pulsarium.proto.errors import ProtocolError
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand

MAGIC = b"pulscap1"
SUFFIX = ".pulscap"
VERSION = 1
MOST_RECORD = 1 << 28
"""Most bytes of a record. No frame is so large, so that a larger size means that the file is not a capture."""

_PREFIX = Struct(">II")
_EVENT = Struct(">BQBqqII")
_SENDERS = (Direction.CLIENT, Direction.BROKER)
_HEADER = 0
_UNREADABLE_KEPT = 16
"""Bytes that are kept of data that is not a command. More could hold secrets of another protocol."""


class CaptureError(ProtocolError):
    """Data that is not a capture, or a damaged record in its middle."""


class EventKind(IntEnum):
    """Kind of an event on a connection."""

    FRAME = 1
    OPENED = 2
    CLOSED = 3


@dataclass(slots=True)  # a frozen one takes three times as long to make
class CaptureRecord:
    """An event of one connection.

    sender: side that sent the frame or closed the connection, never BOTH.
    size: bytes of the frame on the wire; `data` is shorter when a long entry was cut.
    note: `reason` of a close (absent for an orderly end), `peer` of an opening, or what a fault did to the frame.
    """

    kind: EventKind
    connection: int
    sender: Direction
    monotonic_ns: int
    wall_ns: int
    data: bytes = b""
    size: int = 0
    note: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cut(self) -> bool:
        return len(self.data) < self.size


@dataclass(frozen=True, slots=True)
class Header:
    """Start time and broker of a capture, and other facts (`client`, `client_version`, ...)."""

    wall_ns: int
    broker: str = ""
    profile: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    version: int = VERSION


class CaptureWriter:
    """Writer of records, each with one call of `write`."""

    def __init__(self, write: Callable[[bytes], object], header: Header, *, keep_entry: int | None = None) -> None:
        """Write the header.

        `keep_entry` limits the kept bytes of an entry (all after a frame's command); None keeps all.
        """
        self._write = write
        self._keep = keep_entry
        fields = {name: getattr(header, name) for name in Header.__slots__}
        write(MAGIC + _record(bytes([_HEADER]) + json.dumps(fields).encode()))

    def frame(
        self,
        connection: int,
        sender: Direction,
        monotonic_ns: int,
        wall_ns: int,
        data: bytes,
        *,
        size: int | None = None,
        damaged: bool = False,
        **note: Any,
    ) -> None:
        """Write a frame, from its length word on, with its secrets blanked.

        `size` is its size on the wire when bytes at its end are missing. `damaged` says that a fault changed some of
        its bytes.
        """
        kept = scrubbed(data, damaged=damaged)
        if self._keep is not None and len(kept) >= 8:
            kept = kept[: 8 + int.from_bytes(kept[4:8], "big") + self._keep]
        self._event(
            EventKind.FRAME, connection, sender, monotonic_ns, wall_ns, len(data) if size is None else size, note, kept
        )

    def opened(self, connection: int, monotonic_ns: int, wall_ns: int, **note: Any) -> None:
        self.record(CaptureRecord(EventKind.OPENED, connection, Direction.CLIENT, monotonic_ns, wall_ns, note=note))

    def closed(
        self, connection: int, sender: Direction, monotonic_ns: int, wall_ns: int, reason: str = "", **note: Any
    ) -> None:
        """Write that `sender` closed the connection. An orderly end has no `reason`."""
        if reason:
            note = {"reason": reason, **note}
        self.record(CaptureRecord(EventKind.CLOSED, connection, sender, monotonic_ns, wall_ns, note=note))

    def record(self, record: CaptureRecord) -> None:
        """Write a record unchanged: no bytes are blanked or cut."""
        times = record.monotonic_ns, record.wall_ns
        self._event(record.kind, record.connection, record.sender, *times, record.size, record.note, record.data)

    def _event(
        self,
        kind: int,
        connection: int,
        sender: Direction,
        monotonic_ns: int,
        wall_ns: int,
        size: int,
        note: Mapping[str, Any],
        data: bytes,
    ) -> None:
        text = json.dumps(dict(note)).encode() if note else b""
        head = _EVENT.pack(kind, connection, sender is _SENDERS[1], monotonic_ns, wall_ns, size, len(text))
        self._write(_record(head + text + data))


class CaptureReader:
    """Reader of records from pieces of any size. It keeps in memory only the incomplete record."""

    def __init__(self) -> None:
        self._tail = bytearray()
        self._begun = False
        self.header: Header | None = None
        """Set after the first record."""

    @property
    def pending(self) -> int:
        """Return the number of bytes of an incomplete record.

        At the end of a file, such a record is the last one of a killed writer, and no error.
        """
        return len(self._tail)

    def feed(self, data: bytes) -> Iterator[CaptureRecord]:
        """Add bytes, and yield the records that they complete, in order.

        Raise `CaptureError` when the capture cannot be read any further.
        """
        tail = self._tail
        tail += data
        start = 0
        try:
            if not self._begun:
                if tail[: len(MAGIC)] != MAGIC[: len(tail)]:
                    raise CaptureError("not a Pulsarium capture")
                if len(tail) < len(MAGIC):
                    return
                self._begun, start = True, len(MAGIC)
            while start + _PREFIX.size <= len(tail):
                size, claimed = _PREFIX.unpack_from(tail, start)
                if not 0 < size <= MOST_RECORD:
                    raise CaptureError(f"a record has the invalid size {size}")
                stop = start + _PREFIX.size + size
                if stop > len(tail):
                    break
                body = bytes(memoryview(tail)[start + _PREFIX.size : stop])
                start = stop
                if crc32c(body) != claimed:
                    raise CaptureError("a record is damaged: its checksum does not match")
                if self.header is None:
                    self.header = _header(body)
                else:
                    yield _event(body)
        finally:
            del tail[:start]


def _event(body: bytes) -> CaptureRecord:
    try:
        kind, connection, sender, monotonic, wall, size, note_size = _EVENT.unpack_from(body)
        start = _EVENT.size + note_size
        note = json.loads(body[_EVENT.size : start]) if note_size else {}
        data = body[start:]
        if start > len(body) or len(data) > size or not isinstance(note, dict):
            raise ValueError("its sizes do not match")
        return CaptureRecord(EventKind(kind), connection, _SENDERS[sender], monotonic, wall, data, size, note)
    except (ValueError, IndexError, RecursionError, struct.error) as error:
        raise CaptureError(f"a record cannot be parsed: {error}") from None


def scrubbed(data: bytes, *, damaged: bool = False) -> bytes:
    """Return the frame with asterisks in place of its secrets, at the same length, so that sizes stay true.

    Bytes that are not a known command are cut. So is a malformed command that may hold secrets, because a damaged byte
    can turn a secret into any other field. Of `damaged` frames only commands without secrets are kept.
    """
    size = int.from_bytes(data[4:8], "big")
    if _harmless(data, size):
        return data
    if damaged:
        return data[:_UNREADABLE_KEPT]
    command = BaseCommand()
    try:
        command.ParseFromString(data[8 : 8 + size])
    except DecodeError:
        return data[:_UNREADABLE_KEPT]
    spec = COMMANDS[command.type] if command.HasField("type") else None
    fields = {described.name for described, _ in command.ListFields()}
    if len(data) < 8 + size or spec is None or fields != {"type", spec.field} or not _blank(command):
        return data[:_UNREADABLE_KEPT]
    if spec.type not in _HOLDERS:
        return data
    blanked = command.SerializePartialToString()
    if len(blanked) != size:  # a repeated field, or an overlong number
        return data[:_UNREADABLE_KEPT]
    return data[:8] + blanked + b"*" * (len(data) - 8 - size)


_HOLDERS = {
    BaseCommand.CONNECT,
    BaseCommand.AUTH_CHALLENGE,
    BaseCommand.AUTH_RESPONSE,
    BaseCommand.LOOKUP,
    BaseCommand.PARTITIONED_METADATA,
}
# Only these texts are kept: an analysis needs them, and bytes that a damaged length adds are not printable.
_KEPT = {"client_version", "server_version", "topic"}
_METHODS = {"athenz", "basic", "none", "oauth2", "sasl", "tls", "token"}


def _begin(spec: CommandSpec) -> bytes:
    """Return the first bytes of a command: its type, and the tag of its body."""
    tags = BaseCommand.DESCRIPTOR.fields_by_name
    return b"\x08" + _varint(spec.type) + _varint(tags[spec.field].number << 3 | 2)


def _varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + _varint(number >> 7)


# Only types of one byte are listed here. Commands from 128 on are parsed, which is slower.
_HARMLESS = {number: _begin(spec) for number, spec in COMMANDS.items() if number < 128 and number not in _HOLDERS}


def _harmless(data: bytes, size: int) -> bool:
    """Return whether all bytes of the command belong to one that has no secrets. Its body may claim more bytes."""
    begin = _HARMLESS.get(data[9]) if len(data) > 9 else None
    if begin is None or not data.startswith(begin, 8):
        return False
    at = 8 + len(begin)
    length = data[at : at + 2]
    if length[:1] < b"\x80":
        return at + 1 + int.from_bytes(length[:1]) >= 8 + size
    return length[1:] < b"\x80" and at + 2 + (length[0] & 127) + (int.from_bytes(length[1:]) << 7) >= 8 + size


def _blank(message: Any) -> bool:
    """Replace the texts of a message and of its submessages with asterisks. Return False for unknown fields."""
    if len(UnknownFieldSet(message)):
        return False
    for described, value in message.ListFields():
        if described.message_type is not None:
            if not all(_blank(each) for each in (value if described.is_repeated else [value])):
                return False
        elif isinstance(value, str | bytes) and not _kept(described.name, value):
            length = len(value.encode() if isinstance(value, str) else value)
            setattr(message, described.name, "*" * length if isinstance(value, str) else b"*" * length)
    return True


def _kept(name: str, value: str | bytes) -> bool:
    return isinstance(value, str) and (value in _METHODS or (name in _KEPT and value.isprintable()))


def _record(body: bytes) -> bytes:
    return _PREFIX.pack(len(body), crc32c(body)) + body


def _header(body: bytes) -> Header:
    try:
        given = json.loads(body[1:]) if body[0] == _HEADER else {}
        version = given["version"]
        if version == VERSION:
            return Header(**{name: given[name] for name in Header.__slots__})
    except (ValueError, TypeError, KeyError, RecursionError):
        raise CaptureError("the capture has no header") from None
    raise CaptureError(
        f"the capture has format {version}, and this version of Pulsarium reads format {VERSION}: use the version that "
        "wrote it, or capture again"
    )
