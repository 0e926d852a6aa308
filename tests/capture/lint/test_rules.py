"""Rules find planted violations, and no violation in legal traffic."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.capture.file import CaptureRecord
from pulsarium.capture.lint.checker import Checker
from pulsarium.capture.lint.exchanges import Matcher
from pulsarium.capture.lint.frames import Conversation, client_of
from pulsarium.capture.lint.rule import RULES, Severity
from pulsarium.capture.lint.shared import Positions, Shared
from pulsarium.capture.lint.state import LintedConnection
from pulsarium.proto.commands import Direction
from pulsarium.proto.framing import frame as framed
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, CommandAck

from .legal import LEGAL
from .planted import FAULT_OF, PLANTED, conforming, plant
from .talk import BROKER, CLIENT, TOPIC, Talk, encoded, entry
from .transcripts import complete, records

# PINGs and AUTH_CHALLENGEs that the recording client did not answer, by transcript: its scenarios want this.
SILENT_CLIENTS = {"029": 1, "049": 1, "127": 3, "143": 1, "150": 1}


def broken(some: list[CaptureRecord]) -> list[tuple[int, str, Direction]]:
    """Return the connection, the rule and the side at fault of each violation on interleaved connections."""
    checkers: dict[int, Checker] = {}
    shared = Shared()
    found = []
    for record in some:
        checker = checkers.setdefault(record.connection, Checker(shared))
        found += [(record.connection, each.rule.name, each.side) for each in checker.feed(record).violations]
    return found


def test_each_rule_about_brokers_has_a_talk_that_breaks_it() -> None:
    """Rules about clients have programs instead: tests/broker/lab/linter_programs."""
    assert {name for name, each in RULES.items() if each.about is Direction.BROKER} <= PLANTED.keys() <= RULES.keys()
    assert all(RULES[name].about in (side, Direction.BOTH) for name, side in FAULT_OF.items())


@pytest.mark.parametrize("name", PLANTED)
def test_each_planted_violation_is_found(name: str) -> None:
    assert broken(plant(name, Talk()).records) == [(0, name, FAULT_OF[name])]


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    talk = Talk()
    conforming(talk)
    talk.close()
    assert broken(talk.records) == []


@pytest.mark.parametrize("name", LEGAL)
def test_unusual_but_legal_traffic_breaks_no_rule(name: str) -> None:
    talk = Talk()
    talk.greet()
    LEGAL[name](talk)
    talk.close(after_ms=3000)
    assert broken(talk.records) == []


def test_messages_of_an_unseen_subscription_may_be_acknowledged() -> None:
    before, now = Talk(0, opened=False), Talk(1)
    before.deliver(5)
    now.greet()
    now.subscribe()
    now.ack(5)
    assert broken([*before.records, *now.records]) == []
    assert broken(now.records) == [(1, "ack-not-delivered", CLIENT)]


def test_messages_sent_on_another_connection_of_the_topic_may_be_acknowledged() -> None:
    one, other = Talk(0), Talk(1)
    for talk in (one, other):
        talk.greet()
        talk.subscribe()
    one.deliver(5)
    other.ack(5)
    assert broken([*one.records, *other.records]) == []
    elsewhere = Talk(2, topic=f"{TOPIC}-2")
    elsewhere.greet()
    elsewhere.subscribe()
    elsewhere.ack(5)
    assert broken([*one.records, *elsewhere.records]) == [(2, "ack-not-delivered", CLIENT)]


def test_messages_acknowledged_on_another_connection_count_as_acknowledged() -> None:
    usual, other = Talk(0), Talk(1)
    conforming(usual)
    plant("ack-not-delivered", other)  # the first connection delivered and acknowledged the same message
    assert broken([*usual.records, *other.records]) == [(1, "ack-twice", CLIENT)]
    assert broken([*other.records, *usual.records])[0] == (1, "ack-not-delivered", CLIENT)


def test_frames_that_cross_a_close_are_not_judged() -> None:
    talk = Talk()
    talk.greet()
    talk.produce()
    talk.send(0, receipt=False)
    talk.close()
    talk.receipt(0)
    assert broken(talk.records) == []


@pytest.mark.parametrize(("fields", "rules"), [({"message_permits": 100}, []), ({}, ["flow-overflow"])])
def test_a_broker_with_pip_491_says_what_a_damaged_entry_cost(fields: dict[str, int], rules: list[str]) -> None:
    talk = Talk()
    talk.greet()
    talk.subscribe(permits=2**31 - 1)
    talk.broker("MESSAGE", b"damaged", consumer_id=1, message_id=(1, 0), **fields)
    talk.client("FLOW", consumer_id=1, messagePermits=100)
    found = [rule for _, rule, side in broken(talk.records) if side is CLIENT]
    assert found == rules


@pytest.mark.parametrize("judging", [True, False])
def test_memory_does_not_follow_the_messages(judging: bool) -> None:
    talk = Talk()
    talk.greet()
    talk.produce()
    talk.subscribe(permits=20_000)
    checker = Checker(judging=judging)
    for record in talk.records:
        checker.feed(record)

    def memory_after(messages: range) -> int:
        for number in messages:
            talk.records.clear()
            talk.deliver(number, messages=3)
            talk.ack(number)
            talk.send(number)
            talk.client("LOOKUP", topic="t", request_id=1000 + number)
            talk.broker("LOOKUP_RESPONSE", request_id=1000 + number)
            for record in talk.records:
                assert checker.feed(record).violations == []
        return tracemalloc.get_traced_memory()[0]

    memory_after(range(100))
    tracemalloc.start()
    try:
        before = memory_after(range(100, 200))
        assert memory_after(range(200, 800)) - before < 20_000  # bytes
    finally:
        tracemalloc.stop()


def test_a_receipt_costs_the_same_however_many_wait() -> None:
    """The matcher looks at the oldest SEND of the receipt's producer, and not at the SENDs of all producers."""
    matcher = Matcher()
    conversation = Conversation()
    talk = Talk()
    for number in range(50):
        talk.send(number, producer=1, receipt=False)
    talk.send(0, producer=2, receipt=False)
    talk.send(1, producer=2, receipt=False)
    talk.receipt(0, producer=2)
    for record in talk.records[1:]:
        matcher.feed(conversation.feed(record))
    oldest = matcher.oldest_send(2)
    assert oldest is not None
    assert (oldest.producer_id, oldest.sequence_id) == (2, 1)
    assert matcher.oldest_send(3) is None


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("CONNECT", {"client_version": "ZZZZ-1.2"}),
        ("LOOKUP", {"topic": "ZZZZ", "request_id": 1}),
        ("SUBSCRIBE", {"topic": "t", "subscription": "ZZZZ", "subType": 1, "consumer_id": 1, "request_id": 1}),
        ("ERROR", {"request_id": 1, "error": 1, "message": "ZZZZ"}),
    ],
)
def test_texts_that_are_no_utf8_are_read_all_the_same(name: str, fields: dict[str, Any]) -> None:
    talk = Talk(opened=False)
    talk.raw(CLIENT, encoded(name, **fields).replace(b"ZZZZ", b"\xff\xfe\xff\xfe"))
    conversation = Conversation()
    frame = conversation.feed(talk.records[0])
    for text in (conversation.client, frame.topic, frame.error_message):
        assert text is None or isinstance(text, str)
    assert frame.name == name


