"""Storage of pending acknowledgements: kills and failed commits at each step, unloading, and deletion."""

from __future__ import annotations

import pytest

from pulsarium.broker.model.errors import TransactionConflictError
from tests.broker.held import HeldStorage
from tests.broker.model.cursor.pended import NOTHING_OVER, consuming, part, txn
from tests.broker.model.dispatch.clients import FakeClient
from tests.broker.wire import Shared, batch_of, plain


async def test_pending_acks_of_open_transactions_outlive_a_restart() -> None:
    stand, consumer, sent = consuming(Shared, plain(b"0"), plain(b"1"), batch_of(b"x", b"y", b"z"), plain(b"3"))
    stand.acks(txn(2**63, most=2**63), consumer, sent[0], part(sent[2], 3, 1))
    stand.acks(txn(1), consumer, sent[1], part(sent[2], 3, 0))
    stand.acks(txn(1), consumer, sent[3])
    again = stand.killed()
    consumer = again.join(again.client, Shared, permits=10)
    assert again.got == [(sent[2], 0, [0b100])]
    with pytest.raises(TransactionConflictError):
        again.acks(txn(2), consumer, sent[0])
    again.commit(txn(2**63, most=2**63))
    again.abort(txn(1))
    assert again.acked == {sent[0]}
    assert again.subscription.cursor.batch_acks.bits(sent[2]) == 0b101
    assert [position for position, _, _ in again.got] == sent[1:]
    assert again.kept == ["used"]
    assert again.killed().subscription.cursor.batch_acks.bits(sent[2]) == 0b101


async def test_a_kill_at_any_commit_leaves_a_whole_state() -> None:
    """A broker that is killed after any commit finds each ACK and each end of a transaction whole, or not at all."""
    stand, consumer, sent = consuming(Shared, plain(b"0"), batch_of(b"x", b"y"), plain(b"2"), plain(b"3"))
    stand.store.holding = True
    stand.acks(txn(1), consumer, sent[0], part(sent[1], 2, 0))
    stand.acks(txn(1), consumer, part(sent[1], 2, 1))
    stand.acks(txn(2), consumer, sent[2])
    stand.commit(txn(1))
    stand.abort(txn(2))
    seen = []
    while True:
        again = stand.killed()
        again.join(again.client, Shared, permits=10)
        seen.append((sorted(again.acked), [(position, left) for position, _, left in again.got], bool(again.pending)))
        if again.acked:
            assert again.kept == (["2", "used"] if again.pending else ["used"])  # the cursor has what was committed
        if not stand.store.waiting:
            break
        stand.store.release(1)
    whole: list[int] = []
    assert seen == [
        ([], [(each, whole) for each in sent], False),
        ([], [(sent[1], [0b10]), (sent[2], whole), (sent[3], whole)], True),
        ([], [(sent[2], whole), (sent[3], whole)], True),
        ([], [(sent[3], whole)], True),
        (sent[:2], [(sent[3], whole)], True),
        (sent[:2], [(sent[2], whole), (sent[3], whole)], False),
        (sent[:2], [(sent[2], whole), (sent[3], whole)], False),
    ]
    assert stand.kept == ["used"]


@pytest.mark.parametrize("commit", [True, False])
async def test_an_end_that_cannot_be_kept_leaves_the_transaction_open(commit: bool) -> None:
    """The store still has the transaction as open, so a client may commit or abort it."""
    stand, consumer, sent = consuming(Shared, plain(b"0"), plain(b"1"))
    stand.acks(txn(1), consumer, sent[0])
    stand.client.got.clear()
    stand.store.holding = True
    (stand.commit if commit else stand.abort)(txn(1))
    stand.acks(txn(1), consumer, sent[1])  # the storing of this late ACK fails too
    with pytest.raises(TransactionConflictError):
        stand.acks(txn(2), consumer, sent[0])
    stand.store.fail()
    stand.store.release()
    assert stand.acked == set()
    assert stand.got == [(sent[1], 1, [])]
    (stand.abort if commit else stand.commit)(txn(1))
    assert stand.acked == (set() if commit else {sent[0]})
    assert [position for position, _, _ in stand.got] == (sent[:1] if commit else [])
    assert stand.killed().acked == stand.acked
    assert stand.kept == ["used"]


