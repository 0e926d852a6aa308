from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace

import pulsar
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.client.message_id import MessageId
from pulsarium.proto.errors import InvalidMessageId
from pulsarium.proto.generated import PulsarApi_pb2 as pb

ids = st.integers(0, 2**63 - 1)
small = st.integers(-1, 2**31 - 1)
message_ids = st.builds(MessageId, ids, ids, small, small, st.integers(0, 1000))


@given(message_ids)
def test_kept_ids_come_back(message_id: MessageId) -> None:
    assert MessageId.deserialize(message_id.serialize()) == message_id
    assert MessageId.deserialize(message_id.serialize()).batch_size == message_id.batch_size


@given(ids, ids, small, small)
def test_the_official_client_reads_ours_and_we_read_its(ledger: int, entry: int, partition: int, index: int) -> None:
    theirs = pulsar.MessageId(partition, ledger, entry, index)
    ours = MessageId(ledger, entry, partition, index)
    assert MessageId.deserialize(theirs.serialize()) == ours
    read = pulsar.MessageId.deserialize(ours.serialize())
    assert (read.ledger_id(), read.entry_id(), read.partition(), read.batch_index()) == (
        ledger, entry, partition, index
    )  # fmt: skip


def test_the_ends_are_the_official_ones() -> None:
    assert MessageId.deserialize(pulsar.MessageId.earliest.serialize()) == MessageId.earliest
    assert MessageId.deserialize(pulsar.MessageId.latest.serialize()) == MessageId.latest


def test_a_chunked_message_keeps_its_first_chunk() -> None:
    message_id = MessageId(1, 9, first_chunk=MessageId(1, 5))
    again = MessageId.deserialize(message_id.serialize())
    assert again == message_id
    assert again.first_chunk == MessageId(1, 5)


@given(st.lists(message_ids))
def test_ids_are_ordered_as_they_stand(found: list[MessageId]) -> None:
    assert sorted(found) == sorted(found, key=lambda i: (i.ledger_id, i.entry_id, i.partition, i.batch_index))
    assert all(MessageId.earliest < message_id <= MessageId.latest for message_id in found if message_id.partition < 0)


def test_the_size_of_a_batch_does_not_distinguish() -> None:
    assert MessageId(1, 2, -1, 3, batch_size=5) == MessageId(1, 2, -1, 3)
    assert len({MessageId(1, 2, -1, 3, batch_size=5), MessageId(1, 2, -1, 3)}) == 1


def test_an_id_is_shown_as_the_official_client_shows_it() -> None:
    assert str(MessageId(12, 1, -1, 2)) == "(12,1,-1,2)"
    assert MessageId(12, 1, -1, 2).entry == (12, 1)


@pytest.mark.parametrize("data", [b"x", b""])
def test_bytes_that_are_no_id(data: bytes) -> None:
    with pytest.raises(InvalidMessageId):
        MessageId.deserialize(data)


def test_the_entries_of_a_chunked_message() -> None:
    """A received id names all entries. A serialized id keeps only the first and the last entry."""
    chunked = MessageId(1, 9, 2, first_chunk=MessageId(1, 5, 2), chunks=((1, 5), (1, 7), (1, 9)))
    assert chunked.entries == ((1, 5), (1, 7), (1, 9))
    kept = MessageId.deserialize(chunked.serialize())
    assert kept == chunked
    assert kept.entries == ((1, 5), (1, 9))
    assert MessageId(1, 9, 2, 3, 4).entries == ((1, 9),)


def test_the_id_of_a_received_message_is_like_any_other() -> None:
    received = MessageId.from_data(pb.MessageIdData(ledgerId=1, entryId=2, partition=3, batch_index=4, batch_size=5))
    made = MessageId(1, 2, 3, 4, 5)
    assert (received, hash(received), repr(received)) == (made, hash(made), repr(made))
    assert replace(received, entry_id=1) < pickle.loads(pickle.dumps(received))
    with pytest.raises(FrozenInstanceError):
        received.entry_id = 1  # type: ignore[misc]
