"""Transactions with very many topics and subscriptions: records of bounded size, and ends of several turns."""

from __future__ import annotations

import pytest
import trio

from pulsarium.broker.model.errors import CoordinatorNotFoundError, InvalidTxnStatusError, TransactionNotFoundError
from pulsarium.broker.model.transaction.coordinator import PARTS_A_STEP
from pulsarium.broker.model.transaction.transaction import PAGE, Status, TransactionPart
from pulsarium.broker.net import slices
from tests.broker.model.transaction.parts import PATH, Bench

pytestmark = [pytest.mark.usefixtures("autojump_clock"), pytest.mark.req("B-29")]

LONG = "x" * (PAGE // 4)  # of the names of topics, so that few fill a page
SOON = 0.001


@pytest.fixture
def each_part_is_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE", 0)


def stored(bench: Bench) -> dict[str, int]:
    """Return the names and sizes of the records of transactions."""
    records = bench.store.metadata.items()
    return {path[len(PATH) + 1 :]: len(value) for path, value in records if path.startswith(f"{PATH}/")}


def crashed(bench: Bench) -> Bench:
    """Start a coordinator and the same participants on what the store has committed, as after a crash."""
    again = Bench(bench.store.left_behind(), bench.cluster.clock)
    for topic, subscription in bench.parts:
        again.part(topic.rpartition("-")[2], subscription)
    return again


def many(bench: Bench, count: int) -> list[TransactionPart]:
    return [bench.part(f"{number:04}{LONG}") for number in range(count)]


def ended(bench: Bench) -> list[TransactionPart]:
    """Return the parts that have ended, in order, each as often as it ended."""
    told = [(part, each) for part, each in bench.parts.items() for _ in each.ended]
    return [part for part, each in sorted(told, key=lambda one: one[1].when)]


def outcomes(bench: Bench) -> set[str]:
    """Return the participants in whose records the end is."""
    return {path for path in bench.store.metadata if path.startswith("/parts/")}


# records


async def test_no_record_of_a_transaction_is_long(bench: Bench) -> None:
    least, parts = bench.begin(), many(bench, 20)
    for part in parts:
        bench.add(least, part)
    assert max(stored(bench).values()) <= 2 * PAGE
    assert len(stored(bench)) > 3
    bench.end(least)
    assert ended(bench) == parts
    assert stored(bench) == {}


async def test_adding_a_part_to_many_stores_no_other_page_again(bench: Bench) -> None:
    least = bench.begin(*many(bench, 20))
    before = set(stored(bench))
    bench.cluster.turn.finish()
    bench.store.holding = True
    bench.add(least, bench.part("new"))
    batch, _ = bench.store.waiting[0]
    assert list(batch.metadata) == [f"{PATH}/{least}"]
    bench.store.release()
    assert set(stored(bench)) == before


async def test_a_part_that_is_added_again_is_stored_once(bench: Bench) -> None:
    parts = many(bench, 20)
    least = bench.begin(*parts)
    sizes = stored(bench)
    bench.add(least, *parts)
    for _ in bench.coordinator.add_in_steps(least, parts, bench.answers.append):
        pass
    bench.finish()
    assert stored(bench) == sizes


async def test_the_parts_of_all_records_are_there_after_a_crash(bench: Bench) -> None:
    least = bench.begin(*many(bench, 20), bench.part("few"))
    bench.add(least, bench.part("late", "s"))
    again = crashed(bench)
    parts = [part for _, page in again.coordinator.transaction(least).in_order() for part in page]
    assert set(parts) == set(bench.parts)
    assert all(part in again.coordinator.transaction(least) for part in parts)
    sizes = stored(again)
    again.add(least, *many(again, 20))
    assert stored(again) == sizes


async def test_acknowledgements_in_any_record_end_first(bench: Bench) -> None:
    least = bench.begin(*many(bench, 10), bench.part(LONG, "a"))
    bench.add(least, *[bench.part(LONG, f"{number}") for number in range(10)], bench.part("few", "s"))
    bench.end(least)
    kinds = [part.subscription is None for part in ended(bench)]
    assert kinds == sorted(kinds)
    assert len(kinds) == 22


async def test_a_failed_commit_takes_back_the_pages_of_an_add(bench: Bench) -> None:
    least = bench.begin()
    bench.store.holding = True
    bench.add(least, *many(bench, 20))
    bench.store.fail()
    bench.store.release()
    assert isinstance(bench.answers.pop(), CoordinatorNotFoundError)
    assert bench.coordinator.transaction(least).has_ended
    bench.add(least, *bench.parts)
    bench.end(least)
    assert ended(bench) == list(bench.parts)


# adding very many


async def test_very_many_parts_are_added_together(bench: Bench) -> None:
    least = bench.begin()
    parts = [bench.part(f"{number:04}") for number in range(3 * PARTS_A_STEP)]
    steps = bench.coordinator.add_in_steps(least, iter([*parts, *parts]), bench.answers.append)
    for _ in range(6):
        next(steps)
        bench.finish()
        assert bench.coordinator.transaction(least).has_ended
        assert list(stored(bench)) == [f"{least}"]
    assert list(steps) == []
    bench.finish()
    assert bench.answers == [None, None]
    bench.end(least)
    assert ended(bench) == parts


async def test_very_many_parts_join_those_that_were_added_meanwhile(bench: Bench) -> None:
    least = bench.begin()
    first, second, third = (bench.part(name) for name in "abc")
    steps = [bench.coordinator.add_in_steps(least, [part], bench.answers.append) for part in (first, second)]
    for each in steps:
        next(each)
    bench.add(least, third)
    for each in steps:
        list(each)
    bench.end(least)
    assert sorted(ended(bench)) == [first, second, third]


async def test_very_many_parts_of_a_transaction_that_ends_meanwhile_are_refused(bench: Bench) -> None:
    least, part = bench.begin(), bench.part("a")
    steps = bench.coordinator.add_in_steps(least, [part], bench.answers.append)
    next(steps)
    bench.end(least)
    with pytest.raises(TransactionNotFoundError):
        next(steps)
    assert stored(bench) == {}


async def test_a_part_that_two_requests_add_at_once_ends_once(bench: Bench) -> None:
    least, part = bench.begin(), bench.part("a")
    steps = [bench.coordinator.add_in_steps(least, [part], bench.answers.append) for _ in range(2)]
    for each in (*steps, *steps):
        next(each, None)
    bench.end(least)
    assert ended(bench) == [part]


# ends of several turns


@pytest.mark.usefixtures("each_part_is_a_slice")
class TestInSlices:
    async def test_an_end_gives_way_after_each_slice(self, bench: Bench) -> None:
        parts = [bench.part(name) for name in "abcd"]
        least = bench.begin(*parts)
        bench.answers.clear()
        bench.end(least)
        assert ended(bench) == parts[:1]
        assert (bench.coordinator.is_ending(least), bench.answers) == (True, [])
        await trio.sleep(SOON)
        assert ended(bench) == parts
        assert (bench.coordinator.is_ending(least), bench.answers) == (False, [None])
        assert stored(bench) == {}

    async def test_a_transaction_that_is_ending_takes_nothing_more(self, bench: Bench) -> None:
        parts = [bench.part(name) for name in "abcd"]
        least = bench.begin(*parts)
        bench.answers.clear()
        bench.end(least)
        with pytest.raises(InvalidTxnStatusError, match="to be in `ABORTING` status but it is in `COMMITTING` status"):
            bench.end(least, commit=False)
        with pytest.raises(InvalidTxnStatusError, match="to be in `OPEN` status but it is in `COMMITTING` status"):
            bench.add(least, parts[0])
        bench.coordinator.time_out(least)
        bench.end(least)  # the same end again is answered with the first
        assert bench.answers == []
        await trio.sleep(SOON)
        assert ended(bench) == parts
        assert bench.answers == [None, None]

    async def test_a_timeout_gives_way_too(self, bench: Bench) -> None:
        parts = [bench.part(name) for name in "abcd"]
        least = bench.begin(*parts, timeout_ms=1000)
        await trio.sleep(1 - SOON)
        bench.coordinator.time_out(least)
        assert ended(bench) == parts[:1]
        assert bench.coordinator.transaction(least).status is Status.ABORTING
        await trio.sleep(1)
        assert ended(bench) == parts
        assert bench.open == []

    async def test_a_part_that_cannot_end_is_tried_again_after_all_others(self, bench: Bench) -> None:
        parts = many(bench, 10)
        bench.parts[parts[2]].unable = bench.parts[parts[7]].unable = True
        least = bench.begin(*parts)
        bench.end(least)
        await trio.sleep(0.5)
        assert ended(bench) == [part for part in parts if part not in (parts[2], parts[7])]
        left = [part for _, page in bench.coordinator.transaction(least).in_order() for part in page]
        assert left == [parts[2], parts[7]]
        bench.parts[parts[2]].unable = bench.parts[parts[7]].unable = False
        await trio.sleep(1)
        assert ended(bench)[8:] == [parts[2], parts[7]]
        assert stored(bench) == {}

    async def test_a_failed_commit_stops_an_end_that_is_tried_again(self, bench: Bench) -> None:
        parts = many(bench, 10)
        least = bench.begin(*parts)
        bench.answers.clear()
        bench.store.holding = True
        bench.end(least)
        bench.store.release(1)  # the parts that ended in the first turn have ended
        bench.store.holding = True
        await trio.sleep(SOON)
        bench.store.fail()
        bench.store.release()
        assert [type(answer) for answer in bench.answers] == [CoordinatorNotFoundError]
        assert bench.coordinator.transaction(least).status is Status.COMMITTING
        assert len(outcomes(bench)) == 1
        await trio.sleep(2)
        assert [len(bench.parts[part].ended) for part in parts] == [1] + [2] * 9
        assert len(outcomes(bench)) == 10

    @pytest.mark.parametrize("commit", [True, False])
    async def test_an_end_goes_on_after_a_crash_between_any_two_commits(
        self, bench: Bench, nursery: trio.Nursery, commit: bool
    ) -> None:
        """The parts that had not ended before the crash end after it, and no part ends twice."""
        parts = [bench.part(LONG, "s"), *many(bench, 8), bench.part("few")]
        for commits in range(len(parts) + 1):
            begun = Bench(clock=bench.cluster.clock)
            for part in parts:
                begun.part(part.topic.rpartition("-")[2], part.subscription)
            least = begun.begin(*parts)
            begun.store.holding = True
            begun.end(least, commit=commit)
            await trio.sleep(SOON)
            begun.store.release(commits)
            before = outcomes(begun)
            assert len(before) == commits
            again = crashed(begun)
            assert again.open == ([least] if commits < len(parts) else [])
            nursery.start_soon(again.cluster.clock.run)
            await trio.sleep(SOON if commits else 60)  # before the first commit, the transaction is open
            assert again.open == []
            assert len(ended(again)) == len(parts) - commits
            assert len(outcomes(again)) == len(parts)
            assert {again.store.metadata[path] for path in outcomes(again)} == {
                b"committed" if commit and commits else b"aborted"
            }
            assert stored(again) == {}
            begun.store.release()

    async def test_an_end_stops_when_another_state_replaces_its_coordinator(self, bench: Bench) -> None:
        parts = [bench.part(name) for name in "abcd"]
        bench.end(bench.begin(*parts))
        bench.coordinator.close()
        await trio.sleep(SOON)
        assert ended(bench) == parts[:1]
