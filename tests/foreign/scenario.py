"""The matrix of options that every official client runs through, whole and as a pairwise subset."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import pytest

from .pairwise import pairwise

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet

BATCHED = (False, True)
COMPRESSIONS = ("NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY")
SUBSCRIPTIONS = ("Exclusive", "Shared", "Failover")
PARTITIONS = (1, 3)

MESSAGES = 10_000


@dataclass(frozen=True)
class Combination:
    """Options by which a scenario publishes and consumes. One partition means a non-partitioned topic."""

    batched: bool
    compression: str
    subscription: str
    partitions: int

    @property
    def consumers(self) -> int:
        return 1 if self.subscription == "Exclusive" else 2

    def __str__(self) -> str:
        batched = "batched" if self.batched else "single"
        return f"{batched}-{self.compression}-{self.subscription}-{self.partitions}"

    def arguments(self) -> dict[str, object]:
        """Return the fields and the number of consumers, for a foreign program."""
        return {**asdict(self), "consumers": self.consumers}


COMBINATIONS = tuple(
    Combination(*row)  # type: ignore[arg-type]
    for row in pairwise(BATCHED, COMPRESSIONS, SUBSCRIPTIONS, PARTITIONS)
)


def matrix() -> list[ParameterSet]:
    """Return combinations that have every pair of values as test parameters."""
    return [pytest.param(each, id=str(each)) for each in COMBINATIONS]
