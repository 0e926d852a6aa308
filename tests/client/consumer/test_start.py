from __future__ import annotations

import pytest

from pulsarium.client.consumer.start import Start
from pulsarium.client.message_id import MessageId


def last(entry: int, index: int = -1, ledger: int = 1) -> MessageId:
    return MessageId(ledger, entry, -1, index)


@pytest.mark.req("S429-14")
@pytest.mark.parametrize(
    ("start", "inclusive", "topics_last", "expected"),
    [
        (last(3), False, last(3), False),
        (last(3), True, last(3), True),
        (last(3), False, last(4), True),
        (last(3), True, last(2), False),
        (last(3), False, last(0, ledger=2), True),
        (last(3), False, last(3, 2), False),  # the whole batch was read
        (last(3, 1), False, last(3, 2), True),
        (last(3, 2), False, last(3, 2), False),
        (last(3, 2), True, last(3, 2), True),
        (last(3, 3), True, last(3, 2), False),  # compacted out
        (last(3, 0), False, last(3), False),  # a batch of one
        (last(3, 0), True, last(3), True),
        (MessageId.earliest, False, last(0), True),
        (MessageId.earliest, True, last(-1, ledger=-1), False),
        (MessageId.earliest, False, last(-1, ledger=8), False),  # an empty ledger
        (MessageId.latest, True, last(5), False),
    ],
)
def test_a_reader_has_messages_up_to_the_last_position_of_its_topic(
    start: MessageId, inclusive: bool, topics_last: MessageId, expected: bool
) -> None:
    assert Start(start, inclusive).is_before(topics_last) is expected


def test_messages_before_the_start_are_skipped() -> None:
    assert [Start(last(3, 1)).skips((1, 3), index) for index in range(4)] == [True, True, False, False]
    assert [Start(last(3, 1), inclusive=True).skips((1, 3), index) for index in range(4)] == [True, False, False, False]
    assert Start(last(3)).skips((1, 3), -1)
    assert not Start(last(3), inclusive=True).skips((1, 3), -1)
    assert not Start(last(3, 1)).skips((1, 4), 0)


def test_a_chunked_message_is_read_from_its_first_chunk() -> None:
    chunked = MessageId(1, 7, first_chunk=last(3))
    for start in (Start(chunked), Start(chunked, inclusive=True)):
        assert start.first_entry == last(3)
        assert start.skips((1, 5), -1)
        assert start.skips((1, 7), -1) is not start.inclusive
        assert not start.skips((1, 8), -1)
        assert start.is_behind((1, 6))
        assert not start.is_behind((1, 7))


def test_chunks_of_later_messages_are_needed() -> None:
    start = Start.needing([last(4), last(2), last(9)], last(5, 1))
    assert start.first_entry == last(2)
    assert start.skips((1, 3), 5)
    assert [start.skips((1, 5), index) for index in range(3)] == [True, True, False]
    assert not start.skips((1, 6), 0)
    for chunks in ([], [last(5)], [last(6)]):
        start = Start.needing(chunks, last(5), inclusive=True)
        assert start == Start(last(5), inclusive=True)
        assert start.first_entry == last(5)
        assert not start.is_behind((1, 3))
