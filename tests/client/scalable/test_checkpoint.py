"""Tests of checkpoints: their bytes, and the position of each segment in another layout."""

from __future__ import annotations

import pytest

from pulsarium.client import Checkpoint, MessageId
from pulsarium.client.errors import InvalidMessage
from tests.client.scalable.layouts import MERGED, ONE, SPLIT, layout

HERE = MessageId(3, 4, -1, 1, 2)


@pytest.mark.parametrize("checkpoint", [Checkpoint.at({0: HERE, 7: MessageId.earliest}), Checkpoint.at({})])
def test_a_checkpoint_survives_storage(checkpoint: Checkpoint) -> None:
    restored = Checkpoint.deserialize(checkpoint.serialize())
    assert restored == checkpoint
    assert restored.created_at == checkpoint.created_at


@pytest.mark.parametrize(("end", "data"), [(Checkpoint.earliest, b"\1"), (Checkpoint.latest, b"\2")])
def test_the_ends_of_a_topic_are_one_byte_as_in_java(end: Checkpoint, data: bytes) -> None:
    assert end.serialize() == data
    assert Checkpoint.deserialize(data) is end


def test_a_checkpoint_has_the_bytes_of_pulsars_java_client() -> None:
    data = Checkpoint({1: MessageId(2, 3)}, 5).serialize()
    own = MessageId(2, 3).serialize()
    expected = bytes([0]) + (5).to_bytes(8, "big") + (1).to_bytes(4, "big")
    assert data == expected + (1).to_bytes(8, "big") + len(own).to_bytes(4, "big") + own


@pytest.mark.parametrize("cut", range(1, 30, 3))
def test_a_checkpoint_that_is_cut_off_is_refused(cut: int) -> None:
    data = Checkpoint.at({0: HERE}).serialize()
    with pytest.raises(InvalidMessage):
        Checkpoint.deserialize(data[:-cut])


@pytest.mark.parametrize("data", [b"", b"\3" * 13, b"\0" * 14, b"\0" * 9 + b"\xff" * 4, b"\0" * 12 + b"\1" * 20])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidMessage):
        Checkpoint.deserialize(data)


def test_a_child_that_the_checkpoint_does_not_know_is_read_from_its_first_message() -> None:
    checkpoint = Checkpoint.at({0: HERE})
    assert checkpoint.start_of(0, layout(SPLIT)) == HERE
    assert checkpoint.start_of(1, layout(SPLIT)) == MessageId.earliest


def test_a_parent_that_the_checkpoint_does_not_know_was_read_before() -> None:
    checkpoint = Checkpoint.at({1: HERE, 2: HERE})
    assert checkpoint.start_of(0, layout(MERGED)) is None
    assert checkpoint.start_of(3, layout(MERGED)) == MessageId.earliest


def test_the_ends_of_a_topic_are_the_ends_of_its_segments() -> None:
    assert Checkpoint.earliest.start_of(0, layout(SPLIT)) == MessageId.earliest
    assert Checkpoint.latest.start_of(0, layout(SPLIT)) is None
    assert Checkpoint.latest.start_of(0, layout(ONE)) == MessageId.latest
