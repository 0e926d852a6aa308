"""Keep which scenarios passed on a real Pulsar, and what they need of a client: `proof.tsv`, a row for each scenario.

`python -m pulsarium.conformance.proof 4.2.4=DIR 5.0.1=DIR` makes the table of the reports in these folders, which runs
with `--broker` wrote. A scenario that no release has passed has the reason why it cannot run there. A run on brokers of
Pulsarium, given as =DIR, proves nothing, and adds what those scenarios need of a client.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pulsarium.conformance.columns import Cell, read_cells
from pulsarium.conformance.run import Verdict
from pulsarium.conformance.scenarios import SCENARIOS

PROOF: Final = Path(__file__).parent / "proof.tsv"


@dataclass(frozen=True)
class Proof:
    """The releases that a scenario passed on, or why it cannot run on a real broker; operations and options."""

    told: str
    needs: frozenset[str]


def proofs() -> Mapping[str, Proof]:
    """Return what is known of each scenario."""
    rows = [line.split("\t") for line in PROOF.read_text("utf-8").splitlines()]
    return {name: Proof(told, frozenset(needs.split())) for name, told, needs in rows}


def table(cells: Sequence[tuple[str, Cell]]) -> str:
    """Return the rows for results, each with its release. Raise `ValueError` for a scenario that failed."""
    passed: defaultdict[str, list[str]] = defaultdict(list)
    reasons: dict[str, str] = {}
    needs: defaultdict[str, set[str]] = defaultdict(set)
    for release, cell in cells:
        name = cell.scenario
        needs[name].update(cell.needs)
        if not release:
            continue
        if cell.verdict is Verdict.UNSUPPORTED:
            reasons[name] = cell.reason
        elif cell.is_bad:
            raise ValueError(f"{name} did not pass on {release}: {cell.reason}: mend the scenario")
        elif release not in passed[name]:
            passed[name].append(release)
    told = {name: ", ".join(passed[name]) or reasons.get(name, "") for name in SCENARIOS}
    return "".join(f"{name}\t{what}\t{' '.join(sorted(needs[name]))}\n" for name, what in sorted(told.items()))


def main(arguments: Sequence[str]) -> None:
    """Write the table from arguments such as 4.2.4=DIR and =DIR."""
    named = [each.split("=", 1) for each in arguments]
    PROOF.write_text(table([(release, cell) for release, path in named for cell in read_cells(Path(path))]), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
