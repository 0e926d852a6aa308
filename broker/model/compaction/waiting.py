"""Keep keys that have no room in memory in a temporary file, divided by their hashes.

TMPDIR chooses the folder of the file. The default is /var/tmp, which unlike /tmp is rarely in memory.
"""

from __future__ import annotations

import marshal
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from typing import IO

FOLDER = "/var/tmp"
PARTS_BITS = 4
PARTS = 1 << PARTS_BITS
BLOCK = 64 * 1024
"""Bytes of a part in memory before they are written."""
_PLACE = 16

Messages = Iterator[tuple[bytes, int, bool]]
"""The key and the place of each message, and whether it has a value."""


class WaitingFile:
    """A file of blocks without a name, which the system frees when it is closed."""

    def __init__(self) -> None:
        self._folder = os.environ.get("TMPDIR") or (FOLDER if os.path.isdir(FOLDER) else tempfile.gettempdir())
        self._file: IO[bytes] | None = None

    def add(self, block: bytes) -> tuple[int, int]:
        """Store a block, and return its offset and size. Raise `RuntimeError` when there is no room."""
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115  # `close` closes the file
            offset = self._file.seek(0, os.SEEK_END)
            self._file.write(block)
            self._file.flush()
        except OSError as error:
            raise RuntimeError(
                f"keys of the topic cannot be stored in {self._folder}: {error.strerror}: make room there, or set "
                "TMPDIR to another folder"
            ) from error
        return offset, len(block)

    def read(self, offset: int, size: int) -> bytes:
        """Return a block."""
        assert self._file is not None
        self._file.seek(offset)
        return self._file.read(size)

    def close(self) -> None:
        """Close the file, which frees its room."""
        if self._file is not None:
            with suppress(OSError):  # the last block had no room
                self._file.close()


class KeyPart:
    """Messages whose keys have some bits of their hashes in common, in the order in which they came."""

    def __init__(self, file: WaitingFile, depth: int) -> None:
        self.depth = depth
        """Number of divisions that led to this part."""
        self._file = file
        self._blocks: list[tuple[int, int]] = []
        self._keys: list[bytes] = []
        self._places: list[int] = []  # inverted for a message without a value
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._blocks or self._keys)

    def add(self, key: bytes, place: int, has_value: bool) -> None:
        self._keys.append(key)
        self._places.append(place if has_value else ~place)
        self._size += len(key) + _PLACE
        if self._size > BLOCK:
            self._blocks.append(self._file.add(marshal.dumps((self._keys, self._places), 2)))
            self._keys, self._places, self._size = [], [], 0

    def read(self) -> Iterator[Messages]:
        """Yield all messages, block by block."""
        for block in self._blocks:
            yield _messages(*marshal.loads(self._file.read(*block)))
        yield _messages(self._keys, self._places)


def _messages(keys: list[bytes], places: list[int]) -> Messages:
    for key, place in zip(keys, places, strict=True):
        yield key, place if place >= 0 else ~place, place >= 0


class WaitingMessages:
    """Messages of keys that wait. All messages of a key are in one part."""

    def __init__(self, file: WaitingFile, depth: int = 0) -> None:
        """Divide by bits of the hash that parts of this `depth` do not have in common."""
        self._shift = depth * PARTS_BITS
        self._parts = [KeyPart(file, depth + 1) for _ in range(PARTS)]

    def add(self, key: bytes, place: int, has_value: bool) -> None:
        self._parts[hash(key) >> self._shift & PARTS - 1].add(key, place, has_value)

    def parts(self) -> list[KeyPart]:
        """Return the parts that have messages."""
        return [each for each in self._parts if each]
