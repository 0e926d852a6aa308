"""Bytes to frames and back.

A frame is `[u32 total][u32 size][command: size bytes][trailing: the rest]`, big-endian; total counts everything behind
itself. What trails is the entry of SEND and MESSAGE; other commands may carry bytes there too, and most readers ignore
them.
"""

from __future__ import annotations

from struct import Struct

from pulsarium.proto.errors import FrameError

# maxMessageSize (5 MiB) and 10 KiB for the headers, as Pulsar's nettyMaxFrameSizeBytes; the length word is included.
MAX_FRAME_SIZE = 5 * 1024 * 1024 + 10 * 1024

_HEAD = Struct(">II")
_LENGTH = Struct(">I")


class FrameDecoder:
    """Cuts a stream of bytes into frames, whatever the pieces it arrives in.

    Memory follows what has arrived, never what a length claims. After a broken length `error` is set and `feed`
    returns nothing more, because the next frame's beginning is unknown.
    """

    __slots__ = ("_limit", "_need", "_tail", "error")

    def __init__(self, max_frame_size: int = MAX_FRAME_SIZE) -> None:
        """`max_frame_size`: bytes of the biggest frame let through, its length word included."""
        self._limit = max_frame_size - 4
        self._tail = bytearray()  # an incomplete frame, from its length word on
        self._need = 0  # bytes _tail must have before another look at it is worth while
        self.error: FrameError | None = None

    @property
    def pending(self) -> int:
        """Bytes received of a frame that is not complete yet."""
        return len(self._tail)

    def allow(self, max_frame_size: int) -> None:
        """From the next `feed` on, frames up to this many bytes, their length words included, are let through."""
        self._limit = max_frame_size - 4

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """Takes the next bytes; returns (command, trailing) of every frame they complete, in order."""
        frames: list[tuple[bytes, bytes]] = []
        if self.error is not None:
            return frames
        start = self._finish(data, frames) if self._tail else 0
        append, unpack, limit = frames.append, _HEAD.unpack_from, self._limit
        end = len(data)
        command = start + 8
        while command <= end:
            total, size = unpack(data, start)
            stop = start + 4 + total
            if stop > end or not size + 4 <= total <= limit:
                break
            start = command + size
            append((data[command:start], data[start:stop]))
            start = stop
            command = stop + 8
        if start < end:
            self._begin(data, start)
        return frames

    def _begin(self, data: bytes, start: int) -> None:
        """Keeps what `data` has of an incomplete frame, or finds why there cannot be one."""
        have = len(data) - start
        self._need = 4
        if have >= 4:
            self._measure(data, start)
            if have >= self._need and self.error is None:
                self._refuse_command(data, start)
        if self.error is None:
            self._tail += memoryview(data)[start:]

    def _finish(self, data: bytes, frames: list[tuple[bytes, bytes]]) -> int:
        """Adds to the frame begun by earlier data; returns how much of `data` that took.

        Only this one frame is put together, so that the rest of a big read is not copied once more.
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
        """Reads a length word: the frame's size, or what is wrong with it."""
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


def frame(command: bytes, trailing: bytes = b"") -> bytes:
    """The frame of a serialized BaseCommand and what follows it."""
    size = len(command)
    return _HEAD.pack(4 + size + len(trailing), size) + command + trailing


def frame_head(command: bytes, trailing_size: int) -> bytes:
    """A frame up to `trailing_size` bytes before its end, so that a payload need not be copied behind it."""
    size = len(command)
    return _HEAD.pack(4 + size + trailing_size, size) + command
