"""Positions between messages."""

from __future__ import annotations

import pytest

from pulsarium.client import MessageId
from pulsarium.pipeline.source.places import FIRST, Position


@pytest.mark.parametrize("position", [Position(3, 4), Position(3, 4, 5), FIRST, Position(2**62, 0)])
def test_text_and_back(position: Position) -> None:
    assert Position.parse(str(position)) == position


def test_text_is_what_pulsar_writes() -> None:
    assert str(Position(3, 4)) == "3:4"
    assert str(Position(3, 4, 5)) == "3:4:-1:5"


def test_behind_a_message() -> None:
    assert Position.behind(MessageId(3, 4)) == Position(3, 5)
    assert Position.behind(MessageId(3, 4, 0, 1, 3)) == Position(3, 4, 2)
    assert Position.behind(MessageId(3, 4, 0, 2, 3)) == Position(3, 5)
    assert Position.behind(MessageId(3, 4, 0, 2)) == Position(3, 4, 3)  # of a batch of unknown size


def test_positions_are_ordered_by_ledger_entry_and_batch_index() -> None:
    assert FIRST < Position(0, 0) < Position(0, 0, 1) < Position(0, 1) < Position(1, 0)


def test_message_id_to_begin_at() -> None:
    assert Position(3, 4).message_id() == MessageId(3, 4)
    assert Position(3, 4, 2).message_id() == MessageId(3, 4, batch_index=2)
