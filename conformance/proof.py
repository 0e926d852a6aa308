"""Keep which scenarios passed on a real Pulsar: `proof.tsv`, a row for each scenario and release.

`python -m pulsarium.conformance.proof 4.2.4=DIR 5.0.1=DIR` makes the table of the reports in these folders, which runs
with `--broker` wrote. A scenario that no release has passed has the reason why it cannot run there.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from pulsarium.conformance.scenarios import SCENARIOS

PROOF: Final = Path(__file__).parent / "proof.tsv"


def proofs() -> Mapping[str, str]:
    """Return what is known of each scenario: the releases that it passed on, or why it cannot run on a real broker."""
    return dict(line.split("\t") for line in PROOF.read_text("utf-8").splitlines())


def table(reports: Mapping[str, str]) -> str:
    """Return the rows for JUnit reports by release. Raise `ValueError` for a scenario that failed."""
    passed: defaultdict[str, list[str]] = defaultdict(list)
    reasons: dict[str, str] = {}
    for release, report in reports.items():
        for case in ET.fromstring(report).iter("testcase"):
            name, skipped = case.get("name", ""), case.find("skipped")
            if skipped is not None:
                reasons[name] = skipped.get("message", "")
            elif len(case):
                raise ValueError(f"{name} did not pass on {release}: mend the scenario")
            else:
                passed[name].append(release)
    told = {name: ", ".join(passed[name]) or reasons.get(name, "") for name in SCENARIOS}
    return "".join(f"{name}\t{what}\n" for name, what in sorted(told.items()))


def main(arguments: Sequence[str]) -> None:
    """Write the table from arguments such as 4.2.4=DIR."""
    folders = dict(each.split("=", 1) for each in arguments)
    reports = {release: Path(folder, "conformance.xml").read_text("utf-8") for release, folder in folders.items()}
    PROOF.write_text(table(reports), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