def test_a_long_client_version_is_not_searched_to_its_end() -> None:
    assert client_of("-" * 5_000_000) == ("-" * 5_000_000, "")
    assert client_of("Pulsar-Java-v4.0.1") == ("Pulsar-Java", "4.0.1")


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2), st.integers(-1, 40))))
def test_positions_are_sets(steps: list[tuple[bool, int, int]]) -> None:
    positions = Positions()
    wanted: set[tuple[int, int]] = set()
    last = (-1, -1)
    for adds, *numbers in steps:
        one = (numbers[0], numbers[1])
        (positions.add if adds else positions.discard)(one)
        (wanted.add if adds else wanted.discard)(one)
        last = max(last, one) if adds else last
    assert {one for one in product(range(3), range(-1, 42)) if one in positions} == wanted
    assert positions.last == last


@pytest.mark.parametrize("name", PLANTED)
def test_a_connection_that_was_not_captured_from_its_opening_on_is_not_judged(name: str) -> None:
    assert broken(plant(name, Talk(opened=False)).records) == []


def test_a_connection_that_broke_owes_no_answers() -> None:
    talk = Talk()
    talk.greet()
    talk.client("LOOKUP", topic="t", request_id=1)
    talk.close(after_ms=5000, reason="reset by peer")
    assert broken(talk.records) == []


