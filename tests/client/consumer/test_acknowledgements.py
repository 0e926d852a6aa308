"""Acknowledgements: their ids, and how long they wait for others to share a command."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from pulsarium.client.consumer.acknowledgements import AckGroup, Acknowledgements, ack_set
from pulsarium.client.errors import InvalidMessage
from pulsarium.client.message_id import MessageId
from pulsarium.proto.generated import PulsarApi_pb2 as pb


def at(index: int, entry: int = 5, size: int = 4) -> MessageId:
    return MessageId(1, entry, -1, index, batch_size=size)


def told(data: pb.MessageIdData | None) -> tuple[int, list[int]] | None:
    """Return the entry id and the ack set of an acknowledgement."""
    return None if data is None else (data.entryId, list(data.ack_set))


def test_a_message_of_its_own_is_told_at_once() -> None:
    acks = Acknowledgements()
    assert told(acks.individual(MessageId(1, 5))) == (5, [])
    assert told(acks.cumulative(MessageId(1, 5))) == (5, [])


def test_a_batch_is_told_when_all_of_it_is_acknowledged() -> None:
    acks = Acknowledgements()
    acks.received((1, 5), 4, [0, 2, 3])  # 1 is compacted out
    assert [told(acks.individual(at(i))) for i in (0, 3, 0, 2)] == [None, None, None, (5, [])]
    assert len(acks) == 0


def test_with_batch_index_acks_each_is_told() -> None:
    acks = Acknowledgements(batch_index_ack_enabled=True)
    acks.received((1, 5), 4, [0, 2, 3])
    assert [told(acks.individual(at(i))) for i in (0, 3, 2)] == [(5, [0b1100]), (5, [0b100]), (5, [])]


@pytest.mark.parametrize(("by_index", "expected"), [(False, None), (True, (5, [0b1101]))])
def test_a_message_of_a_batch_that_is_not_known(by_index: bool, expected: tuple[int, list[int]] | None) -> None:
    acks = Acknowledgements(batch_index_ack_enabled=by_index)
    assert told(acks.individual(at(1))) == expected
    assert told(acks.individual(at(0, size=1))) == (5, [])
    assert acks.individual(at(1, size=0)) is None
    assert len(acks) == 0


def test_cumulatively_into_a_batch() -> None:
    for by_index, expected in ((False, (4, [])), (True, (5, [0b1100]))):
        acks = Acknowledgements(batch_index_ack_enabled=by_index)
        acks.received((1, 4), 2, [0, 1])
        acks.received((1, 5), 4, [0, 1, 2, 3])
        assert told(acks.cumulative(at(1))) == expected
        assert len(acks) == 1
        assert told(acks.cumulative(at(3))) == (5, [])
        assert len(acks) == 0


def test_cumulatively_to_a_whole_entry() -> None:
    acks = Acknowledgements()
    acks.received((1, 5), 4, [0, 1])
    assert told(acks.cumulative(MessageId(1, 5))) == (5, [])
    assert len(acks) == 0


def test_a_redelivered_batch_is_tracked_anew() -> None:
    acks = Acknowledgements()
    acks.received((1, 5), 2, [0, 1])
    assert acks.individual(at(0)) is None
    acks.forget((1, 5))
    acks.received((1, 5), 2, [0, 1])
    assert acks.individual(at(1)) is None
    assert told(acks.individual(at(0))) == (5, [])


@given(st.sets(st.integers(0, 200)))
def test_ack_sets_are_signed_words(indexes: set[int]) -> None:
    words = ack_set(indexes)
    assert all(-(2**63) <= word < 2**63 for word in words)
    assert not words or words[-1]
    assert {i for i in range(201) if i // 64 < len(words) and words[i // 64] >> i % 64 & 1} == indexes
    assert list(pb.MessageIdData(ack_set=words).ack_set) == words


def test_in_transactions_each_message_of_a_batch_is_told_alone() -> None:
    acks = Acknowledgements()
    acks.received((1, 5), 4, [0, 1, 2, 3])
    assert [told(data) for data in acks.in_transaction([at(1), MessageId(1, 6), at(3)])] == [(5, [0b0101]), (6, [])]
    assert (1, 5) in acks
    assert told(acks.individual(at(0))) is None
    assert told(acks.individual(at(2))) == (5, [0b1010])  # the transaction acknowledges the other indexes
    assert len(acks) == 0


def test_a_batch_that_is_all_in_transactions() -> None:
    acks = Acknowledgements()
    acks.received((1, 5), 2, [0, 1])
    assert [told(acks.in_transaction([at(i, size=2)])[0]) for i in (1, 0)] == [(5, [0b01]), (5, [0b10])]
    assert len(acks) == 0
    assert told(acks.in_transaction([at(0, size=1)])[0]) == (5, [])


def test_cumulatively_in_a_transaction() -> None:
    acks = Acknowledgements()
    acks.received((1, 4), 2, [0, 1])
    acks.received((1, 5), 4, [0, 1, 2, 3])
    assert told(acks.cumulative(at(1), in_transaction=True)) == (5, [0b1100])
    assert len(acks) == 1
    assert told(acks.cumulative(at(3), in_transaction=True)) == (5, [])
    assert len(acks) == 0


def test_a_batch_of_which_nobody_knows_the_size() -> None:
    acks = Acknowledgements()
    with pytest.raises(InvalidMessage):
        acks.in_transaction([at(1, size=0)])
    with pytest.raises(InvalidMessage):
        acks.cumulative(at(1, size=0), in_transaction=True)
    acks.received((1, 5), 2, [0, 1])
    assert told(acks.in_transaction([at(1, size=0)])[0]) == (5, [0b01])


DELAY = 0.5
MOST = 20


def entry(number: int) -> pb.MessageIdData:
    return pb.MessageIdData(ledgerId=1, entryId=number)


class Sent:
    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.connected = True

    def send(self, ids: list[pb.MessageIdData]) -> bool:
        if self.connected:
            self.groups.append([one.entryId for one in ids])
        return self.connected


async def test_acknowledgements_of_one_moment_are_sent_together(autojump_clock: MockClock) -> None:
    sent = Sent()
    async with anyio.create_task_group() as tasks:
        group = AckGroup(tasks, sent.send, DELAY, MOST)
        for number in range(3):
            group.add(entry(number))
        await anyio.sleep(DELAY / 2)
        assert sent.groups == []
        await anyio.sleep(DELAY)
        assert sent.groups == [[0, 1, 2]]
        group.add(entry(3))
        group.flush()
        assert sent.groups == [[0, 1, 2], [3]]
    assert len(sent.groups) == 2  # and no task remains


async def test_without_a_connection_they_are_kept(autojump_clock: MockClock) -> None:
    sent = Sent()
    sent.connected = False
    async with anyio.create_task_group() as tasks:
        group = AckGroup(tasks, sent.send, DELAY, MOST)
        group.add(entry(0))
        await anyio.sleep(1)
        group.add(entry(1))
        assert [one.entryId for one in group.take()] == [0, 1]
        group.close()
    assert sent.groups == []
