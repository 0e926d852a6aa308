"""Acknowledgements in transactions: their conflicts, commits and aborts, and the deliveries while they are pending.

Acknowledgements of one entry by many ACKs, compared with a combination that is computed anew each time.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.cursor import pending_record as module
from pulsarium.broker.model.cursor.pending_record import Holders, PendingEntry, left_by
from pulsarium.broker.model.errors import TransactionConflictError
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.broker.model.subscription.skip import Skip, SkipEntry, skip_all
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.model.cursor.pended import Pended, consuming, part, txn
from tests.broker.model.dispatch.clients import FakeClient, Stand
from tests.broker.wire import Exclusive, Failover, KeyShared, Shared, batch_of, plain

SHARING = pytest.mark.parametrize("type", [Shared, KeyShared])
TYPES = pytest.mark.parametrize("type", [Shared, KeyShared, Exclusive, Failover])
CONFLICT = "[persistent://public/default/t][sub] Transaction:"


def keyed(payload: bytes) -> bytes:
    return plain(payload, partition_key="k")


def three() -> list[bytes]:
    return [keyed(b"%d" % number) for number in range(3)]


async def test_without_transactions_there_are_no_pending_acks() -> None:
    assert Stand().subscription.pending_acks is None


@TYPES
async def test_a_commit_acknowledges_what_the_transaction_did(type: int) -> None:
    stand, consumer, sent = consuming(type, *three(), activeConsumerFailoverDelayTimeMillis=0)
    assert [position for position, _, _ in stand.got] == sent
    stand.acks(txn(1), consumer, *sent[:2])
    assert stand.acked == set()
    assert stand.subscription.cursor.backlog() == 3
    assert list(consumer.pending) == ([sent[2]] if type in (Shared, KeyShared) else [])
    stand.commit(txn(1))
    assert stand.acked == set(sent[:2])
    assert consumer.unacked == len(consumer.pending)
    assert stand.kept == ["used"]
    assert stand.got == []


@SHARING
async def test_an_abort_delivers_again_what_was_acknowledged(type: int) -> None:
    stand, consumer, sent = consuming(type, *three())
    stand.acks(txn(1), consumer, *sent[:2])
    stand.got.clear()
    stand.abort(txn(1))
    assert stand.got[-2:] == [(sent[0], 1, []), (sent[1], 1, [])]
    assert sorted(consumer.pending) == sent
    assert consumer.unacked == 3
    assert stand.kept == ["used"]


async def test_an_abort_delivers_before_it_returns() -> None:
    """The broker answers the end of a transaction after the redelivery, so a client sees both in this order."""
    stand, consumer, sent = consuming(Shared, *three())
    stand.acks(txn(1), consumer, sent[0])
    seen = []
    stand.client.got.clear()
    stand.pending.end(txn(1), commit=False, low_watermark=-1)
    stand.cluster.turn.after_commit(lambda error: seen.extend(stand.client.got))
    stand.end_turn()
    assert [each.position for each in seen] == sent[:1]


async def test_an_abort_on_exclusive_delivers_everything_again_in_order() -> None:
    stand, consumer, sent = consuming(Exclusive, *three())
    stand.acks(txn(1), consumer, sent[1])
    assert len(stand.got) == 3
    stand.abort(txn(1))
    assert stand.got == [(each, 0, []) for each in sent]


async def test_an_abort_of_a_cumulative_acknowledgement_delivers_nothing() -> None:
    stand = Pended()
    sent = stand.publish(*three())
    stand.join(stand.client, Exclusive, permits=10)
    stand.acks_through(txn(1), sent[1])
    assert len(stand.got) == 3
    stand.abort(txn(1))
    assert stand.got == []
    assert stand.acked == set()
    stand.acks_through(txn(2), sent[0])  # no other acknowledgement conflicts


async def test_the_count_of_redeliveries_goes_on() -> None:
    stand, consumer, sent = consuming(Shared, *three())
    stand.redeliver(consumer, sent[0])
    stand.acks(txn(1), consumer, sent[0])
    assert stand.got[-1] == (sent[0], 1, [])
    stand.abort(txn(1))
    assert stand.got == [(sent[0], 2, [])]
    stand.acks(txn(2), consumer, sent[0])
    stand.commit(txn(2))
    assert stand.subscription.dispatcher is not None
    assert stand.subscription.dispatcher.redeliveries == {}


# conflicts


@TYPES
async def test_acknowledging_a_pending_entry_conflicts(type: int) -> None:
    stand, consumer, (first, second, _) = consuming(type, *three())
    stand.acks(txn(1), consumer, first)
    for least in (1, 2):
        with pytest.raises(TransactionConflictError) as conflict:
            stand.acks(txn(least), consumer, second, first)
        assert conflict.value.code == pb.TransactionConflict
        expected = f"{CONFLICT}(0,{least}) try to ack message:{first} (ackSet is null) in pending ack status."
        assert conflict.value.text == expected
        assert conflict.value.java_text.startswith("org.apache.pulsar.transaction.common.exception.TransactionConflict")
    stand.acks(txn(2), consumer, second)  # the refused ACK has acknowledged none of its entries
    stand.commit(txn(2))
    assert stand.acked == {second}


async def test_acknowledging_an_acknowledged_entry_conflicts() -> None:
    stand, consumer, (first, second, _) = consuming(Shared, *three())
    stand.ack(consumer, second)
    with pytest.raises(TransactionConflictError, match=r"\(ackSet is null\) already acked before\."):
        stand.acks(txn(1), consumer, first, second)
    assert not stand.pending


async def test_cumulative_acks_of_two_transactions_conflict() -> None:
    stand, consumer, sent = consuming(Exclusive, *three())
    stand.ack(consumer, sent[0])
    with pytest.raises(TransactionConflictError) as conflict:
        stand.acks_through(txn(1), sent[0])
    assert conflict.value.text == (
        f"{CONFLICT}(0,1) try to cumulative ack position: {sent[0]} within range of cursor's "
        f"markDeletePosition: {sent[0]}"
    )
    stand.acks_through(txn(1), sent[1])
    for least, position in ((1, sent[1]), (2, sent[2])):
        with pytest.raises(TransactionConflictError) as conflict:
            stand.acks_through(txn(least), position)
        assert conflict.value.text == (
            f"{CONFLICT}(0,{least}) try to cumulative batch ack position: {position} within range of current "
            f"currentPosition: {sent[1]}"
        )
    stand.acks_through(txn(1), sent[2])
    stand.commit(txn(1))
    assert stand.subscription.cursor.mark_delete == sent[2]


@pytest.mark.req("S54-25")
@TYPES
async def test_each_message_of_a_batch_belongs_to_one_transaction(type: int) -> None:
    """The batch size of an ACK tells which bits of its ack set count."""
    stand, consumer, (where,) = consuming(type, batch_of(*[b"x"] * 3, partition_key="k"))
    stand.acks(txn(1), consumer, part(where, 3, 0))
    for least, acked in ((2, part(where, 3, 0, 1)), (1, part(where, 3, 0))):
        with pytest.raises(TransactionConflictError) as conflict:
            stand.acks(txn(least), consumer, acked)
        assert conflict.value.code == pb.TransactionConflict == 23
        assert conflict.value.text == (
            f"{CONFLICT}(0,{least}) try to ack batch message:{where} (ackSet with long[] size of 1) "
            "in pending ack status."
        )
    with pytest.raises(TransactionConflictError, match="in pending ack status"):
        stand.acks(txn(2), consumer, where)  # the whole batch
    stand.acks(txn(2), consumer, part(where, 3, 2))
    assert consumer.unacked == (1 if type in (Shared, KeyShared) else 0)
    stand.commit(txn(2))
    assert stand.subscription.cursor.batch_acks.bits(where) == 0b011
    with pytest.raises(TransactionConflictError, match="already acked before"):
        stand.acks(txn(3), consumer, part(where, 3, 2))
    stand.acks(txn(3), consumer, part(where, 3, 1))
    assert consumer.unacked == 0
    assert consumer.pending == {}
    stand.commit(txn(3))
    assert stand.acked == set()
    stand.commit(txn(1))
    assert stand.acked == {where}


@pytest.mark.parametrize(
    ("mine", "others", "size", "overlap"),
    [
        (0b110, 0b101, 3, False),
        (0b110, 0b100, 3, True),
        (0b011, 0b110, 3, False),
        (0b011, 0b110, 0, False),
        (0b110, 0b110, 0, True),
        (0, 0b111, 0, False),
        (0, 0b110, 0, True),
        (0, 0, 0, True),
        (0b1000, 0b111, 3, False),  # bits beyond the batch size are ignored
        (0b1, 0b1, 2**31 - 1, True),  # a huge size allocates no memory
    ],
)
@pytest.mark.req("S54-25")
async def test_acks_of_a_batch_overlap_by_its_size(mine: int, others: int, size: int, overlap: bool) -> None:
    assert PendingEntry(Position(1, 2), mine, size).overlaps(others) == overlap


@SHARING
async def test_an_abort_delivers_the_rest_of_a_batch(type: int) -> None:
    stand, consumer, (where,) = consuming(type, batch_of(*[b"x"] * 3, partition_key="k"))
    stand.acks(txn(1), consumer, part(where, 3, 0))
    stand.acks(txn(2), consumer, part(where, 3, 1))
    assert len(stand.got) == 1
    stand.abort(txn(1))
    assert stand.got == [(where, 1, [0b101])]
    assert consumer.unacked == 2
    assert consumer.permits == 10 - 3 - 2
    stand.commit(txn(2))
    assert consumer.unacked == 2


async def test_no_transaction_acknowledges_all_of_a_batch_of_which_part_is() -> None:
    """Pulsar refuses this on shared types only, and accepts the ACK on exclusive ones."""
    for kind in (Shared, Exclusive):
        stand = Pended()
        (where,) = stand.publish(batch_of(b"x", b"y"))
        consumer = stand.join(stand.client, kind, permits=10)
        stand.subscription.acknowledge(consumer, (), [(where, (0b10,))], save_now=False)
        if kind == Shared:
            with pytest.raises(TransactionConflictError, match="in pending ack status"):
                stand.acks(txn(1), consumer, where)
        else:
            stand.acks(txn(1), consumer, where)


# acknowledgements without a transaction


@TYPES
async def test_a_plain_ack_wins_over_a_pending_one(type: int) -> None:
    """The plain ACK succeeds (B-29), and neither a commit nor an abort of the transaction undoes the plain ACK."""
    stand, consumer, sent = consuming(type, *three())
    for least, position in enumerate(sent[:2]):
        stand.acks(txn(least), consumer, position)
        stand.ack(consumer, position)
    assert stand.acked == set(sent[:2])
    stand.got.clear()
    stand.commit(txn(0))
    stand.client.got.clear()
    stand.abort(txn(1))
    assert stand.got == []
    assert stand.acked == set(sent[:2])


# deliveries while acknowledgements are pending


@SHARING
async def test_pending_messages_are_not_redelivered(type: int) -> None:
    stand, consumer, sent = consuming(type, *three(), batch_of(b"x", b"y", partition_key="k"), permits=20)
    stand.acks(txn(1), consumer, sent[0], part(sent[3], 2, 0))
    assert len(stand.got) == 4
    stand.redeliver(consumer, sent[0])
    assert stand.got == []
    stand.redeliver(consumer)
    assert stand.got == [(sent[1], 1, []), (sent[2], 1, []), (sent[3], 1, [0b10])]


@TYPES
async def test_the_next_consumer_is_not_given_what_is_pending(type: int) -> None:
    stand, consumer, sent = consuming(type, *three(), activeConsumerFailoverDelayTimeMillis=0)
    stand.acks(txn(1), consumer, sent[1])
    stand.client.leave(consumer)
    stand.client = FakeClient()
    stand.join(stand.client, type, permits=10)
    assert [position for position, _, _ in stand.got] == [sent[0], sent[2]]
    stand.abort(txn(1))
    again = [position for position, _, _ in stand.got]
    assert again == ([sent[1]] if type in (Shared, KeyShared) else sent)


@SHARING
async def test_a_nacked_message_can_be_pending(type: int) -> None:
    """A transaction acknowledges the message while the message waits to be redelivered."""
    stand, consumer, sent = consuming(type, keyed(b"0"), permits=1)
    stand.redeliver(consumer, *sent)
    stand.acks(txn(1), consumer, *sent)
    assert len(stand.got) == 1
    stand.flow(consumer, 5)
    assert stand.got == []
    stand.abort(txn(1))
    assert stand.got == [(sent[0], 2, [])]


@SHARING
async def test_a_pending_message_above_the_read_position_is_delivered_once(type: int) -> None:
    stand, consumer, sent = consuming(type, keyed(b"0"), permits=1)
    stand.acks(txn(1), consumer, *sent)
    stand.client.leave(consumer)
    stand.client = FakeClient()
    consumer = stand.join(stand.client, type)
    stand.abort(txn(1))
    stand.flow(consumer, 10)
    assert [position for position, _, _ in stand.got] == sent


async def test_a_pending_ack_unblocks_its_consumer() -> None:
    stand, consumer, sent = consuming(Shared, *three(), maxUnackedMessagesPerConsumer=2)
    assert [position for position, _, _ in stand.got] == sent[:2]
    stand.acks(txn(1), consumer, *sent[:2])
    assert [position for position, _, _ in stand.got] == sent[2:]


async def test_why_names_pending_acks() -> None:
    stand, consumer, sent = consuming(Shared, *three(), batch_of(b"x", b"y"))
    stand.acks(txn(1), consumer, sent[0], part(sent[3], 2, 0))
    assert stand.subscription.why(sent[0]) is Reason.PENDING_ACK
    assert stand.subscription.why(sent[3]) is Reason.DELIVERED
    stand.acks(txn(2), consumer, part(sent[3], 2, 1))
    assert stand.subscription.why(sent[3]) is Reason.PENDING_ACK
    stand.commit(txn(1))
    assert stand.subscription.why(sent[0]) is Reason.ACKNOWLEDGED


# moves of the cursor


async def test_the_mark_stays_before_what_is_pending() -> None:
    stand, consumer, sent = consuming(Shared, *three())
    stand.acks(txn(1), consumer, sent[0])
    stand.ack(consumer, *sent[1:])
    assert stand.subscription.cursor.mark_delete < sent[0]
    stand.commit(txn(1))
    assert stand.subscription.cursor.mark_delete == sent[2]


async def test_skipped_messages_are_acknowledged() -> None:
    stand, consumer, sent = consuming(Shared, *three())
    stand.acks(txn(1), consumer, *sent[:2])
    skip = Skip(stand.subscription, [SkipEntry(*sent[0])])
    skip.check({})
    skip.apply()
    assert stand.acked == {sent[0]}
    skip_all(stand.subscription)
    assert stand.acked == set(sent)
    stand.client.got.clear()
    stand.abort(txn(1))
    assert stand.got == []


@TYPES
async def test_a_seek_back_leaves_what_is_pending(type: int) -> None:
    """The pending acknowledgement stays, but the entry that was acknowledged without a transaction is redelivered."""
    stand, consumer, sent = consuming(type, *three(), activeConsumerFailoverDelayTimeMillis=0)
    stand.acks(txn(1), consumer, sent[0])
    stand.ack(consumer, sent[1])
    cursor = stand.subscription.cursor
    stand.subscription.reset_now(lambda: cursor.reset(sent[0]))
    stand.end_turn()
    stand.client = FakeClient()
    stand.join(stand.client, type, permits=10)
    assert [position for position, _, _ in stand.got] == sent[1:]
    stand.commit(txn(1))
    assert stand.acked == {sent[0]}


async def test_pending_acks_of_a_reader_are_not_stored() -> None:
    """A reader's subscription is not durable."""
    stand = Pended()
    sent = stand.publish(*three())
    reader = stand.topic.open_reader("r", None, earliest=True)
    stand.subscription = reader
    consumer = stand.join(stand.client, Shared, permits=10)
    stand.acks(txn(1), consumer, sent[0])
    assert stand.kept == []
    stand.commit(txn(1))
    assert stand.acked == {sent[0]}


