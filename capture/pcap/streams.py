"""Put the segments of one direction in order, and cut the stream into frames, in bounded memory."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator

from google.protobuf.message import DecodeError

from pulsarium.capture.file import MOST_RECORD
from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand

_MOST_BUFFERED = 4 << 20
"""Most bytes that wait behind a gap. Then the bytes of the gap count as lost."""
_HALF = 1 << 31
_MOST_FRAME = 64 << 20
_LEAST = 10  # bytes: the lengths, and the type of a command


class Order:
    """The bytes of one direction in the order of their sequence numbers."""

    def __init__(self) -> None:
        self._next: int | None = None  # counts from the first sequence number on, without wrapping
        self._parts: list[tuple[int, bytes, int]] = []  # start, bytes, missing bytes after these
        self._buffered = 0
        self._patient = True

    @property
    def waiting(self) -> bool:
        """Return whether bytes wait behind a gap."""
        return bool(self._parts)

    def begin(self, sequence: int) -> None:
        """Set the first sequence number, from a SYN."""
        if self._next is None:
            self._next = sequence % 2**32

    def add(self, sequence: int, data: bytes, missing: int) -> None:
        """Add a segment, which may be early, late, or a repetition. `missing` bytes at its end were not recorded."""
        if self._next is None:
            self._next = sequence
        ahead = (sequence - self._next) % 2**32
        start = self._next + (ahead if ahead < _HALF else ahead - 2**32)
        if start + len(data) + missing > self._next:
            insort(self._parts, (start, data, missing))
            self._buffered += len(data)

    def give_up(self) -> None:
        """Stop waiting for missing bytes."""
        self._patient = False

    def ready(self) -> Iterator[bytes | int]:
        """Yield the bytes that are in order, and the number of lost bytes for each gap."""
        while self._parts and self._next is not None:
            start, data, missing = self._parts[0]
            if start > self._next:
                if self._patient and self._buffered <= _MOST_BUFFERED:
                    return
                yield start - self._next
                self._next = start
            self._parts.pop(0)
            self._buffered -= len(data)
            if (known := self._next - start) < len(data):
                yield data[known:]
                self._next = start + len(data)
            if missing and not self._repeated(start + len(data)):
                stop = start + len(data) + missing
                if stop > self._next:
                    yield stop - self._next
                    self._next = stop

    def _repeated(self, start: int) -> bool:
        """Return whether a later part has bytes that this one lacks."""
        return any(first <= start < first + len(data) for first, data, _ in self._parts)


class Frames:
    """The frames of one direction. After a gap, the next frame is found by its lengths and its command."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._cut = 0  # missing bytes of the frame that `_data` begins
        self._searching = False  # whether `_data` begins behind a gap, or after bytes that are no frame
        self.lost = 0
        """Number of missing bytes, and of bytes that belong to no whole frame."""
        self._sure = False  # whether `_data` begins with a frame
        self.foreign = ""
        """Why the first bytes are no frame, or ""."""

    def add(self, data: bytes) -> None:
        if self._cut:  # bytes behind a hole in an entry: the entry ends at the hole
            rest = min(len(data), self._left())
            self._cut += rest
            data = data[rest:]
            if not data:
                return
        if self._searching and not self._data and not _plausible(data):
            self.lost += len(data)
        else:
            self._data += data

    def skip(self, count: int) -> None:
        """Note that bytes are missing here."""
        data = self._data
        if _plausible(data) and len(data) >= 8 + int.from_bytes(data[4:8], "big") and count <= self._left():
            self._cut += count
            return
        self.lost += self._cut + count
        self._cut = 0
        self._forget()

    def _left(self) -> int:
        return 4 + int.from_bytes(self._data[:4], "big") - len(self._data) - self._cut

    def _forget(self) -> None:
        self.lost += len(self._data)
        self._sure, self._searching = False, True
        self._data.clear()

    def take(self) -> Iterator[tuple[bytes, int]]:
        """Yield each complete frame with its size on the wire."""
        data = self._data
        while len(data) >= _LEAST:
            size = 4 + int.from_bytes(data[:4], "big")
            if size > _MOST_FRAME or not (self._sure or _plausible(data)):
                if not (self._sure or self._searching):
                    self.foreign = "connections with TLS" if data[:2] == b"\x16\x03" else "connections without frames"
                self._forget()
                return
            if len(data) + self._cut < size:
                return
            kept, self._sure, self._searching, self._cut = size - self._cut, True, False, 0
            yield bytes(data[:kept]), size
            del data[:kept]


def _plausible(data: bytes | bytearray) -> bool:
    """Return whether the bytes begin as a frame does."""
    if len(data) < _LEAST:
        return False
    size, command = int.from_bytes(data[:4], "big"), int.from_bytes(data[4:8], "big")
    if not 2 <= command <= size - 4 or size > MOST_RECORD:
        return False
    if data[8] != 8 or (data[9] < 128 and data[9] not in COMMANDS):
        return False
    if len(data) < 8 + command:
        return command < _MOST_FRAME
    try:
        parsed = BaseCommand.FromString(bytes(data[8 : 8 + command]))
    except DecodeError:
        return False
    return parsed.type in COMMANDS
