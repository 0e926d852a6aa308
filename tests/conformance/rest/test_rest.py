"""Fresh brokers must answer the recorded calls as the recorded brokers did, differs.toml apart."""

from __future__ import annotations

import pytest

from ..catalogue import DIFFERENCES
from . import excuses, report
from .command import everything
from .mutants import unnoticed


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> report.Findings:
    return everything(tmp_path_factory.mktemp("rest"))


@pytest.mark.req("B-48")
@pytest.mark.timeout(180)
def test_the_recorded_calls_are_answered_as_recorded(findings: report.Findings) -> None:
    wrong = report.unexcused(findings, excuses.load())
    assert not wrong, "\n".join(["", *wrong, "scripts/conformance rest -v shows what differs"])


@pytest.mark.timeout(180)
def test_forty_wrong_values_are_all_noticed(findings: report.Findings) -> None:
    assert unnoticed([verdict.played for verdict in findings.verdicts], excuses.load(), 40) == []


def test_every_difference_is_explained_in_the_documentation() -> None:
    assert excuses.undocumented(excuses.load(), DIFFERENCES.read_text()) == []