@given(st.lists(st.sampled_from([*PLANTED, ""]), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_among_others_it_is_found_too(names: list[str], random: object) -> None:
    """The records of the connections are mixed. The checker blames no connection for a violation of another."""
    # Each talk has its own topic, because consumers of one topic may acknowledge each other's messages.
    talks = [Talk(at, topic=f"{TOPIC}-{at}") for at in range(len(names))]
    for name, talk in zip(names, talks, strict=True):
        if name:
            plant(name, talk)
        else:
            conforming(talk)
    left = [list(talk.records) for talk in talks]
    mixed: list[CaptureRecord] = []
    while any(left):
        mixed.append(random.choice([some for some in left if some]).pop(0))  # type: ignore[attr-defined]
    wanted = Counter((at, name) for at, name in enumerate(names) if name)
    found = Counter((at, name) for at, name, _ in broken(mixed))
    assert found == wanted


def test_ack_sets_of_a_batch_whose_size_was_not_kept_are_no_ack_of_all_of_it() -> None:
    """A capture may keep too few bytes of an entry to tell the number of its messages."""
    talk = Talk()
    talk.greet()
    talk.subscribe()
    message = encoded("MESSAGE", entry(3), consumer_id=1, message_id=(1, 0))
    talk.raw(BROKER, message[:-50], len(message))
    one = BaseCommand(type=BaseCommand.ACK)
    one.ack.MergeFrom(CommandAck(consumer_id=1, ack_type=CommandAck.Individual))
    one.ack.message_id.add(ledgerId=1, entryId=0, ack_set=[0b110])
    talk.raw(CLIENT, framed(one.SerializeToString()))
    talk.ack(0)
    assert broken(talk.records) == []
    talk.ack(0)
    assert [name for _, name, _ in broken(talk.records)] == ["ack-twice"]


@pytest.mark.parametrize("command", ["CLOSE_PRODUCER", "CLOSE_CONSUMER"])
def test_closing_twice_is_a_warning(command: str) -> None:
    """Pulsar answers SUCCESS, even when the producer or the consumer does not exist."""
    talk = Talk()
    talk.greet()
    talk.produce()
    talk.subscribe()
    for request, number in enumerate((1, 1, 9)):
        closed = {"producer_id": number} if command == "CLOSE_PRODUCER" else {"consumer_id": number}
        talk.client(command, b"", request_id=request, **closed)
        talk.broker("SUCCESS", request_id=request)
    assert [name for _, name, _ in broken(talk.records)] == ["closed-twice", "closed-twice"]
    assert RULES["closed-twice"].severity is Severity.WARNING


def _state_after(requests: Iterable[int]) -> LintedConnection:
    """Return the state of a connection whose requests with these ids were answered."""
    talk = Talk()
    talk.greet()
    state = LintedConnection(Shared())
    for request in requests:
        talk.records.clear()
        talk.client("GET_SCHEMA", topic=TOPIC, request_id=request)
        talk.broker("GET_SCHEMA_RESPONSE", request_id=request)
        for record in talk.records:
            state.apply(state.conversation.feed(record))
    return state


def test_all_answered_requests_of_a_client_that_counts_are_remembered() -> None:
    """A client counts request ids for several connections together, so the ids of each connection have gaps."""
    state = _state_after(range(0, 24_000, 2))
    assert len(state.answered) == 12_000
    assert 0 in state.answered


def test_answered_requests_that_are_far_apart_are_remembered_within_bounds() -> None:
    state = _state_after(range(0, 12_000 << 20, 1 << 20))
    assert 5_000 < len(state.answered) <= 11_000
    assert 11_999 << 20 in state.answered
    assert 0 not in state.answered


@pytest.mark.parametrize("path", complete(), ids=lambda path: path.stem)
def test_a_real_broker_breaks_no_rule(path: Path) -> None:
    faults = [each for each in broken(list(records(path))) if each[2] is Direction.BROKER]
    assert faults == []


@pytest.mark.parametrize("path", [each for each in complete() if each.stem[:3] in SILENT_CLIENTS], ids=lambda p: p.stem)
def test_clients_that_do_not_answer_are_found(path: Path) -> None:
    faults = [name for _, name, side in broken(list(records(path))) if side is Direction.CLIENT]
    owed = faults.count("no-pong") + faults.count("challenge-unanswered")
    assert owed == SILENT_CLIENTS[path.stem[:3]]
