"""Tests of the short form of scripts/soak, and of its accounts and gauges.

Tests of the short form of `scripts/soak --scalable`, and of its accounts.
"""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from tests.capture.check.judged import judged_file
from yardsticks.soak.account import Account
from yardsticks.soak.gauges import MB, Sample, left_over, objects_left, trends
from yardsticks.soak.run import broker, run
from yardsticks.soak.scalable import Account as ScalableAccount
from yardsticks.soak.scalable import soak


@pytest.mark.heavy
@pytest.mark.foreign
@pytest.mark.timeout(600)
def test_a_minute_of_mixed_load_loses_nothing(tmp_path: Path) -> None:
    with broker(tmp_path, memory=False) as process:
        outcome = run(process, 60.0, seed=1, workers=1)
    assert outcome.violations == []
    assert all(seen for name, confirmed, seen, _ in outcome.told.streams if confirmed)


@pytest.mark.heavy
@pytest.mark.foreign
@pytest.mark.timeout(600)
def test_the_history_checker_finds_nothing_in_a_soak(tmp_path: Path) -> None:
    path = tmp_path / "soak.pulscap"
    with broker(tmp_path, "--capture", str(path), memory=True) as process:
        run(process, 15.0, seed=2, workers=1)
    tally = judged_file(path)
    assert tally.verdicts == []
    assert {"message-lost", "producer-order", "subscription-order", "key-order", "dirty-read"} <= tally.kept.keys()


def published(account: Account, count: int) -> Account:
    for number in range(count):
        account.publish(number)
    return account


def test_unseen_messages_are_missing() -> None:
    account = published(Account("a"), 5)
    for number in (0, 4, 2):
        assert account.saw(number)
    assert account.missing == [(0, 1), (0, 3)]
    assert not account.is_complete
    assert account.saw(1)
    assert account.saw(3)
    assert account.missing == []
    assert not account.violations


def test_the_account_counts_duplicates() -> None:
    often, once = Account("often"), Account("once", once=True)
    for account in (often, once):
        account.saw(0)
        assert not account.saw(0)
        assert account.again == 1
    assert often.violations == []
    assert once.violations == ["once: 0 of lane 0 came twice"]


def test_order_is_of_what_is_new_in_a_lane() -> None:
    account = Account("a", ordered=True)
    for lane, number in ((0, 0), (1, 0), (0, 1), (0, 0), (0, 1), (1, 1), (0, 2)):
        account.saw(number, lane)
    assert account.violations == []
    account.saw(4)
    assert account.violations == ["a: 4 of lane 0 came where 3 was next"]


def test_a_lane_that_is_over() -> None:
    account = published(Account("a"), 2)
    account.saw(0)
    account.forget(0)
    assert account.violations == ["a: 1 of lane 0 was never seen"]
    assert account.is_complete


def samples(*megabytes: float, tasks: int = 10) -> list[Sample]:
    return [Sample(float(at), int(used * MB), 20, 5, tasks, 3, 0.0) for at, used in enumerate(megabytes)]


def test_growth_after_the_first_quarter() -> None:
    def held(*megabytes: float) -> bool:
        return trends(samples(*megabytes))[0].held

    assert held(10, 40, 60, 60, 61, 60, 62, 63)
    assert held(60, 60, 60, 60, 90, 60, 60, 60)  # a short peak is no growth
    assert not held(10, 40, 60, 60, 65, 70, 75, 80)


def test_the_soak_names_what_a_broker_did_not_release() -> None:
    (before,), (after,) = samples(50, tasks=10), samples(80, tasks=12)
    assert left_over(before, after) == ["2 tasks are left over: 10 before, 12 after"]
    assert left_over(after, before) == []


def test_objects_of_what_is_gone() -> None:
    before = {"pulsarium.broker.session.session.Session": 1, "builtins.list": 10}
    after = {"pulsarium.broker.session.session.Session": 3, "builtins.list": 20, "somebody.Session": 5}
    assert objects_left(before, after) == ["2 objects are left over of pulsarium.broker.session.session.Session"]
    assert objects_left(after, before) == []


@pytest.mark.heavy
@pytest.mark.foreign
@pytest.mark.timeout(600)
@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_splits_merges_unloads_and_kills_lose_nothing_and_keep_the_order(tmp_path: Path, backend: str) -> None:
    outcome = anyio.run(soak, tmp_path, 20.0, 1, 8.0, backend=backend)
    assert outcome.violations == []
    assert outcome.events["kills"]
    assert outcome.events["splits"]


def test_a_message_before_an_earlier_one_of_its_key_is_a_violation() -> None:
    account = ScalableAccount("stream", is_ordered=True)
    for number in (0, 1, 3, 2):
        account.saw("k", number)
    assert account.violations == ["stream: k has 3 in place of 2", "stream: k has 2 in place of 4"]


def test_a_message_may_come_again() -> None:
    account = ScalableAccount("stream", is_ordered=True)
    for number in (0, 1, 0, 1, 2):
        account.saw("k", number)
    assert not account.violations
    assert account.again == 2
