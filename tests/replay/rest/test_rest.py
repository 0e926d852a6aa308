"""Fresh brokers must answer the recorded calls as the recorded brokers did, differs.toml apart.

Recordings can be read, and have only steps that the player knows.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from yardsticks.replay.expectations import DIFFERENCES
from yardsticks.replay.rest import excuses, report
from yardsticks.replay.rest.command import everything
from yardsticks.replay.rest.mutants import unnoticed
from yardsticks.replay.rest.player import MARK
from yardsticks.replay.rest.recording import AUTH, Call, Step, load
from yardsticks.replay.rest.steps import STEPS


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> report.Findings:
    return everything(tmp_path_factory.mktemp("rest"))


@pytest.mark.req("B-48")
@pytest.mark.timeout(600)
def test_the_recorded_calls_are_answered_as_recorded(findings: report.Findings) -> None:
    wrong = report.unexcused(findings, excuses.load())
    assert not wrong, "\n".join(["", *wrong, "scripts/conformance rest -v shows what differs"])


@pytest.mark.timeout(600)
def test_forty_wrong_values_are_all_noticed(findings: report.Findings) -> None:
    assert unnoticed([verdict.played for verdict in findings.verdicts], excuses.load(), 40) == []


def test_every_difference_is_explained_in_the_documentation() -> None:
    assert excuses.undocumented(excuses.load(), DIFFERENCES.read_text()) == []


def test_every_line_is_a_call_or_a_step() -> None:
    lines = load(auth=False) + load(auth=True)
    calls = [line for line in lines if isinstance(line, Call) and line.recorded]
    # 3 calls hung on Pulsar itself, and the call to shut down is not made
    assert len(calls) == 3401 + 126 - 4
    assert {call.resource for call in calls} > {"persistent", "namespaces", "lookup", AUTH, "other"}


def test_the_order_is_that_of_the_recording() -> None:
    notes = [line.note for line in load(auth=False) if isinstance(line, Call)]
    assert notes[0] == "before set-up"
    assert notes[-1] == "after that"


def test_the_steps_are_known() -> None:
    assert {line.name for line in load(auth=False) if isinstance(line, Step)} == set(STEPS)


def test_a_line_says_what_was_sent_and_answered(tmp_path: Path) -> None:
    (tmp_path / "01-x.jsonl").write_text(
        '{"step":"five messages"}\n'
        '{"method":"PUT","route":"/admin/v2/tenants/{tenant}","url":"/admin/v2/tenants/t","json":{"a":1},"status":204}\n'
        '{"method":"GET","route":"/lookup/v2/x","url":"/lookup/v2/x","status":200,"answer":"ok","plain":true,'
        '"headers":{"Accept":"*/*"},"varies":"texts"}\n'
    )
    (tmp_path / "auth.jsonl").write_text(
        '{"method":"GET","route":"/metrics","url":"/metrics","status":404,"page":true}\n'
    )
    step, put, get = load(auth=False, folder=tmp_path)
    assert step == Step("five messages")
    assert isinstance(put, Call)
    assert isinstance(get, Call)
    assert (put.resource, put.body, put.headers["Content-Type"]) == ("tenants", '{"a": 1}', "application/json")
    assert (put.golden.status, put.golden.body) == (204, "")
    assert (get.resource, get.body, get.headers) == ("lookup", None, {"Accept": "*/*"})
    assert get.golden.plain
    assert (get.counts, get.body_counts, get.text_counts) == (True, True, False)
    (page,) = load(auth=True, folder=tmp_path)
    assert isinstance(page, Call)
    assert (page.resource, page.compared) == (AUTH, False)


def test_a_mark_stands_for_a_name_of_the_broker() -> None:
    assert [found.groups() for found in re.finditer(MARK, "/ledger/<<ledger s-avro>>/x?brokerId=<<broker>>")] == [
        ("ledger", "s-avro"),
        ("broker", None),
    ]