async def test_a_low_watermark_of_failed_ends_aborts_nothing() -> None:
    """The first transaction is open again, so the end of the second one must not abort it."""
    stand, consumer, sent = consuming(Shared, plain(b"0"), plain(b"1"))
    stand.acks(txn(1), consumer, sent[0])
    stand.acks(txn(2), consumer, sent[1])
    stand.store.holding = True
    stand.commit(txn(1), low_watermark=0)
    stand.commit(txn(2), low_watermark=1)
    stand.store.fail()
    stand.store.release()
    stand.commit(txn(2), low_watermark=0)
    stand.commit(txn(1), low_watermark=0)
    assert stand.acked == set(sent)
    assert stand.killed().acked == set(sent)


async def test_many_commits_kept_at_once_delete_each_piece_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that deletes the records of all commits before it again would cost the square of their number."""
    stand, consumer, sent = consuming(Shared, *[plain(b"%d" % number) for number in range(100)], permits=100)
    for number, position in enumerate(sent):
        stand.acks(txn(number), consumer, position)
    stand.store.holding = True
    for number in range(100):
        stand.pending.end(txn(number), commit=True, low_watermark=NOTHING_OVER)
    stand.end_turn()
    deleted: list[str] = []
    store = stand.cluster.turn.store

    def counted(path: str, value: bytes | None) -> None:
        if value is None:
            deleted.append(path)
        store(path, value)

    monkeypatch.setattr(stand.cluster.turn, "store", counted)
    stand.store.release()
    pieces = [path for path in deleted if path.startswith(stand.pending.record.path)]
    assert len(pieces) == len(set(pieces)) == 200
    assert stand.acked == set(sent)
    assert stand.kept == ["used"]


async def test_a_commit_that_cannot_be_applied_yet_is_applied_with_the_next_save(autojump_clock: object) -> None:
    """The next save of the cursor also deletes the records of the commit."""
    stand, consumer, (where,) = consuming(Shared, plain(b"0"))
    stand.acks(txn(1), consumer, where)
    stand.store.holding = True
    stand.commit(txn(1))
    stand.store.release(1)
    assert stand.acked == {where}
    stand.store.fail()
    stand.store.release()
    assert stand.kept == ["0", "commit-0", "used"]
    assert stand.killed().subscription.cursor.mark_delete == where
    stand.subscription.cursor.save()
    stand.end_turn()
    assert stand.kept == ["used"]
    assert stand.killed().subscription.cursor.mark_delete == where


async def test_nothing_is_left_of_a_subscription_that_is_deleted() -> None:
    stand, consumer, sent = consuming(Shared, plain(b"0"), plain(b"1"))
    stand.acks(txn(1), consumer, sent[0])
    stand.acks(txn(2), consumer, sent[1])
    stand.store.holding = True
    stand.commit(txn(2))
    stand.topic.unsubscribe("sub")
    stand.end_turn()
    stand.store.release()
    assert stand.kept == []
    stand.commit(txn(1))
    assert stand.kept == []
    assert stand.subscription.cursor.path not in stand.store.metadata


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("commit", [False, True])
async def test_a_subscription_deleted_in_vain_keeps_its_pending_acks(commit: bool, kept: bool) -> None:
    """The end of the transaction is stored or fails before that. The subscription is then the same as after a crash."""
    stand, consumer, sent = consuming(Shared, plain(b"0"), plain(b"1"))
    stand.acks(txn(1), consumer, sent[0])
    stand.store.holding = True
    (stand.commit if commit else stand.abort)(txn(1))
    stand.topic.unsubscribe("sub")
    stand.end_turn()
    if kept:
        stand.store.release(1)
    stand.store.fail()
    stand.store.release()
    again = stand.killed()
    stand.subscription = stand.topic.subscriptions["sub"]
    stand.client = FakeClient()
    stand.join(stand.client, Shared, permits=10)
    again.join(again.client, Shared, permits=10)
    assert stand.acked == again.acked == ({sent[0]} if kept and commit else set())
    assert [each[0] for each in stand.got] == [each[0] for each in again.got] == (sent if kept > commit else sent[1:])
    stand.topic.unsubscribe("sub")
    stand.end_turn()
    assert stand.kept == []


@pytest.mark.parametrize("durable", [True, False])
async def test_pending_acks_work_where_nothing_is_stored(durable: bool) -> None:
    """A store in memory and a reader's subscription store no acknowledgements."""
    store = HeldStorage()
    store.keeps_entries = not durable
    stand, consumer, (where,) = consuming(Shared, plain(b"0"), storage=store, durable=durable)
    stand.acks(txn(1), consumer, where)
    stand.abort(txn(1))
    stand.acks(txn(2), consumer, where)
    stand.commit(txn(2))
    assert stand.acked == {where}
    assert stand.kept == []
    assert not stand.pending.record._applied
