"""What is fuzzed: takes inputs, makes others of them, and has the first ones."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from random import Random
from typing import ClassVar


class Target(ABC):
    """One thing that takes bytes from strangers."""

    name: ClassVar[str]
    largest: ClassVar[int] = 16_384  # bytes of an input
    fresh: ClassVar[int]  # inputs of a short run

    @abstractmethod
    def run(self, data: bytes) -> None:
        """Take an input; `Finding`, or any exception, for what it must not do. The same each time."""

    @abstractmethod
    def mutate(self, data: bytes, others: Sequence[bytes], random: Random) -> bytes:
        """Another input, made of this one, with parts of others."""

    @abstractmethod
    def seeds(self) -> Iterable[bytes]:
        """Inputs to begin with: what was recorded, or is known to be odd."""

    def to_line(self, data: bytes) -> str:
        """An input as a line of the corpus."""
        return base64.b64encode(data).decode()

    def of_line(self, line: str) -> bytes:
        """An input of the corpus."""
        return base64.b64decode(line)
