"""The frames that a proxy looks at, among bytes that pass."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.lab.proxy.cutter import Cutter
from tests.broker.wire import Type, frame_of

PING, FLOW, SEND = (
    frame_of(Type.PING),
    frame_of(Type.FLOW, consumer_id=1, messagePermits=300),
    frame_of(Type.SEND, bytes(300), producer_id=1, sequence_id=1),
)
KINDS = {PING: Type.PING, FLOW: Type.FLOW, SEND: Type.SEND}


@given(
    st.lists(st.sampled_from([PING, FLOW, SEND])),
    st.sets(st.sampled_from([*KINDS.values()])),
    st.lists(st.integers(1, 400), min_size=1),
    st.booleans(),
)
def test_each_watched_frame_comes_whole_and_no_byte_changes_its_place(
    frames: list[bytes], watched: set[int], sizes: list[int], everything: bool
) -> None:
    data, cutter, cuts = b"".join(frames), Cutter(), []
    at = 0
    while at < len(data):
        size = sizes[at % len(sizes)]
        cuts += cutter.feed(data[at : at + size], None if everything else watched)
        at += size
    assert b"".join(cut.data for cut in cuts) + cutter.held == data
    assert cutter.held == b""
    assert [cut.data for cut in cuts if cut.is_frame] == [
        each for each in frames if everything or KINDS[each] in watched
    ]


def test_a_frame_under_way_still_passes_when_a_rule_begins_to_look() -> None:
    cutter = Cutter()
    assert cutter.feed(SEND[:50], ()) == [(SEND[:50], False)]
    assert cutter.feed(SEND[50:] + PING, None) == [(SEND[50:], False), (PING, True)]


def test_another_protocol_passes() -> None:
    cutter, said = Cutter(), b"GET / HTTP/1.1\r\n\r\n"
    assert cutter.feed(said, None) + cutter.feed(said, None) == [(said, False), (said, False)]


def test_a_frame_without_room_for_a_type_passes_at_once_and_so_does_all_behind_it() -> None:
    cutter, empty = Cutter(), bytes([0, 0, 0, 4, 0, 0, 0, 0])
    assert cutter.feed(PING + empty, None) == [(PING, True), (empty, False)]
    assert cutter.feed(PING, None) == [(PING, False)]


@pytest.mark.parametrize("length", [4, 6000])
@pytest.mark.parametrize("pieces", [[8], [3, 5], [4, 4]], ids=str)
def test_the_length_of_a_frame_that_the_broker_refuses_passes_at_once(length: int, pieces: list[int]) -> None:
    cutter, sent = Cutter(), length.to_bytes(4, "big") + bytes(4)
    cutter.most = 5000
    passed = b""
    for size in pieces:
        passed += b"".join(cut.data for cut in cutter.feed(sent[len(passed + cutter.held) :][:size], None))
    assert passed == sent


def test_a_frame_that_is_longer_than_the_broker_accepts_passes_as_it_arrives() -> None:
    cutter = Cutter()
    assert cutter.feed(SEND, None) == [(SEND, True)]
    cutter.most = len(SEND) - 1
    assert cutter.feed(SEND[:50], None) == [(SEND[:50], False)]
    assert cutter.feed(SEND[50:] + PING, None) == [(SEND[50:], False), (PING, True)]