# low watermarks


async def test_the_low_watermark_aborts_what_was_left_of_older_transactions() -> None:
    """An older transaction may be over, or may never have existed. The next end of its coordinator aborts its ACKs."""
    stand, consumer, sent = consuming(Shared, *three())
    stand.acks(txn(3), consumer, sent[0])
    stand.acks(txn(3, most=1), consumer, sent[1])
    stand.acks(txn(5), consumer, sent[2])
    stand.client.got.clear()
    stand.commit(txn(5), low_watermark=3)
    assert stand.got == [(sent[0], 1, [])]
    assert stand.acked == {sent[2]}
    assert stand.pending.low_watermarks == {0: 3}
    stand.commit(txn(3))  # too late, because the transaction is aborted
    assert stand.acked == {sent[2]}
    stand.commit(txn(3, most=1))
    assert stand.acked == {sent[1], sent[2]}


async def test_a_transaction_that_acknowledged_nothing_ends() -> None:
    stand = Pended()
    stand.commit(txn(1))
    stand.abort(txn(2))
    assert not stand.pending
    assert stand.kept == ["used"]


async def test_acks_below_the_low_watermark_are_aborted_with_the_next_end() -> None:
    """The low watermark passed these transactions before they acknowledged, and does not rise with the next end."""
    stand, consumer, sent = consuming(Shared, *three())
    stand.commit(txn(9), low_watermark=8)
    stand.acks(txn(3), consumer, sent[0])
    stand.acks(txn(4, most=1), consumer, sent[1])
    stand.client.got.clear()
    stand.commit(txn(9), low_watermark=8)
    assert stand.got == [(sent[0], 1, [])]
    stand.commit(txn(9, most=1), low_watermark=2**63 - 1)  # no loop may count up to a huge watermark
    assert stand.got == [(sent[1], 1, [])]
    assert not stand.pending


