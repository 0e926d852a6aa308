"""Lookups of the entry that has a message index (PIP-415).

Broker entry metadata, which the broker puts in front of entries.
"""

from __future__ import annotations

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.ledger.interceptors import INDEX_PROPERTY, NoIndexError, kept_index
from pulsarium.broker.model.ledger.position import EARLIEST, Position
from tests.broker.model.ledger.indexed import MARKER, Indexed
from tests.broker.model.stores import append
from tests.broker.wire import batch_of, plain

UNREADABLE = b"\0\0\0\3xyz"


@pytest.mark.req("S415-24", "S415-25")
async def test_a_marker_stands_for_the_next_message() -> None:
    topic = Indexed()
    user, *markers, later, last = topic.append(2, 0, 0, 3, 0)
    assert [topic.find(index) for index in (1, 2, 3, 4, 6)] == [user, later, later, later, later]
    assert topic.find(7) is None  # the last entry is a marker, which clients cannot read
    assert [topic.find(index, as_released=True) for index in (2, 3, 7)] == [*markers, last]  # markers count
    assert topic.find(8, as_released=True) is None


@pytest.mark.req("S415-42")
async def test_indexes_do_not_depend_on_the_entry_of_the_producer() -> None:
    """A message of an aborted transaction has an index as all other messages have."""
    topic = Indexed()
    aborted = batch_of(b"a", b"b", txnid_most_bits=1, txnid_least_bits=7)
    append(topic.ledger, topic.cluster, *[topic.stamped(entry) for entry in (plain(b"x"), aborted, UNREADABLE)])
    ledger_id = topic.ledger.last_confirmed.ledger_id
    assert [topic.find(index) for index in range(3)] == [Position(ledger_id, entry) for entry in range(3)]


@pytest.mark.req("S415-26")
@pytest.mark.parametrize("as_released", [False, True])
async def test_the_index_of_a_deleted_entry_is_the_earliest_position(as_released: bool) -> None:
    topic = Indexed()
    topic.append(2, 3)
    topic.roll()
    (kept,) = topic.append(4)
    topic.trim(1)
    found = [topic.find(index, as_released=as_released) for index in range(10)]
    inside_first = [EARLIEST] * 3 if as_released else [kept] * 3  # as on a real Pulsar 4.2.4
    assert found == [*[EARLIEST] * 5, *inside_first, kept, None]


@pytest.mark.req("S415-23")
async def test_entries_from_before_there_were_interceptors() -> None:
    topic = Indexed()
    append(topic.ledger, topic.cluster, *[plain(b"old")] * 50)
    with pytest.raises(NoIndexError):
        topic.find(0)
    a, _, b, c = topic.append(1, 0, 2, 1)
    assert [topic.find(index) for index in range(6)] == [a, b, b, b, c, None]
    with pytest.raises(NoIndexError):
        topic.find(0, as_released=True)


async def test_entries_from_while_there_were_no_interceptors() -> None:
    topic = Indexed()
    before = topic.append(1, 1, 1)
    append(topic.ledger, topic.cluster, *[plain(b"between")] * 20)
    after = topic.append(2, 1)
    assert [topic.find(index) for index in range(7)] == [*before, after[0], after[0], after[1], None]


async def test_entries_from_after_there_were_interceptors() -> None:
    topic = Indexed()
    positions = topic.append(1, 1)
    append(topic.ledger, topic.cluster, plain(b"new"), b"\x0e\x02\0\0\0\3abc", MARKER)
    assert [topic.find(index) for index in range(3)] == [*positions, None]


async def test_few_entries_are_looked_at() -> None:
    topic = Indexed()
    for _ in range(40):
        topic.append(*[1] * 50)
        topic.roll()
    for index in (0, 1, 999, 1_000, 1_998, 1_999):
        assert topic.find(index) is not None
        assert topic.looks <= 3 + 12 + 1  # the first one twice, the last one, 12 halvings of 2,000, and the result


@pytest.mark.req("S415-07", "S415-08", "S415-09", "S415-24", "S415-31")
@given(
    ledgers=st.lists(st.lists(st.integers(0, 5), max_size=6), max_size=6),
    trimmed=st.integers(0, 6),
    as_released=st.booleans(),
)
def test_the_message_index_behaves_as_a_list(ledgers: list[list[int]], trimmed: int, as_released: bool) -> None:
    async def check() -> None:
        topic = Indexed()
        naive: list[tuple[Position, int]] = []  # for each index, its entry and the entry's number of messages
        for counts in ledgers:
            positions = topic.append(*counts) if counts else []
            for position, count in zip(positions, counts, strict=True):
                naive += [(position, count)] * max(count, 1)
            topic.roll()
        gone = topic.trim(trimmed)
        if not topic.ledger.count:
            return
        left = [index for index, (position, _) in enumerate(naive) if position.ledger_id not in gone]
        for index in range(len(naive) + 2):
            assert topic.find(index, as_released=as_released) == expected(naive, left[0], index, as_released)

    trio.run(check)


def expected(naive: list[tuple[Position, int]], first: int, index: int, as_released: bool) -> Position | None:
    if as_released:  # only the last index of the first remaining entry counts
        first += max(naive[first][1], 1) - 1
    if index < first:
        return EARLIEST
    following = naive[index:] if as_released else [each for each in naive[index:] if each[1]]
    return following[0][0] if following else None


async def test_an_empty_topic_has_no_index() -> None:
    assert Indexed().find(0) is None


@pytest.mark.parametrize(
    ("text", "index"),
    [("0", 0), ("41", 41), ("", -1), ("-7", -1), ("x", -1), ("9" * 18, 10**18 - 1), ("9" * 30, -1), ("9" * 5000, -1)],
)
def test_the_stored_index_is_read_and_other_texts_are_ignored(text: str, index: int) -> None:
    """Users may set a property of this name, but no value of it may keep a topic from being loaded or written to."""
    assert kept_index({INDEX_PROPERTY: text}) == index
