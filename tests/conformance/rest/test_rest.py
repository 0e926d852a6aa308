"""Fresh brokers must answer the recorded calls as the recorded brokers did, differs.toml apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..catalogue import DIFFERENCES
from . import excuses, report
from .command import everything

ENOUGH = 95.0
"""Percent of the calls on handled routes."""


@pytest.mark.heavy
@pytest.mark.req("B-48")
@pytest.mark.timeout(180)
def test_the_recorded_calls(tmp_path: Path) -> None:
    findings = everything(tmp_path, "shape")
    assert findings.share >= ENOUGH, report.table(findings, [])
    wrong = report.unexcused(findings, excuses.load())
    assert not wrong, "\n".join(["", *wrong, "scripts/conformance rest -v shows what differs"])


def test_what_differs_is_explained() -> None:
    assert excuses.undocumented(excuses.load(), DIFFERENCES.read_text()) == []
