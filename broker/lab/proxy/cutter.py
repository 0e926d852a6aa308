"""Cut a stream into frames to look at, and bytes that pass as they are. Sans-IO."""

from __future__ import annotations

from collections.abc import Collection
from struct import Struct
from typing import NamedTuple

from pulsarium.proto.framing import MAX_FRAME_SIZE

HEAD = 10  # bytes up to the command type: the length word, the size of the command, and the type with its tag
TYPE_TAG = 0x08  # of BaseCommand.type
NO_TYPE = -1
_head_of = Struct(">I4xBB").unpack_from  # the length word, the tag and the type, in one call for each frame


class Cut(NamedTuple):
    """Bytes of a stream: one whole frame, or what passes as it is."""

    data: bytes
    is_frame: bool


def kind_of(data: bytes, start: int = 0) -> int:
    """Return the command type of the frame at `start`, or NO_TYPE for a command that does not begin with its type."""
    return data[start + 9] if data[start + 8] == TYPE_TAG else NO_TYPE


class Cutter:
    """Cut one direction of a connection. Bytes that are no frame pass unchanged, with all bytes behind them."""

    def __init__(self) -> None:
        self.most = MAX_FRAME_SIZE
        """Bytes of the longest frame to look at. The broker does not accept a longer one, which passes."""
        self._held = bytearray()  # the beginning of a frame to look at, or less than a head
        self._need = 0  # bytes that are needed before `_held` is looked at again
        self._passing = 0  # bytes of a frame under way that still pass
        self._broken = False

    @property
    def held(self) -> bytes:
        """Return the bytes that wait for the rest of their frame."""
        return bytes(self._held)

    def feed(self, data: bytes, watched: Collection[int] | None) -> list[Cut]:
        """Return the next bytes in order. Frames of `watched` command types, or all for None, come one by one."""
        if self._held:
            self._held += data
            if len(self._held) < self._need:
                return []
            data = bytes(self._held)
            self._held.clear()
        if self._broken or len(data) <= self._passing:
            self._passing = max(self._passing - len(data), 0)
            return [Cut(data, is_frame=False)]
        return self._cut(data, watched)

    def _cut(self, data: bytes, watched: Collection[int] | None) -> list[Cut]:
        cuts: list[Cut] = []
        begin, start, end = 0, self._passing, len(data)
        self._passing, self._need = 0, HEAD
        last = end - HEAD
        while start <= last:
            length, tag, kind = _head_of(data, start)
            if length < HEAD - 4:
                break
            stop = start + 4 + length
            if length + 4 > self.most or (watched is not None and tag == TYPE_TAG and kind not in watched):
                if stop > end:
                    self._passing = stop - end
                    stop = end
                start = stop
                continue
            if stop > end:
                self._need = stop - start
                break
            if begin < start:
                cuts.append(Cut(data[begin:start], is_frame=False))
            cuts.append(Cut(data[start:stop], is_frame=True))
            begin = start = stop
        if end - start >= 4:
            length = int.from_bytes(data[start : start + 4], "big")
            if length < HEAD - 4:  # no command is so short
                self._broken = True
                start = end
            elif length + 4 > self.most:  # the broker ends the connection already now
                self._passing = start + 4 + length - end
                start = end
        else:
            self._need = 4
        if begin < start:
            cuts.append(Cut(data[begin:start], is_frame=False))
        if start < end:
            self._held += memoryview(data)[start:]
        return cuts

    def end(self) -> bytes:
        """Return the held bytes, because the stream ends."""
        held = self.held
        self._held.clear()
        return held
