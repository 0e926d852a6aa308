"""The replay itself, with a recorder that hands out golden recordings in the place of a broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from pulsarium.conformance.recordings.catalogue import Recorded, named, recorded
from pulsarium.conformance.recordings.releases import PULSAR_4
from pulsarium.conformance.recordings.replay import Broker, BrokerError, Replay, Verdict
from yardsticks.replay import report
from yardsticks.replay.expectations import Known

LAB = recorded(PULSAR_4, "lab")
NOWHERE = Broker("pulsar://127.0.0.1:1", "http://127.0.0.1:1")


@contextmanager
def nowhere(name: str) -> Iterator[Broker]:
    yield NOWHERE


class Copying(Replay):
    """Copy the recording instead of playing a scenario. The first play of scenario 2 lacks the broker's answers."""

    def play(self, scenario: Recorded, broker: Broker) -> Verdict:
        recording = self.out / f"{scenario.name}.jsonl"
        lines = (PULSAR_4.folder / recording.name).read_text().splitlines(keepends=True)
        if scenario.number == 2 and not recording.exists():
            lines = [line for line in lines if "b2c" not in line]
        recording.write_text("".join(lines))
        return self.compare(scenario)


def test_a_recording_equals_itself_and_differs_without_the_brokers_words(tmp_path: Path) -> None:
    told: list[Verdict] = []
    scenarios = named(LAB, ["001-003"])
    verdicts = Copying(tmp_path).run(scenarios, nowhere, 2, told.append)
    assert [(v.scenario.number, v.equal, v.plays) for v in verdicts] == [(1, True, 1), (2, True, 2), (3, True, 1)]
    first = next(v for v in told if v.scenario.number == 2)
    assert (first.equal, first.same, first.plays) == (False, 0, 1)
    assert "CONNECTED" in first.words


def test_nothing_is_played_more_than_twice(tmp_path: Path) -> None:
    told: list[Verdict] = []
    Copying(tmp_path).run(named(LAB, ["001"]), nowhere, 1, told.append, good=lambda verdict: False)
    assert [verdict.plays for verdict in told] == [1, 2]


def test_a_broker_that_does_not_start_ends_the_run(tmp_path: Path) -> None:
    def broken(name: str) -> AbstractContextManager[Broker]:
        raise BrokerError("port in use")

    with pytest.raises(BrokerError, match="port in use"):
        Replay(tmp_path).run(named(LAB, ["001-003"]), broken, 2, lambda verdict: None)


def test_a_scenario_that_was_not_recorded_is_not_equal(tmp_path: Path) -> None:
    [scenario] = named(LAB, ["1"])
    verdict = Replay(tmp_path).compare(scenario)
    assert (verdict.equal, verdict.same) == (False, 0)


ONE = Recorded(1, "001-connect-versions", "lab", "CONNECT", 0.1)
LISTED = ("- [A] PONG", "+ [A] ERROR")
KNOWN = {ONE.name: Known(ONE.name, LISTED, "a later issue")}


def test_an_equal_scenario_is_no_failure() -> None:
    verdict = Verdict(ONE, 5, 5)
    assert report.line(verdict, {}) == "equal      5 of    5  001-connect-versions"
    assert report.failures([verdict], {}) == []


def test_a_difference_fails() -> None:
    verdict = Verdict(ONE, 4, 5)
    assert report.line(verdict, {}).startswith("DIFFER")
    assert report.failures([verdict], {}) == [verdict]


def test_an_answer_may_differ_as_it_is_listed() -> None:
    listed = Verdict(ONE, 3, 5, answers=LISTED)
    assert report.failures([listed], KNOWN) == []
    assert "a later issue" in report.line(listed, KNOWN)


@pytest.mark.parametrize("answers", [("- [A] PONG", "+ [A] another ERROR"), ("- [B] PONG",), ("+ [A] ERROR",) * 2])
def test_as_many_answers_that_differ_otherwise_are_not_excused(answers: tuple[str, ...]) -> None:
    verdict = Verdict(ONE, 3, 5, answers=answers)
    assert report.failures([verdict], KNOWN) == [verdict]
    assert "NOT LISTED: 1" in report.line(verdict, KNOWN)


def test_trouble_is_never_excused() -> None:
    verdict = Verdict(ONE, 5, 5, trouble="the broker is gone")
    assert report.failures([verdict], KNOWN) == [verdict]
    assert report.line(verdict, KNOWN).startswith("TROUBLE")
    assert report.details(verdict) == "the broker is gone"


def test_an_excuse_that_is_not_needed_is_pointed_out() -> None:
    assert "take it off the list" in report.line(Verdict(ONE, 5, 5), KNOWN)


def test_the_summary_counts_equal_scenarios_and_answers() -> None:
    verdicts = [Verdict(ONE, 4, 5)]
    text = report.summary(verdicts, verdicts, 12.3)
    assert text == "0 of 1 scenarios equal, 4 of 5 answers (80.0%), 12 s; NOT AS REQUIRED: 001-connect-versions"


def test_the_last_line_names_what_was_played_twice() -> None:
    text = report.summary([Verdict(ONE, 5, 5, plays=2)], [], 12.3)
    assert text == "1 of 1 scenarios equal, 5 of 5 answers (100.0%), 12 s; played twice: 001-connect-versions"
