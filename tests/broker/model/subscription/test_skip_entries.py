"""Skipping entries of a subscription that has no wire."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.errors import NoSuchMessageError
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.skip import (
    LARGEST_BATCH,
    Skip,
    SkipEntry,
    ack_set_without,
    batch_size,
)
from pulsarium.proto.message_id import bits_of
from tests.broker.model.dispatch.clients import FakeClient, Stand
from tests.broker.wire import KeyShared, Shared, batch_of, plain

AT = Position(7, 3)


@pytest.mark.req("S423-84")
def test_an_entry_without_indexes_is_whole() -> None:
    for entry in (SkipEntry(7, 3), SkipEntry(7, 3, None), SkipEntry(7, 3, [])):
        assert (entry.position, entry.batch_indexes) == (AT, None)


@pytest.mark.req("S423-84")
def test_an_entry_keeps_a_copy_of_its_indexes() -> None:
    indexes = [2]
    entry = SkipEntry(7, 3, indexes)
    indexes.append(4)
    assert entry.batch_indexes == (2,)


@given(st.integers(1, 200), st.data())
def test_an_ack_set_has_a_bit_for_each_that_remains(size: int, data: st.DataObject) -> None:
    indexes = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=size))
    bits = bits_of(ack_set_without(AT, indexes, size))
    assert {index for index in range(size) if bits >> index & 1} == set(range(size)) - set(indexes)
    assert bits >> size == 0


@pytest.mark.req("S423-15", "S423-17")
@pytest.mark.parametrize("size", [0, -1, 5, LARGEST_BATCH + 1])
def test_an_index_that_is_not_there(size: int) -> None:
    with pytest.raises(NoSuchMessageError):
        ack_set_without(AT, (5,), size)


@pytest.mark.req("S423-17")
@pytest.mark.parametrize(
    ("entry", "size"),
    [(plain(b"x"), 0), (batch_of(b"x"), 1), (batch_of(b"x", b"y"), 2), (b"", 0), (b"no metadata", 0)],
)
def test_the_size_of_a_batch(entry: bytes, size: int) -> None:
    assert batch_size(entry) == size


@pytest.mark.parametrize("type", [Shared, KeyShared])
async def test_who_owes_the_messages_owes_them_no_longer(type: int) -> None:
    stand, clients = Stand(), [FakeClient(), FakeClient()]
    consumers = [stand.join(client, type, permits=100) for client in clients]
    sent = stand.publish(*[plain(b"%d" % number, partition_key=str(number)) for number in range(9)])
    sent += stand.publish(*[batch_of(*[b"x"] * 3, partition_key=str(number)) for number in range(9)])
    stand.end_turn()
    assert all(consumer.pending for consumer in consumers)
    entries = [SkipEntry(*position) for position in sent[1:9]] + [SkipEntry(*position, [1]) for position in sent[10:]]
    skip = Skip(stand.subscription, entries)
    skip.check(dict.fromkeys(skip.partial, 3))
    assert stand.subscription.cursor.backlog() == 18
    skip.apply()
    stand.end_turn()
    owed = {position: messages for consumer in consumers for position, messages in consumer.pending.items()}
    assert owed == {sent[0]: 1, sent[9]: 3, **dict.fromkeys(sent[10:], 2)}
    assert [consumer.unacked for consumer in consumers] == [sum(consumer.pending.values()) for consumer in consumers]
    assert stand.subscription.cursor.backlog() == 10
