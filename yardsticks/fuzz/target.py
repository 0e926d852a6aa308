"""Base class of fuzz targets, which run inputs, change inputs, and provide the first ones."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from random import Random
from typing import ClassVar


class Target(ABC):
    """A part of Pulsarium that takes bytes from unknown clients."""

    name: ClassVar[str]
    largest: ClassVar[int] = 16_384  # bytes of an input, at most
    fresh: ClassVar[int]  # number of inputs in a short run

    @abstractmethod
    def run(self, data: bytes) -> None:
        """Run an input. Raise `Finding` or another exception if it causes a fault, and do the same each time."""

    @abstractmethod
    def mutate(self, data: bytes, others: Sequence[bytes], random: Random) -> bytes:
        """Return a changed input, which may contain parts of `others`."""

    @abstractmethod
    def seeds(self) -> Iterable[bytes]:
        """Yield the first inputs, which are recorded or known to be odd."""

    def to_line(self, data: bytes) -> str:
        """Return an input as a line of the corpus."""
        return base64.b64encode(data).decode()

    def of_line(self, line: str) -> bytes:
        """Return the input of a line of the corpus."""
        return base64.b64decode(line)
