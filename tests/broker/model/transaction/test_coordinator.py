"""A transaction coordinator: storage, ends, timeouts, retries, failed commits and crashes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import trio
import trio.lowlevel

from pulsarium.broker.clock import LOOK
from pulsarium.broker.model.cursor.effect import EndEffect
from pulsarium.broker.model.errors import CoordinatorNotFoundError, InvalidTxnStatusError, TransactionNotFoundError
from pulsarium.broker.model.transaction.coordinator import TooManyTransactionsError
from pulsarium.broker.model.transaction.transaction import Status
from pulsarium.proto.message_id import TxnId
from tests.broker.model.transaction.parts import PATH, Bench
from tests.broker.wall import Wall

pytestmark = [pytest.mark.usefixtures("autojump_clock"), pytest.mark.req("B-29")]


def crashed(bench: Bench) -> Bench:
    """Start a coordinator on what the store has committed, as after a crash."""
    return Bench(bench.store.left_behind(), bench.cluster.clock)


async def test_a_transaction_ends_wherever_it_was(bench: Bench) -> None:
    topic, subscription = bench.part("a"), bench.part("a", "s")
    least = bench.begin(topic, subscription)
    bench.end(least)
    assert bench.answers == [None] * 3
    assert bench.open == []
    for part in (topic, subscription):
        assert bench.parts[part].ended == [(TxnId(0, least), True, least - 1)]
    assert not [path for path in bench.store.metadata if path.startswith(f"{PATH}/")]


async def test_acknowledgements_end_before_what_was_published(bench: Bench) -> None:
    parts = [bench.part("b"), bench.part("c", "s"), bench.part("a"), bench.part("c", "r")]
    bench.end(bench.begin(*parts), commit=False)
    told = sorted(bench.parts, key=lambda part: bench.parts[part].when)
    assert told == [parts[3], parts[1], parts[2], parts[0]]


async def test_an_ended_transaction_is_not_found(bench: Bench) -> None:
    least = bench.begin()
    bench.end(least, commit=False)
    for number in (least, least + 1):
        with pytest.raises(TransactionNotFoundError) as error:
            bench.end(number)
        assert error.value.text == f"The transaction with this txdID `(0,{number})`not found "


async def test_the_low_watermark_is_below_the_oldest(bench: Bench) -> None:
    assert bench.coordinator.low_watermark == 0
    part = bench.part("a")
    first, second, third = (bench.begin(part) for _ in range(3))
    assert bench.coordinator.low_watermark == first - 1
    bench.end(second)
    bench.end(first)
    bench.end(third)
    assert [low for _, _, low in bench.parts[part].ended] == [first - 1, first - 1, third - 1]


async def test_a_part_that_is_gone_has_nothing_to_end(bench: Bench) -> None:
    gone, there = bench.part("gone"), bench.part("there")
    least = bench.begin(gone, there)
    del bench.parts[gone]
    bench.end(least)
    assert bench.open == []
    assert len(bench.parts[there].ended) == 1


async def test_too_many_open_transactions_are_refused() -> None:
    bench = Bench(maxActiveTransactionsPerCoordinator=2)
    bench.begin()
    least = bench.begin()
    with pytest.raises(TooManyTransactionsError):
        bench.begin()
    bench.end(least)
    assert bench.begin() == least + 1


# timeouts


async def test_a_transaction_is_aborted_after_its_timeout(bench: Bench) -> None:
    part = bench.part("a")
    least = bench.begin(part, timeout_ms=5000)
    await trio.sleep(4.9)
    assert bench.open == [least]
    await trio.sleep(0.2)
    assert bench.open == []
    assert bench.parts[part].ended == [(TxnId(0, least), False, least - 1)]


async def test_a_transaction_times_out_when_the_machine_slept_past_its_end(wall: Wall, bench: Bench) -> None:
    bench.begin(timeout_ms=1_800_000)
    wall.ahead += 3600
    await trio.sleep(LOOK + 0.1)
    assert bench.open == []


async def test_a_transaction_has_its_time_after_the_clock_was_set_back(wall: Wall, bench: Bench) -> None:
    least = bench.begin(timeout_ms=5000)
    wall.ahead -= 3600
    await trio.sleep(3604.9)
    assert bench.open == [least]
    await trio.sleep(0.2)
    assert bench.open == []


@pytest.mark.parametrize("timeout_ms", [0, -1])
async def test_without_any_time_it_is_aborted_at_once(bench: Bench, timeout_ms: int) -> None:
    bench.begin(timeout_ms=timeout_ms)
    await trio.sleep(0.001)
    assert bench.open == []
    assert bench.answers == [None]


async def test_a_transaction_that_ended_does_not_time_out(bench: Bench) -> None:
    part = bench.part("a")
    bench.end(bench.begin(part, timeout_ms=1000))
    await trio.sleep(5)
    assert len(bench.parts[part].ended) == 1


async def test_the_time_goes_on_over_a_restart(bench: Bench, nursery: trio.Nursery) -> None:
    least = bench.begin(timeout_ms=10_000)
    await trio.sleep(6)
    again = crashed(bench)
    nursery.start_soon(again.cluster.clock.run)
    await trio.sleep(3.9)
    assert again.open == [least]
    await trio.sleep(0.2)
    assert again.open == []


# effects


async def test_an_end_is_answered_when_all_its_effects_are_complete(bench: Bench) -> None:
    parts = [bench.part(name) for name in "abcd"]
    effects = [EndEffect() for _ in parts[1:]]
    for part, effect in zip(parts[1:], effects, strict=True):
        bench.parts[part].effect = effect
    effects[1].complete()
    least = bench.begin(*parts)
    bench.answers.clear()
    bench.end(least)
    assert bench.open == []
    effects[2].complete()
    assert bench.answers == []
    effects[0].complete()
    assert bench.answers == [None]


async def test_an_end_whose_commit_fails_waits_for_no_effect(bench: Bench) -> None:
    part = bench.part("a")
    bench.parts[part].effect = EndEffect()
    least = bench.begin(part)
    bench.answers.clear()
    bench.store.holding = True
    bench.end(least)
    bench.store.fail()
    assert [type(answer) for answer in bench.answers] == [CoordinatorNotFoundError]
    bench.store.release()
    bench.parts[part].effect = None
    bench.end(least)
    assert bench.answers[1:] == [None]


# ends that are retried


async def test_ending_a_transaction_is_retried_where_it_failed(bench: Bench) -> None:
    able, unable = bench.part("able"), bench.part("unable")
    bench.parts[unable].unable = True
    least = bench.begin(able, unable, timeout_ms=1500)
    bench.end(least)
    await trio.sleep(3.5)
    assert bench.answers == [None, None]  # the answers of begin and add
    assert bench.coordinator.transaction(least).status is Status.COMMITTING
    assert len(bench.parts[able].ended) == 1
    bench.parts[unable].unable = False
    await trio.sleep(1)
    assert bench.answers == [None] * 3
    assert bench.parts[unable].ended == [(TxnId(0, least), True, least - 1)]
    assert len(bench.parts[able].ended) == 1


async def test_while_it_ends_it_takes_nothing_more(bench: Bench) -> None:
    part = bench.part("a")
    bench.parts[part].unable = True
    least = bench.begin(part)
    bench.end(least)
    with pytest.raises(InvalidTxnStatusError, match="to be in `ABORTING` status but it is in `COMMITTING` status"):
        bench.end(least, commit=False)
    with pytest.raises(InvalidTxnStatusError, match="to be in `OPEN` status but it is in `COMMITTING` status"):
        bench.add(least, part)
    bench.parts[part].unable = False
    bench.end(least)  # a repeated request is tried at once
    assert bench.answers == [None] * 4


async def test_an_end_that_was_begun_goes_on_after_a_restart(bench: Bench, nursery: trio.Nursery) -> None:
    part = bench.part("a")
    bench.parts[part].unable = True
    bench.end(bench.begin(part), commit=True)
    again = crashed(bench)
    again.part("a")
    nursery.start_soon(again.cluster.clock.run)
    await trio.sleep(0.001)
    assert again.open == []
    assert again.parts[part].ended == [(TxnId(0, 0), True, -1)]


# failed commits


def asked(bench: Bench) -> dict[str, Callable[[], object]]:
    """Return all requests about transaction 0, which is open and has touched participant a."""
    return {
        "begin": bench.begin,
        "add": lambda: bench.add(0, bench.part("b")),
        "commit": lambda: bench.end(0),
        "abort": lambda: bench.end(0, commit=False),
    }


@pytest.mark.parametrize("what", ["begin", "add", "commit", "abort"])
async def test_a_failed_commit_is_taken_back(bench: Bench, what: str) -> None:
    bench.begin(bench.part("a"), timeout_ms=10_000)
    before = list(bench.coordinator.transactions)
    bench.answers.clear()
    bench.store.holding = True
    asked(bench)[what]()
    assert bench.answers == []
    bench.store.fail()
    (answer,) = bench.answers
    assert isinstance(answer, CoordinatorNotFoundError)
    assert list(bench.coordinator.transactions) == before
    bench.store.release()
    asked(bench)[what]()
    assert bench.answers[1:] == [None]


async def test_of_several_that_fail_none_is_kept(bench: Bench) -> None:
    bench.store.holding = True
    a = bench.part("a")
    first = bench.begin(a)
    bench.store.release(1)
    second = bench.begin(a)
    bench.end(first)
    assert bench.open == [second]
    bench.store.fail()
    assert bench.open == [first]
    assert [type(answer) for answer in bench.answers[2:]] == [CoordinatorNotFoundError] * 3
    bench.store.release()
    assert bench.begin() > second
    assert bench.open == [first, second + 1]


async def test_a_timeout_whose_commit_fails_comes_again(bench: Bench) -> None:
    bench.begin(bench.part("a"), timeout_ms=1000)
    bench.store.holding = True
    await trio.sleep(1.1)
    bench.store.fail()
    bench.store.release()
    assert bench.open == [0]
    await trio.sleep(1.1)
    assert bench.open == []


async def test_ends_that_fail_together_leave_the_oldest_first(bench: Bench) -> None:
    begun = [bench.begin() for _ in range(4)]
    bench.store.holding = True
    for least in (1, 0, 3):
        bench.end(least)
    bench.store.fail()
    bench.store.release()
    assert bench.coordinator.low_watermark == begun[0] - 1
    assert bench.open == begun


# crashes between commits


def steps(bench: Bench) -> Iterator[Callable[[], object]]:
    """Yield the steps of two transactions on two topics and a subscription. One is committed and one is aborted."""
    a, b, s = bench.part("a"), bench.part("b"), bench.part("a", "s")
    done = bench.answers.append
    coordinator = bench.coordinator
    yield lambda: coordinator.begin(60_000, None, done)
    yield lambda: coordinator.begin(60_000, "me", done)
    yield lambda: coordinator.add(0, [a, b], done)
    yield lambda: coordinator.add(1, [a], done)
    yield lambda: coordinator.add(0, [s], done)
    yield lambda: coordinator.end(0, commit=True, done=done)
    yield lambda: coordinator.end(1, commit=False, done=done)


async def test_a_coordinator_survives_a_crash_between_any_two_commits() -> None:
    """A new broker finds a consistent state after any number of commits, and each turn is one commit.

    A transaction has ended on all of its participants or on none, all answered requests are stored, and no transaction
    number is used twice.
    """
    for commits in range(8):
        bench = Bench()
        bench.finish()  # commits what the cluster stores at its start
        bench.store.holding = True
        for step in steps(bench):
            step()
            bench.finish()
        bench.store.release(commits)
        again = crashed(bench)
        answered = len(bench.answers)
        assert answered == commits
        results = {path: value for path, value in again.store.metadata.items() if path.startswith("/parts/")}
        committed, aborted = b"committed" in results.values(), b"aborted" in results.values()
        assert sorted(results.values()) == [b"aborted"] * (commits >= 7) + [b"committed"] * (3 if commits >= 6 else 0)
        begun = range(min(commits, 2))
        over = {0: committed, 1: aborted}
        assert again.open == [least for least in begun if not over[least]]
        for transaction in again.coordinator.transactions:
            assert transaction.owner == (None, "me")[transaction.least]
        touched = {0: (2, 4), 1: (3,)}  # the commit of each of its adds
        for transaction in again.coordinator.transactions:
            adds = sum(commits > index for index in touched[transaction.least])
            assert bool(transaction.parts) == bool(adds)
        assert again.begin() == len(begun)  # the store has no later number
        bench.cluster.storage.settle()
