"""The history checker finds planted violations, and no violation in recordings of a real broker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pulsarium.capture.check.promises import PROMISES
from pulsarium.capture.file import CaptureRecord
from pulsarium.capture.lint.checker import all_opened
from tests.capture.check.judged import judged
from tests.capture.check.planted import KEPT, PLANTED, UNSEEN, History
from tests.capture.lint.transcripts import FOLDER, complete, records

SURE = [(name, plant) for name, plants in PLANTED.items() for plant in plants]
POSSIBLE = [(name, plant) for name, plants in UNSEEN.items() for plant in plants]
RECORDED = [*complete(), *sorted((FOLDER / "pulsar-5").glob("*.jsonl"))]


def history(plant: Callable[[History], None]) -> list[CaptureRecord]:
    talk = History()
    plant(talk)
    return talk.records


def test_each_promise_has_a_history_that_breaks_it() -> None:
    assert PLANTED.keys() | UNSEEN.keys() == PROMISES.keys()


@pytest.mark.parametrize(("promise", "plant"), SURE)
def test_a_planted_anomaly_is_found(promise: str, plant: Callable[[History], None]) -> None:
    tally = judged(history(plant))
    assert dict(tally.broken) == {promise: 1}
    assert all(each.frames for each in tally.verdicts)


@pytest.mark.parametrize(("promise", "plant"), POSSIBLE)
def test_a_violation_that_rest_calls_may_explain_is_not_proven(promise: str, plant: Callable[[History], None]) -> None:
    assert not judged(history(plant)).broken
    assert dict(judged(history(plant), nothing_unseen=True).broken) == {promise: 1}


@pytest.mark.parametrize("plant", KEPT)
def test_a_legal_history_breaks_no_promise(plant: Callable[[History], None]) -> None:
    assert judged(history(plant), nothing_unseen=True).verdicts == []


def test_a_fault_of_the_lab_proves_nothing() -> None:
    talk = History()
    PLANTED["message-lost"][0](talk)
    faulted = [replace(each, note={"did": "delayed"}) if each is talk.records[7] else each for each in talk.records]
    tally = judged(faulted)
    assert not tally.broken
    assert tally.unproven["message-lost", "a fault of the lab changed frames of the topic"] == 1


def test_a_verdict_names_its_frames() -> None:
    (verdict,) = judged(history(PLANTED["message-lost"][0])).verdicts
    assert str(verdict) == (
        "message-lost: 1:1 was never delivered, although 1:2 came (persistent://public/default/t, subscription 's'): "
        "SEND_RECEIPT (connection 0, frame 10), then MESSAGE (connection 0, frame 14)"
    )
    assert [each.record for each in verdict.frames] == [12, 16]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_real_broker_breaks_no_promise(path: Path) -> None:
    tally = judged(records(path), whole=all_opened(records(path)))
    assert tally.verdicts == []
