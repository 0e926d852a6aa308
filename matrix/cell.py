"""A cell of the matrix (a scenario with a client, on a profile with a mask) and its result."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """The result of one cell of the matrix."""

    PASS = "pass"
    FAIL = "fail"
    TIMEOUT = "timeout"
    UNSUPPORTED = "unsupported"
    """The client or the broker lacks the feature, or the mask forbids it. The reason says which."""
    SKIPPED = "skipped"
    """Not run, because a tool or module for the client is missing."""

    @property
    def is_bad(self) -> bool:
        return self in (Outcome.FAIL, Outcome.TIMEOUT)


@dataclass(frozen=True, order=True)
class Cell:
    """Place of a result in the matrix."""

    scenario: str
    client: str
    profile: str
    mask: str

    def __str__(self) -> str:
        return f"{self.scenario} {self.client} {self.profile} {self.mask}"

    @property
    def column(self) -> Column:
        return Column(self.client, self.profile, self.mask)


@dataclass(frozen=True, order=True)
class Column:
    """Cells that run one after the other, with one program, on brokers of their own."""

    client: str
    profile: str
    mask: str

    def __str__(self) -> str:
        return f"{self.client}-{self.profile}-{self.mask}"


@dataclass(frozen=True)
class Result:
    """Result of a cell.

    seconds: duration, or 0 for a cell that was not run. capture, log: files relative to the run's folder, or "".
    """

    cell: Cell
    outcome: Outcome
    reason: str = ""
    seconds: float = 0.0
    capture: str = ""
    log: str = ""

    def row(self) -> dict[str, Any]:
        """Return plain values under the names of both classes' fields."""
        values = asdict(self)
        return {**values.pop("cell"), **values, "outcome": str(self.outcome)}

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> Result:
        """Return the result that `row` wrote."""
        cell = Cell(**{name: row[name] for name in ("scenario", "client", "profile", "mask")})
        others = {name: row[name] for name in ("reason", "seconds", "capture", "log")}
        return cls(cell, Outcome(row["outcome"]), **others)
