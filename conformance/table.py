"""Print the results of several clients as one table in Markdown.

`python -m pulsarium.conformance.table ours/conformance.xml java/conformance.xml` prints the table of docs/matrix.md.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from pulsarium.conformance.run import Verdict
from pulsarium.conformance.scenarios import SCENARIOS

ABOUT: Final = (
    "## Clients of scalable topics",
    "",
    "The scenarios of the [conformance kit](conformance.md), each with the number of its",
    "requirement. A column names the client and the release whose behavior it follows (`--spec`).",
    "",
)
SIGNS: Final = {Verdict.PASS: "✓", Verdict.FAIL: "**✗**", Verdict.ERROR: "**!**", Verdict.UNSUPPORTED: "–"}
_TAGS: Final = {"failure": Verdict.FAIL, "error": Verdict.ERROR, "skipped": Verdict.UNSUPPORTED}


def table(reports: Sequence[str]) -> str:
    """Return the table of these JUnit reports, with a column for each, and the reasons for what did not pass."""
    suites = [ET.fromstring(each) for each in reports]
    titles = [each.get("name", "").removeprefix("conformance ") for each in suites]
    verdicts = [{case.get("name"): _verdict(case) for case in suite.iter("testcase")} for suite in suites]
    lines = [f"| scenario | sentence | {' | '.join(titles)} |", f"| --- | --- |{' :-: |' * len(titles)}"]
    for name, scenario in SCENARIOS.items():
        signs = [SIGNS[each[name]] if name in each else "" for each in verdicts]
        sentence = scenario.sentence.replace("|", "\\|")
        lines.append(f"| `{name}` | {sentence} ({scenario.requirement}) | {' | '.join(signs)} |")
    legend = ", ".join(f"{sign} {verdict}" for verdict, sign in SIGNS.items())
    reasons = [
        f"- `{case.get('name')}`, {title}: {told.get('message')}"
        for title, suite in zip(titles, suites, strict=True)
        for case in suite.iter("testcase")
        for told in case
    ]
    return "\n".join([*ABOUT, f"{legend}.", "", *lines, "", *reasons, *([""] if reasons else [])])


def _verdict(case: ET.Element) -> Verdict:
    return next((_TAGS[each.tag] for each in case if each.tag in _TAGS), Verdict.PASS)


if __name__ == "__main__":
    print(table([Path(each).read_text("utf-8") for each in sys.argv[1:]]), end="")
