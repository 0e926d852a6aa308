"""Tests of the positions that one acknowledgement covers."""

from __future__ import annotations

from pulsarium.client import MessageId
from pulsarium.client.scalable.deliveries import Deliveries


def test_an_acknowledgement_covers_what_was_delivered_before_it_in_all_segments() -> None:
    deliveries = Deliveries()
    deliveries.add("a", MessageId(1, 0))
    deliveries.add("b", MessageId(2, 0))
    number = deliveries.add("a", MessageId(1, 1))
    deliveries.add("b", MessageId(2, 1))
    assert deliveries.through(number) == {"a": [MessageId(1, 0), MessageId(1, 1)], "b": [MessageId(2, 0)]}


def test_a_segment_is_drained_when_all_its_deliveries_are_acknowledged() -> None:
    deliveries = Deliveries()
    first, last = deliveries.add("a", MessageId(1, 0)), deliveries.add("a", MessageId(1, 1))
    deliveries.done(first, "a")
    assert "a" in deliveries
    deliveries.done(last, "a")
    assert "a" not in deliveries


def test_a_redelivered_message_does_not_turn_a_position_back() -> None:
    deliveries = Deliveries()
    deliveries.add("a", MessageId(1, 5))
    number = deliveries.add("a", MessageId(1, 4))
    assert deliveries.through(number)["a"][-1] == MessageId(1, 5)
