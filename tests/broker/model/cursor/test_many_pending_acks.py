"""Acknowledgements of very many entries in a transaction, and the end of such a transaction: in several turns."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from trio.lowlevel import checkpoint
from trio.testing import wait_all_tasks_blocked

from pulsarium.broker.model.cursor import pending_acks
from pulsarium.broker.model.cursor.pending_record import PendingEntry
from pulsarium.broker.model.errors import TransactionConflictError
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.position_set import LAST_ID
from pulsarium.broker.model.subscription.base import Consumer
from pulsarium.broker.net import slices
from tests.broker.model.cursor.pended import NOTHING_OVER, Pended, consuming, part, txn
from tests.broker.wire import Exclusive, KeyShared, Shared, batch_of, plain

pytestmark = pytest.mark.req("B-29")

COUNT = 6
Steps = Generator[None, None, None]


@pytest.fixture(autouse=True)
def one_entry_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_acks, "ACKS_A_STEP", 1)


@pytest.fixture
def each_step_is_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE", 0)


def having(type: int = Shared) -> tuple[Pended, Consumer, list[Position]]:
    stand, consumer, sent = consuming(
        type, *[plain(b"%d" % number, partition_key="k") for number in range(COUNT)], permits=100
    )
    stand.got.clear()
    return stand, consumer, sent


def begun(stand: Pended, consumer: Consumer, *acks: Position | PendingEntry, steps: int, least: int = 1) -> Steps:
    """Begin to acknowledge very many entries, and go so many steps. The first ones only look for conflicts."""
    made = (each if isinstance(each, PendingEntry) else PendingEntry(each) for each in acks)
    found = stand.subscription.acknowledge_in_steps(txn(least), consumer, made)
    for _ in range(steps):
        next(found)
        stand.end_turn()
    return found


def finish(stand: Pended, steps: Steps) -> None:
    assert list(steps) is not None
    stand.end_turn()


async def acked(stand: Pended, consumer: Consumer, *acks: Position | PendingEntry) -> None:
    finish(stand, begun(stand, consumer, *acks, steps=0))


# acknowledging


async def test_very_many_entries_are_stored_together() -> None:
    stand, consumer, sent = having()
    steps = begun(stand, consumer, *sent[:4], steps=8)
    assert stand.kept == ["used"]
    assert consumer.unacked == 2
    finish(stand, steps)
    assert stand.kept == ["0", "1", "2", "3", "used"]
    again = stand.killed()
    again.join(again.client, Shared, permits=10)
    assert [position for position, _, _ in again.got] == sent[4:]
    again.commit(txn(1))
    assert again.acked == set(sent[:4])


async def test_a_conflict_of_the_last_entry_changes_nothing() -> None:
    stand, consumer, sent = having()
    stand.acks(txn(2), consumer, sent[3])
    kept = stand.kept
    steps = begun(stand, consumer, *sent[:4], steps=3)
    with pytest.raises(TransactionConflictError):
        next(steps)
    stand.end_turn()
    await wait_all_tasks_blocked()
    assert (stand.kept, stand.got, consumer.unacked) == (kept, [], COUNT - 1)
    stand.acks(txn(3), consumer, *sent[:3])


async def test_a_conflict_that_arises_meanwhile_takes_back_all() -> None:
    stand, consumer, sent = having()
    steps = begun(stand, consumer, *sent[:4], steps=6)
    stand.acks(txn(2), consumer, sent[3])
    with pytest.raises(TransactionConflictError):
        finish(stand, steps)
    await wait_all_tasks_blocked()
    assert [position for position, _, _ in stand.got] == sent[:3]
    assert stand.kept == ["2", "used"]
    stand.acks(txn(3), consumer, *sent[:3])


async def test_what_was_acknowledged_goes_back_when_the_client_leaves() -> None:
    stand, consumer, sent = having()
    begun(stand, consumer, *sent[:4], steps=7).close()
    await wait_all_tasks_blocked()
    assert [position for position, _, _ in stand.got] == sent[:3]
    assert stand.kept == ["used"]
    assert not stand.pending


async def test_an_entry_that_is_named_twice_does_not_conflict_with_itself() -> None:
    stand, consumer, sent = having()
    batch = stand.publish(batch_of(b"x", b"y", b"z"))[0]
    await acked(stand, consumer, *sent[:3], sent[1], part(batch, 3, 0), part(batch, 3, 2), part(batch, 3, 0))
    stand.commit(txn(1))
    assert stand.acked == set(sent[:3])
    assert stand.subscription.cursor.batch_acks.bits(batch) == 0b010


async def test_a_commit_that_fails_gives_all_back() -> None:
    stand, consumer, sent = having()
    stand.store.holding = True
    await acked(stand, consumer, *sent[:4])
    stand.store.fail()
    stand.store.release()
    assert [position for position, _, _ in stand.got] == sent[:4]
    stand.acks(txn(3), consumer, *sent[:4])


async def test_an_end_meanwhile_has_none_of_the_entries() -> None:
    stand, consumer, sent = having()
    steps = begun(stand, consumer, *sent[:4], steps=8)
    stand.commit(txn(1))
    finish(stand, steps)
    assert stand.acked == set()
    stand.commit(txn(2), low_watermark=1)
    assert [position for position, _, _ in stand.got] == sent[:4]


# ending


@pytest.mark.usefixtures("each_step_is_a_slice")
class TestEnds:
    async def test_a_commit_gives_way_after_each_slice(self) -> None:
        stand, consumer, sent = having()
        await acked(stand, consumer, *sent)
        effect = stand.pending.end(txn(1), commit=True, low_watermark=NOTHING_OVER)
        assert effect is not None
        stand.end_turn()
        assert (stand.acked, effect.over) == (set(sent[:1]), False)
        left = stand.subscription.cursor.left_of
        assert [left(position) for position in sent[1:]] == [0] * (COUNT - 1)
        await wait_all_tasks_blocked()
        assert (stand.acked, effect.over) == (set(sent), True)
        assert (stand.kept, bool(stand.pending)) == (["used"], False)

    async def test_a_commit_is_whole_after_a_kill_in_any_turn(self) -> None:
        """The cursor may be saved meanwhile, for an ACK of another client."""
        stand, consumer, sent = having()
        await acked(stand, consumer, *sent[1:])
        stand.commit(txn(1))
        seen: list[int] = []
        killed: list[Pended] = []
        while stand.pending:
            stand.subscription.cursor.save()
            stand.end_turn()
            seen.append(len(stand.acked))
            killed.append(stand.killed())
            await checkpoint()
        assert seen[0] == 1
        await wait_all_tasks_blocked()
        for each in killed:
            assert each.acked == set(sent[1:])
            assert each.kept == ["used"]

    @pytest.mark.parametrize("type", [Shared, KeyShared])
    async def test_an_abort_gives_back_slice_by_slice_and_in_order(self, type: int) -> None:
        stand, consumer, sent = having(type)
        await acked(stand, consumer, *reversed(sent))
        effect = stand.pending.end(txn(1), commit=False, low_watermark=NOTHING_OVER)
        assert effect is not None
        stand.end_turn()
        assert (len(stand.client.got) < COUNT, effect.over) == (True, False)
        await wait_all_tasks_blocked()
        assert ([position for position, _, _ in stand.got], effect.over) == (sent, True)
        assert sorted(consumer.pending) == sent
        assert (stand.kept, bool(stand.pending)) == (["used"], False)

    async def test_an_abort_on_exclusive_delivers_all_again_once(self) -> None:
        stand, consumer, sent = having(Exclusive)
        await acked(stand, consumer, *sent[:4])
        stand.abort(txn(1))
        assert stand.got == []
        await wait_all_tasks_blocked()
        assert stand.got == [(position, 0, []) for position in sent]

    async def test_what_a_low_watermark_aborts_goes_back_slice_by_slice(self) -> None:
        stand, consumer, sent = having()
        for least, position in enumerate(sent):
            stand.acks(txn(least), consumer, position)
        stand.commit(txn(COUNT), low_watermark=COUNT - 1)
        assert stand.pending.stats().ongoing == COUNT - 1
        await wait_all_tasks_blocked()
        assert [position for position, _, _ in stand.got] == sent
        assert (stand.kept, bool(stand.pending)) == (["used"], False)

    async def test_an_id_that_no_entry_can_have_is_forgotten_with_the_abort(self) -> None:
        stand, consumer, sent = having()
        odd = Position(sent[0].ledger_id, LAST_ID + 1)
        stand.acks(txn(1), consumer, odd, sent[0])
        stand.abort(txn(1))
        await wait_all_tasks_blocked()
        assert [position for position, _, _ in stand.got] == sent[:1]
        assert stand.pending.holders_of(odd) == []
        assert not stand.pending
