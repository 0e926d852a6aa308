"""Read and write packet files: pcapng, and the older pcap that tcpdump writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Final

from pulsarium.capture.file import CaptureError

RAW: Final = 101
NS: Final = 10**9

_SECTION, _INTERFACE, _PACKET, _SIMPLE, _ENHANCED = 0x0A0D0D0A, 1, 2, 3, 6
_ORDER = 0x1A2B3C4D
_COMMENT, _TSRESOL, _END = 1, 9, 0
_PCAP = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}  # nanoseconds of a unit, by magic
_MOST_BLOCK = 16 << 20
_MOST_INTERFACES = 1000
_MOST_COMMENT = 60_000


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet. `size` is its size on the wire, of which fewer bytes may be kept."""

    ns: int
    link: int
    data: bytes
    size: int


class PacketReader:
    """Reader of packets from pieces of any size. It keeps in memory only the incomplete block."""

    def __init__(self) -> None:
        self._tail = bytearray()
        self._endian = "<"
        self._pcap: tuple[int, int] | None = None  # unit of time in ns, and link type, of an older file
        self._interfaces: list[tuple[int, int]] = []  # link type, and units of time in a second
        self._begun = False

    @property
    def pending(self) -> int:
        """Return the number of bytes of an incomplete packet, as a killed tcpdump leaves it."""
        return len(self._tail)

    def feed(self, data: bytes) -> Iterator[Packet]:
        """Add bytes, and yield the packets that they complete.

        Raise `CaptureError` when the file cannot be read any further.
        """
        tail = self._tail
        tail += data
        start = 0
        try:
            while True:
                if not self._begun:
                    size = self._begin(tail)
                    if size is None:
                        return
                    start = size
                    self._begun = True
                taken = self._older(tail, start) if self._pcap else self._block(tail, start)
                if taken is None:
                    return
                packet, start = taken
                if packet is not None:
                    yield packet
        finally:
            del tail[:start]

    def _begin(self, tail: bytearray) -> int | None:
        """Return the size of the head of an older file, or 0 for pcapng. None needs more bytes."""
        if len(tail) < 12:
            return None
        magic = bytes(tail[:4])
        if int.from_bytes(magic, "big") == _SECTION:
            return 0
        for self._endian in "<>":
            unit = _PCAP.get(Struct(self._endian + "I").unpack(magic)[0])
            if unit is not None:
                if len(tail) < 24:
                    return None
                link = Struct(self._endian + "I").unpack_from(tail, 20)[0]
                self._pcap = unit, link & 0xFFFF
                return 24
        raise CaptureError("the file is neither pcapng nor pcap")

    def _older(self, tail: bytearray, start: int) -> tuple[Packet | None, int] | None:
        assert self._pcap is not None
        unit, link = self._pcap
        if start + 16 > len(tail):
            return None
        seconds, part, kept, size = Struct(self._endian + "4I").unpack_from(tail, start)
        if kept > _MOST_BLOCK:
            raise CaptureError(f"a packet has the invalid size {kept}")
        stop = start + 16 + kept
        if stop > len(tail):
            return None
        return Packet(seconds * NS + part * unit, link, bytes(tail[start + 16 : stop]), max(size, kept)), stop

    def _block(self, tail: bytearray, start: int) -> tuple[Packet | None, int] | None:
        if start + 12 > len(tail):
            return None
        kind = int.from_bytes(tail[start : start + 4], "big")
        if kind == _SECTION:
            self._section(bytes(tail[start + 8 : start + 12]))
        words = Struct(self._endian + "II")
        kind, size = words.unpack_from(tail, start)
        if size < 12 or size % 4 or size > _MOST_BLOCK:
            raise CaptureError(f"a block has the invalid size {size}")
        stop = start + size
        if stop > len(tail):
            return None
        if Struct(self._endian + "I").unpack_from(tail, stop - 4)[0] != size:
            raise CaptureError("a block is damaged: its two sizes differ")
        return self._packet(kind, bytes(tail[start + 8 : stop - 4])), stop

    def _section(self, order: bytes) -> None:
        for self._endian in "<>":
            if Struct(self._endian + "I").unpack(order)[0] == _ORDER:
                self._interfaces.clear()
                return
        raise CaptureError("a section of the file has no byte order")

    def _packet(self, kind: int, body: bytes) -> Packet | None:
        if kind == _INTERFACE:
            self._interface(body)
        elif kind in (_ENHANCED, _PACKET):
            if len(body) < 20:
                raise CaptureError("a packet block is too short")
            layout = Struct(self._endian + ("5I" if kind == _ENHANCED else "HH4I"))
            number, *rest = layout.unpack_from(body)
            high, low, kept, size = rest if kind == _ENHANCED else rest[1:]
            return self._made(number, high << 32 | low, kept, size, body[20:])
        elif kind == _SIMPLE and len(body) >= 4:
            size = Struct(self._endian + "I").unpack_from(body)[0]
            return self._made(0, 0, min(size, len(body) - 4), size, body[4:])
        return None

    def _interface(self, body: bytes) -> None:
        if len(body) < 8 or len(self._interfaces) >= _MOST_INTERFACES:
            raise CaptureError("an interface block is too short, or the file has too many interfaces")
        link = Struct(self._endian + "H").unpack_from(body)[0]
        units, at = 10**6, 8
        while at + 4 <= len(body):
            code, length = Struct(self._endian + "HH").unpack_from(body, at)
            if code == _TSRESOL and length == 1 and at + 4 < len(body):
                exponent = body[at + 4]
                units = 2 ** (exponent & 127) if exponent & 128 else 10**exponent
            if code == _END:
                break
            at += 4 + (length + 3) // 4 * 4
        self._interfaces.append((link, units))

    def _made(self, number: int, time: int, kept: int, size: int, data: bytes) -> Packet:
        if number >= len(self._interfaces):
            raise CaptureError(f"a packet names interface {number}, which the file does not describe")
        if kept > len(data):
            raise CaptureError(f"a packet of {kept} bytes is in a block of {len(data)}")
        link, units = self._interfaces[number]
        return Packet(time * NS // units, link, data[:kept], max(size, kept))


def section(application: str) -> bytes:
    """Return the head of a pcapng file: a section, and its interface of IP packets with times in nanoseconds."""
    begin = Struct("<IHHq").pack(_ORDER, 1, 0, -1) + _option(4, application.encode()) + _option(_END, b"")
    interface = Struct("<HHI").pack(RAW, 0, 0) + _option(_TSRESOL, b"\x09") + _option(_END, b"")
    return _block_of(_SECTION, begin) + _block_of(_INTERFACE, interface)


def packet_block(ns: int, data: bytes, size: int, comment: str = "") -> bytes:
    """Return a packet of the head's interface."""
    ns = max(ns, 0)
    head = Struct("<5I").pack(0, ns >> 32 & 0xFFFFFFFF, ns & 0xFFFFFFFF, len(data), size)
    text = comment.encode("utf-8", "replace")[:_MOST_COMMENT].decode("utf-8", "ignore").encode()
    options = _option(_COMMENT, text) + _option(_END, b"") if text else b""
    return _block_of(_ENHANCED, head + _padded(data) + options)


def _block_of(kind: int, body: bytes) -> bytes:
    size = Struct("<I").pack(len(body) + 12)
    return Struct("<I").pack(kind) + size + body + size


def _option(code: int, value: bytes) -> bytes:
    return Struct("<HH").pack(code, len(value)) + _padded(value)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
