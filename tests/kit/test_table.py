"""The table of several clients, from their reports."""

from __future__ import annotations

from pulsarium.kit.report import junit
from pulsarium.kit.run import Client, Result, Verdict
from pulsarium.kit.scenario import SCENARIOS
from pulsarium.kit.table import ABOUT, table


def test_each_report_is_a_column_and_reasons_follow() -> None:
    first, second, *_ = SCENARIOS.values()
    reports = [
        junit(
            [Result(first, Verdict.PASS), Result(second, Verdict.FAIL, "lost b")], Client("A", "1", frozenset()), "5.0"
        ),
        junit([Result(first, Verdict.UNSUPPORTED, "no stream")], Client("B", "2", frozenset()), "5.0"),
    ]
    lines = table(reports).splitlines()[len(ABOUT) :]
    assert lines[2] == "| scenario | sentence | A 5.0 | B 5.0 |"
    assert lines[4].endswith("| ✓ | – |")
    assert lines[5].endswith("| **✗** |  |")
    assert lines[-2:] == [f"- `{second.name}`, A 5.0: lost b", f"- `{first.name}`, B 5.0: no stream"]
