"""Outgoing frames: templates give the same bytes as single frames, and waiting bytes stay in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.client import Delivery
from pulsarium.broker.model.ledger.managed_ledger import PendingPublish, Unwatched
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.session.outgoing import OutgoingFrames
from pulsarium.proto.framing import frame
from tests.broker.wire import Type, command, frame_of

ids = st.integers(0, 2**63 - 1)
positions = st.builds(Position, ids, ids)
near = st.builds(Position, st.sampled_from([0, 5, 300]), st.integers(0, 400))
deliveries = st.builds(
    Delivery,
    st.one_of(near, near, positions),
    st.binary(max_size=5),
    st.integers(0, 5),
    st.sampled_from([0, 0, 0, 0, 0, 1, 7]),
    st.one_of(st.just(()), st.just(()), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=2)),
)
calls = st.tuples(
    st.integers(0, 2),
    st.integers(-1, 3),
    st.one_of(st.none(), st.integers(0, 3)),
    st.lists(deliveries, max_size=12),
    st.booleans(),
)


@given(st.lists(calls, max_size=5))
def test_nothing_of_one_message_shows_in_the_next(
    program: list[tuple[int, int, int | None, list[Delivery], bool]],
) -> None:
    outgoing, expected = OutgoingFrames(), b""
    for consumer_id, partition, epoch, batch, tells_permits in program:
        outgoing.messages(consumer_id, partition, epoch, batch, None, tells_permits=tells_permits)
        for position, entry, permits, count, ack_set in batch:
            message_id = {"ledgerId": position.ledger_id, "entryId": position.entry_id, "partition": partition}
            base = command(Type.MESSAGE, consumer_id=consumer_id, message_id=message_id, ack_set=ack_set)
            if count:
                base.message.redelivery_count = count
            if epoch is not None:
                base.message.consumer_epoch = epoch
            if tells_permits and permits:
                base.message.message_permits = permits
            expected += frame(base.SerializeToString(), entry)
    assert outgoing.size == len(expected)
    assert outgoing.take() == expected
    assert outgoing.size == 0


def kept_at(position: Position, sequence_id: int, highest_sequence_id: int) -> PendingPublish:
    pending = PendingPublish(Unwatched(), b"", sequence_id, highest_sequence_id)
    pending.position = position
    return pending


@given(st.lists(st.tuples(st.integers(0, 2), st.lists(st.tuples(positions, ids, ids), max_size=4)), max_size=4))
def test_receipts_from_templates_equal_encoded_ones(program: list[tuple[int, list[tuple[Position, int, int]]]]) -> None:
    outgoing, expected = OutgoingFrames(), b""
    for producer_id, entries in program:
        outgoing.receipts(producer_id, [kept_at(*entry) for entry in entries])
        for position, sequence_id, highest in entries:
            expected += frame_of(
                Type.SEND_RECEIPT,
                producer_id=producer_id,
                sequence_id=sequence_id,
                highest_sequence_id=highest,
                message_id={"ledgerId": position.ledger_id, "entryId": position.entry_id},
            )
    assert outgoing.size == len(expected)
    assert outgoing.take() == expected


@given(st.lists(st.tuples(st.binary(max_size=9), st.integers(0, 20), st.binary(max_size=3))))
def test_bytes_put_back_go_first(program: list[tuple[bytes, int, bytes]]) -> None:
    outgoing, added, sent = OutgoingFrames(), b"", b""
    for data, taken, meanwhile in program:
        outgoing.add(data)
        whole = outgoing.take()
        sent += whole[:taken]
        outgoing.add(meanwhile)
        added += data + meanwhile
        outgoing.put_back(whole[taken:])
        assert outgoing.size == len(added) - len(sent)
    assert sent + outgoing.take() == added


def test_entries_are_bared_where_that_is_asked_for() -> None:
    outgoing = OutgoingFrames()
    delivery = Delivery(Position(1, 2), b"entry", 1, 0, ())
    outgoing.messages(0, -1, None, [delivery], lambda entry: entry[2:])
    bared = outgoing.take()
    outgoing.messages(0, -1, None, [delivery], None)
    whole = outgoing.take()
    assert bared[4:] == whole[4:-5] + b"try"
    assert int.from_bytes(bared[:4], "big") == int.from_bytes(whole[:4], "big") - 2
