"""Positions in startingOffsets and endingOffsets, and times in startingTime and endingTime.

Positions between messages.
"""

from __future__ import annotations

import json

import pytest

from pulsarium.client import MessageId
from pulsarium.pipeline.options import BadOption, Options
from pulsarium.pipeline.source.places import (
    FIRST,
    AtIndex,
    AtMessage,
    AtTime,
    Earliest,
    EndOfTopic,
    Place,
    Places,
    ReadPosition,
    ending,
    starting,
)

T, PARTITION = "persistent://public/default/t", "persistent://public/default/t-partition-1"


def start(text: str, option: str = "startingOffsets") -> Places:
    return starting(Options({option: text}), EndOfTopic())


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("earliest", Earliest()),
        (" Latest ", EndOfTopic()),
        ("8:11", AtMessage(MessageId(8, 11))),
        ("8:11:-1:3", AtMessage(MessageId(8, 11, -1, 3))),
        ("index:12", AtIndex(12)),
        ("2026-01-31T12:00:00Z", AtTime(1769860800000)),
        ("2026-01-31T12:00:00", AtTime(1769860800000)),
        ("2026-01-31 13:00:00+01:00", AtTime(1769860800000)),
        ("1769860800000", AtTime(1769860800000)),
    ],
)
def test_a_place_for_all(text: str, place: Place) -> None:
    assert start(text) == Places(place)


@pytest.mark.parametrize("text", ["", "first", "index:", "index:-1", "8:", "8:11:x", "-2"])
def test_an_invalid_position_is_refused(text: str) -> None:
    with pytest.raises(BadOption, match=r'"startingOffsets" must be earliest, latest, a message id'):
        start(text)


@pytest.mark.parametrize("text", ["{", '{"t": "x"}', '{"t": [8]}', '{"t": [8, "x"]}', '{"t": null}'])
def test_starting_offsets_that_are_no_json_of_positions_are_refused(text: str) -> None:
    with pytest.raises(BadOption, match="startingOffsets"):
        start(text)


def test_by_topic_as_pulsars_connector_has_it() -> None:
    own = [byte if byte < 128 else byte - 256 for byte in MessageId(200, 11, 1, 3, 5).serialize()]
    assert min(own) < 0
    places = start(json.dumps({"t-partition-1": own, "t": "earliest"}))
    assert places.of(PARTITION) == AtMessage(MessageId(200, 11, 1, 3, 5))
    assert places.of(T + "-partition-0") == Earliest()  # the offset of the whole topic
    assert places.of("persistent://public/default/other") == EndOfTopic()  # the default


@pytest.mark.parametrize(("message_id", "place"), [(MessageId.earliest, Earliest()), (MessageId.latest, EndOfTopic())])
def test_the_connectors_ids_for_the_ends(message_id: MessageId, place: Place) -> None:
    assert start(json.dumps({"t": list(message_id.serialize())})).of(T) == place


def test_a_place_may_be_a_time() -> None:
    assert start("1000", "startingTime") == Places(AtTime(1000))
    assert start('{"t": 1000}', "startingTime").of(T) == AtTime(1000)
    assert ending(Options({"endingTime": "1970-01-01T00:00:01Z"})) == Places(AtTime(1000))
    with pytest.raises(BadOption, match=r'"startingTime" must be a time'):
        start("earliest", "startingTime")


def test_either_offsets_or_times() -> None:
    with pytest.raises(BadOption, match="give only one of the options"):
        starting(Options({"startingOffsets": "earliest", "startingTime": "1"}), EndOfTopic())


def test_nothing_ends_at_the_earliest() -> None:
    with pytest.raises(BadOption, match="cannot be earliest"):
        ending(Options({"endingOffsets": '{"t": "earliest"}'}))
    assert ending(Options({})) == Places(EndOfTopic())


def test_places_of_topics_that_are_not_read() -> None:
    places = start('{"t": "earliest"}')
    places.check([PARTITION], "startingOffsets")
    places.check([T], "startingOffsets")
    with pytest.raises(BadOption, match=f'"startingOffsets" names {T}, which is not read'):
        places.check(["persistent://public/default/u"], "startingOffsets")


@pytest.mark.parametrize("position", [ReadPosition(3, 4), ReadPosition(3, 4, 5), FIRST, ReadPosition(2**62, 0)])
def test_text_and_back(position: ReadPosition) -> None:
    assert ReadPosition.parse(str(position)) == position


def test_text_is_what_pulsar_writes() -> None:
    assert str(ReadPosition(3, 4)) == "3:4"
    assert str(ReadPosition(3, 4, 5)) == "3:4:-1:5"


def test_behind_a_message() -> None:
    assert ReadPosition.behind(MessageId(3, 4)) == ReadPosition(3, 5)
    assert ReadPosition.behind(MessageId(3, 4, 0, 1, 3)) == ReadPosition(3, 4, 2)
    assert ReadPosition.behind(MessageId(3, 4, 0, 2, 3)) == ReadPosition(3, 5)
    assert ReadPosition.behind(MessageId(3, 4, 0, 2)) == ReadPosition(3, 4, 3)  # of a batch of unknown size


def test_positions_are_ordered_by_ledger_entry_and_batch_index() -> None:
    assert FIRST < ReadPosition(0, 0) < ReadPosition(0, 0, 1) < ReadPosition(0, 1) < ReadPosition(1, 0)


def test_message_id_to_begin_at() -> None:
    assert ReadPosition(3, 4).message_id() == MessageId(3, 4)
    assert ReadPosition(3, 4, 2).message_id() == MessageId(3, 4, batch_index=2)
