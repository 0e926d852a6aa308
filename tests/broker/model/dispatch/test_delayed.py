"""Delayed messages, compared with a plain list."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.dispatch.delays import DelayedMessages
from pulsarium.broker.model.ledger.position import Position

TICK = 1000
WIDTH = 512  # the width of a bucket: the highest power of two that is not above TICK
NOW = 1_795_265_193_987  # the time of the transcript
FIRST = Position(222, 0)


def waits(made: DelayedMessages, *positions: Position, at: int = NOW + 5000) -> None:
    for position in positions:
        assert made.add(position, at, NOW)


@pytest.mark.req("B-21")
def test_delayed_messages_are_due_as_recorded() -> None:
    """Transcript 043 has a message due in 700 ms that came at once, and one due in 1500 ms that came after 1052 ms."""
    made = DelayedMessages(TICK, strict=False)
    assert not made.add(Position(222, 3), NOW + 13 + 700, NOW + 13)
    assert not made.add(Position(222, 2), NOW - 5000, NOW)
    assert made.add(FIRST, NOW + 1500, NOW)
    assert made.next_due_ms(NOW) == NOW + 1021
    assert made.take_due(NOW + 20, 10) == []
    assert len(made) == 1
    assert made.take_due(NOW + 1021, 10) == [FIRST]
    assert len(made) == 0


@pytest.mark.req("B-21")
@pytest.mark.parametrize("offset", [0, 1, WIDTH - 1])
def test_a_bucket_is_due_when_its_last_may_go(offset: int) -> None:
    """A dispatch for another reason may deliver the bucket before the alarm of the bucket."""
    start = (NOW // WIDTH + 10) * WIDTH
    made = DelayedMessages(TICK, strict=False)
    waits(made, FIRST, at=start + offset)
    assert made.next_due_ms(NOW) == start
    last_may_go = start + WIDTH - 1 - TICK
    assert made.take_due(last_may_go - 1, 10) == []
    assert made.take_due(last_may_go, 10) == [FIRST]


@pytest.mark.req("B-21")
@pytest.mark.parametrize(("offset", "due"), [(0, 0), (1, WIDTH), (WIDTH, WIDTH)])
def test_strict_delays_are_never_early(offset: int, due: int) -> None:
    start = (NOW // WIDTH + 10) * WIDTH
    made = DelayedMessages(TICK, strict=True)
    assert not made.add(FIRST, start + offset, start + offset)
    waits(made, FIRST, at=start + offset)
    assert made.next_due_ms(NOW) == start + due
    assert made.take_due(start + due - 1, 10) == []
    assert made.take_due(start + due, 10) == [FIRST]


@pytest.mark.req("B-21")
def test_delayed_messages_wake_no_more_than_once_a_tick() -> None:
    made = DelayedMessages(TICK, strict=True)
    waits(made, Position(1, 0), at=NOW + 5000)
    waits(made, Position(1, 1), at=NOW + 5000 + WIDTH)
    woken = made.next_due_ms(NOW)
    assert woken is not None
    made.woke(woken)
    assert made.take_due(woken, 10) == [Position(1, 0)]
    assert made.next_due_ms(woken) == woken + TICK


@pytest.mark.req("B-21")
def test_a_due_message_waits_for_a_consumer_and_not_for_a_timer() -> None:
    made = DelayedMessages(TICK, strict=False)
    assert made.next_due_ms(NOW) is None
    waits(made, FIRST)
    due = made.next_due_ms(NOW)
    assert due is not None
    assert made.next_due_ms(due) is None


def test_a_shorter_tick_changes_nothing_for_what_waits() -> None:
    """The buckets keep their width, so a message is due when the alarm of its bucket goes off."""
    made = DelayedMessages(TICK, strict=False)
    waits(made, FIRST)
    made.tick_ms = 100
    due = made.next_due_ms(NOW)
    assert due is not None
    assert made.take_due(due, 10) == [FIRST]
    assert due <= NOW + 5000 + WIDTH


def test_no_delayed_message_waits_twice() -> None:
    made = DelayedMessages(TICK, strict=False)
    positions = [Position(1, entry_id) for entry_id in range(100)]
    for _ in range(2):
        waits(made, *positions)
        assert len(made) == 100
    waits(made, Position(5, 7), Position(9, 3), Position(7, 9), at=NOW + 9000)
    assert len(made) == 103
    assert made.take_due(NOW + 5000, 1000) == positions
    made.clear()
    assert len(made) == 0
    assert made.next_due_ms(NOW) is None
    assert made.take_due(NOW + 90_000, 1000) == []


delays = st.one_of(st.integers(-10, 4000), st.integers(0, 2**40), st.sampled_from([2**63 - 1 - NOW, -NOW - 1]))
steps = st.one_of(
    st.tuples(st.just("add"), st.lists(delays, min_size=1, max_size=100), st.booleans()),
    st.tuples(st.just("take"), st.integers(0, 3000), st.integers(1, 90)),
    st.tuples(st.just("wake"), st.just(0), st.integers(1, 90)),
)


@pytest.mark.req("B-21")
@given(st.lists(steps, max_size=12), st.sampled_from([1, 2, 7, 1000, 1024]), st.booleans())
def test_delayed_messages_behave_as_a_plain_list(
    program: list[tuple[str, object, int]], tick: int, strict: bool
) -> None:
    made, model = DelayedMessages(tick, strict), set[tuple[int, Position]]()
    width = max(power for power in (1, 2, 4, 512, 1024) if power <= tick)
    now, number = NOW, 0
    for verb, argument, limit in program:
        if verb == "add":
            assert isinstance(argument, list)
            for delay in argument * 5 if limit else argument:
                number = number * 7919 % 10007 + 1
                position = Position(number % 3, number)
                deliver_at = now + delay
                added = made.add(position, deliver_at, now)
                assert added is (deliver_at > now + (0 if strict else tick))
                bucket = -(-deliver_at // width) * width if strict else deliver_at // width * width
                if added:
                    model.add((bucket, position))
        else:
            due = made.next_due_ms(now)
            now = (due or now) if verb == "wake" else now + argument  # type: ignore[operator]
            latest = now if strict else now + tick - width + 1
            taken = sorted(each for each in model if each[0] <= latest)[:limit]
            assert made.take_due(now, limit) == sorted(position for _, position in taken)
            assert taken or verb == "take" or due is None
            model.difference_update(taken)
        assert len(made) == len(model)


@pytest.mark.req("B-21")
@pytest.mark.parametrize(("apart", "room"), [(1, 20), (600, 250)])
def test_a_delayed_message_takes_few_bytes(apart: int, room: int) -> None:
    """The messages are `apart` milliseconds apart, and each may take `room` bytes of Python's memory."""
    made, count = DelayedMessages(TICK, strict=False), 10_000
    tracemalloc.start()
    try:
        for number in range(count):
            made.add(Position(7, number), NOW + 5000 + number * apart, NOW)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(made) == count
    assert size < count * room
