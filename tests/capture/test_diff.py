"""Differences of two captures, and the fields that are ignored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pulsarium.capture.diff import Difference, differences
from tests.capture.lint.planted import conforming
from tests.capture.lint.talk import Talk, encoded, entry

T = "persistent://public/default/"


def compared(old: list[Talk], new: list[Talk], **options: Any) -> list[Difference]:
    def source(talks: list[Talk]) -> Callable[[], list[Any]]:
        return lambda: [record for talk in talks for record in talk.records]

    return differences(source(old), source(new), **options)


def said(found: list[Difference]) -> list[str]:
    return [
        f"{sign}{change.side.value} {step.words}"
        for each in found
        for change in each.changes
        for sign, steps in (("-", change.old), ("+", change.new))
        for step in steps
    ]


def session(connection: int = 0, *, topic: str = "t", request: int = 1, ledger: int = 1, producer: int = 1) -> Talk:
    talk = Talk(connection)
    talk.greet()
    talk.client("LOOKUP", topic=T + topic, request_id=request)
    talk.broker("LOOKUP_RESPONSE", request_id=request, brokerServiceUrl=f"pulsar://h:{1000 + ledger}", response=1)
    talk.client("PRODUCER", topic=T + topic, producer_id=producer, request_id=request + 1)
    talk.broker("PRODUCER_SUCCESS", request_id=request + 1, producer_name=f"name-{ledger}")
    talk.client("SEND", entry(), producer_id=producer, sequence_id=0)
    talk.broker("SEND_RECEIPT", producer_id=producer, sequence_id=0, message_id=(ledger, 0))
    return talk


def test_differences_of_any_two_runs_are_ignored() -> None:
    """Ids, ledgers, names that only one run has, URLs and keep-alive differ between any two runs."""
    new = session(5, topic="u", request=40, ledger=7, producer=3)
    new.client("PING")
    new.broker("PONG")
    assert compared([session()], [new]) == []
    assert said(compared([session()], [new], ignore=())) == ["+client PING -> PONG"]


def test_connections_in_another_order() -> None:
    one, two, other = session(1, topic="a"), session(2, topic="b"), Talk(3)
    two.client("SEND", entry(), producer_id=1, sequence_id=1)
    conforming(other)
    assert compared([one, two, other], [other, two, one]) == []


def test_a_connection_without_a_frame_is_no_difference() -> None:
    assert compared([Talk(3), session()], [session()]) == []


def test_names_that_both_have_must_be_the_same() -> None:
    both = [session(1, topic="a"), session(2, topic="b")]
    [found] = compared(both, [session(1, topic="a"), session(2, topic="a")])
    assert "+client PRODUCER topic=persistent://public/default/a producer_id=<1> -> PRODUCER_SUCCESS" in " ".join(
        said([found])
    )


def test_partitions_of_a_topic_of_the_run() -> None:
    def of(base: str, *partitions: int) -> Talk:
        talk = Talk()
        for number in partitions:
            talk.client("PRODUCER", topic=f"{T}{base}-partition-{number}", producer_id=number, request_id=number)
        return talk

    assert compared([of("x", 0, 1)], [of("y", 0, 1)]) == []
    assert compared([of("x", 0, 1)], [of("y", 0, 2)]) != []


@pytest.mark.parametrize(("texts", "count"), [(False, 0), (True, 2)])
def test_the_words_of_errors(texts: bool, count: int) -> None:
    def of(words: str, code: int = 1) -> Talk:
        talk = Talk()
        talk.client("LOOKUP", topic=T, request_id=1)
        talk.broker("ERROR", request_id=1, error=code, message=words)
        return talk

    assert len(said(compared([of("no")], [of("not at all")], texts=texts))) == count
    assert said(compared([of("no")], [of("no", 2)])) == [
        "-client LOOKUP topic=persistent://public/default/ -> ERROR error=MetadataError",
        "+client LOOKUP topic=persistent://public/default/ -> ERROR error=PersistenceError",
    ]


def test_unasked_frames_of_the_broker_are_compared_in_order() -> None:
    def of(*positions: int) -> Talk:
        talk = Talk()
        talk.greet()
        talk.subscribe()
        for each in positions:
            talk.deliver(each)
        return talk

    [found] = compared([of(0, 1, 2)], [of(0, 2, 3)])
    [old, new] = found.changes
    assert [len(each) for each in (old.before, old.old, old.new, new.before, new.old, new.new)] == [1, 1, 0, 2, 0, 1]


def test_bytes_that_are_no_frame_are_compared() -> None:
    def of(data: bytes) -> Talk:
        talk = Talk()
        talk.raw(talk.records[0].sender, data)
        return talk

    assert compared([of(b"\x00\x00\x00\x01\x00")], [of(b"\x00\x00\x00\x01\x00")]) == []
    assert compared([of(b"\x00\x00\x00\x01\x00")], [of(encoded("PONG"))]) != []


def test_fields_that_a_real_broker_leaves_to_chance_are_ignored() -> None:
    def of(*highest: int) -> Talk:
        talk = Talk()
        for sequence, each in enumerate(highest):
            talk.client("SEND", entry(), producer_id=1, sequence_id=sequence)
            talk.broker("SEND_RECEIPT", producer_id=1, sequence_id=sequence, highest_sequence_id=each)
        return talk

    assert compared([of(0, 2**64 - 1)], [of(2**64 - 1, 0)]) == []
    assert compared([of(5)], [of(6)]) != []


def test_producers_and_consumers_speak_for_themselves() -> None:
    """The threads of a client decide the order of its commands for several producers."""

    def of(*producers: int) -> Talk:
        talk = Talk()
        for each in (1, 2):
            talk.produce(each, 100 + each)
        for each in producers:
            talk.send(0, each)
        return talk

    assert compared([of(1, 2)], [of(2, 1)]) == []
    assert compared([of(1, 2)], [of(1, 1)]) != []
