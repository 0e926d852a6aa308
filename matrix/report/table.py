"""Results arranged as the matrix: a row for each scenario, a column for each client, profile and mask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from pulsarium.matrix.cell import Column, Outcome, Result
from pulsarium.matrix.clients import CLIENTS
from pulsarium.matrix.scenarios import SCENARIOS, Scenario


@dataclass(frozen=True)
class Table:
    """Results in the order in which they are to stand."""

    results: Sequence[Result]

    @cached_property
    def columns(self) -> list[Column]:
        return list(dict.fromkeys(result.cell.column for result in self.results))

    @cached_property
    def scenarios(self) -> list[Scenario]:
        named = {result.cell.scenario for result in self.results}
        return [scenario for scenario in SCENARIOS if scenario.name in named]

    @cached_property
    def _placed(self) -> dict[tuple[str, Column], Result]:
        return {(result.cell.scenario, result.cell.column): result for result in self.results}

    def at(self, scenario: Scenario, column: Column) -> Result | None:
        return self._placed.get((scenario.name, column))

    def title(self, column: Column) -> str:
        """A client's name; with profile and mask where there are several of them."""
        parts = [CLIENTS[column.client].title]
        if len({each.profile for each in self.columns}) > 1:
            parts.append(column.profile)
        if len({each.mask for each in self.columns}) > 1:
            parts.append(column.mask)
        return ", ".join(parts)

    def counts(self, column: Column) -> Counter[Outcome]:
        return Counter(result.outcome for result in self.results if result.cell.column == column)


def behind(results: Iterable[Result]) -> str:
    """ "5 pass, 1 fail" """
    counts = Counter(result.outcome for result in results)
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome if counts[outcome])
