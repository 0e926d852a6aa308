"""Decode and encode frames.

A frame is `[u32 total][u32 size][command: size bytes][trailing: the rest]`, big-endian; total counts all bytes behind
itself. The trailing bytes of SEND and MESSAGE are the entry. Other commands may have trailing bytes, which most readers
ignore.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from struct import Struct

from pulsarium.proto.errors import FrameError

MAX_MESSAGE_SIZE = 5 * 1024 * 1024
"""Pulsar's maxMessageSize where a broker says nothing else, in bytes."""
FRAME_PADDING = 10 * 1024
"""The bytes of a frame beyond maxMessageSize, for the headers: Pulsar's MESSAGE_SIZE_FRAME_PADDING."""
MAX_FRAME_SIZE = MAX_MESSAGE_SIZE + FRAME_PADDING
"""The bytes of the largest frame, with its length word."""

BYTES = [bytes([each]) for each in range(256)]
"""Each byte. A number of a template changes in one byte, most of the time."""

_HEAD = Struct(">II")
_LENGTH = Struct(">I")


class FrameDecoder:
    """Cut a stream of bytes into frames.

    Memory grows with the bytes that arrived, never with a claimed length. After an impossible length `error` is set,
    and `feed` returns nothing more, because the start of the next frame is unknown.
    """

    __slots__ = ("_limit", "_need", "_tail", "error")

    def __init__(self, max_frame_size: int = MAX_FRAME_SIZE) -> None:
        """Accept frames of up to `max_frame_size` bytes, the length word included."""
        self._limit = max_frame_size - 4
        self._tail = bytearray()  # an incomplete frame, from its length word on
        self._need = 0  # bytes that _tail needs before it is looked at again
        self.error: FrameError | None = None

    @property
    def pending(self) -> int:
        """Return how many bytes of an incomplete frame have arrived."""
        return len(self._tail)

    def allow(self, max_frame_size: int) -> None:
        """Accept frames of up to `max_frame_size` bytes, length word included, from the next `feed` on."""
        self._limit = max_frame_size - 4

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """Take the next bytes, and return (command, trailing) of each frame that they complete, in order."""
        frames: list[tuple[bytes, bytes]] = []
        if self.error is not None:
            return frames
        start = self._finish(data, frames) if self._tail else 0
        append, unpack, limit = frames.append, _HEAD.unpack_from, self._limit
        end = len(data)
        command = start + 8
        last_total = last_size = -1
        while command <= end:
            total, size = unpack(data, start)
            stop = start + 4 + total
            if stop > end or not size + 4 <= total <= limit:
                break
            if total == last_total and size == last_size:
                cut, head, length = _cutter(total, size), data[start:command], 4 + total
                while start + length <= end and data.startswith(head, start):
                    append(cut(data, start))
                    start += length
            else:
                last_total, last_size = total, size
                start = command + size
                append((data[command:start], data[start:stop]))
                start = stop
            command = start + 8
        if start < end:
            self._begin(data, start)
        return frames

    def _begin(self, data: bytes, start: int) -> None:
        """Keep the bytes of an incomplete frame, or set `error`."""
        have = len(data) - start
        self._need = 4
        if have >= 4:
            self._measure(data, start)
            if have >= self._need and self.error is None:
                self._refuse_command(data, start)
        if self.error is None:
            self._tail += memoryview(data)[start:]

    def _finish(self, data: bytes, frames: list[tuple[bytes, bytes]]) -> int:
        """Complete the frame that earlier data began, and return how many bytes of `data` it took.

        Only this frame is joined, so that the rest of a large read is not copied again.
        """
        tail, start, end = self._tail, 0, len(data)
        while (missing := self._need - len(tail)) <= end - start:
            tail += memoryview(data)[start : start + missing]
            start += missing
            if len(tail) == 4:
                self._measure(tail, 0)
            else:
                total, size = _HEAD.unpack_from(tail)
                self._tail = bytearray()
                if size + 4 <= total:
                    whole = memoryview(tail)
                    frames.append((bytes(whole[8 : 8 + size]), bytes(whole[8 + size :])))
                    return start
                self._refuse_command(tail, 0)
            if self.error is not None:
                return end
        tail += memoryview(data)[start:] if start else data
        return end

    def _measure(self, data: bytes | bytearray, start: int) -> None:
        """Read the length word of a frame, and set `error` when it is impossible."""
        (total,) = _LENGTH.unpack_from(data, start)
        self._need = 4 + total
        if total > self._limit:
            self._refuse(f"frame of {total} bytes is over the limit of {self._limit}")
        elif total < 4:
            self._refuse(f"frame of {total} bytes has no room for its command size")

    def _refuse_command(self, data: bytes | bytearray, start: int) -> None:
        total, size = _HEAD.unpack_from(data, start)
        self._refuse(f"command of {size} bytes is beyond its frame of {total}")

    def _refuse(self, reason: str) -> None:
        self.error = FrameError(reason)
        self._tail = bytearray()


@lru_cache
def _cutter(total: int, size: int) -> Callable[[bytes, int], tuple[bytes, bytes]]:
    """Return a function that cuts a frame of this shape at an offset, in less time than two slices."""
    return Struct(f"8x{size}s{total - 4 - size}s").unpack_from


def frame(command: bytes, trailing: bytes = b"") -> bytes:
    """Return the frame of a serialized BaseCommand and its trailing bytes."""
    size = len(command)
    return _HEAD.pack(4 + size + len(trailing), size) + command + trailing


def frame_head(command: bytes, trailing_size: int) -> bytes:
    """Return a frame without its last `trailing_size` bytes, so that the caller need not copy the payload."""
    size = len(command)
    return _HEAD.pack(4 + size + trailing_size, size) + command