async def test_the_stats_count_transactions_with_individual_acks() -> None:
    stand, consumer, sent = consuming(Exclusive, *three())
    counts = []
    stand.acks(txn(1), consumer, sent[2])
    counts.append(stand.pending.stats().ongoing)
    stand.acks_through(txn(2), sent[0])
    counts.append(stand.pending.stats().ongoing)
    stand.acks(txn(2), consumer, sent[1])
    counts.append(stand.pending.stats().ongoing)
    stand.commit(txn(2))
    counts.append(stand.pending.stats().ongoing)
    assert counts == [1, 1, 2, 1]


WHERE = Position(1, 0)


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["add", "remove", "ask"]), st.integers(-1, 5))))
def test_holders_leave_what_no_transaction_acknowledged(steps: list[tuple[int, str, int]]) -> None:
    holders, model = Holders(), dict[int, int]()
    for number, what, index in steps:
        if what == "add":
            acked = part(WHERE, 6, index) if index >= 0 else PendingEntry(WHERE)
            holders.add(number, acked)
            model[number] = (acked.remaining or 0) & model.get(number, -1)
        elif what == "remove":
            holders.remove((number,), WHERE)
            model.pop(number, None)
        else:
            left = -1
            for each in model.values():
                left &= each
            assert holders.left_of(WHERE) == (left if model else None)
    assert set(holders.of(WHERE)) == set(model)
    holders.forget(WHERE)
    assert holders.left_of(WHERE) is None


def test_each_acknowledged_message_of_a_batch_costs_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at all earlier acknowledgements each time would cost the square of their number."""
    holders, looked_at = Holders(), list[PendingEntry]()

    def counted(held: Iterable[PendingEntry]) -> int:
        looked_at.extend(held := list(held))
        return left_by(held)

    monkeypatch.setattr(module, "left_by", counted)
    for index in range(100):
        holders.add(index, part(WHERE, 100, index))
        assert holders.left_of(WHERE) == (1 << 100) - (2 << index)
    assert len(looked_at) == 1
