"""Talks that each break one rule, and a talk that breaks none."""

from __future__ import annotations

from collections.abc import Callable

from .talk import BROKER, CLIENT, TOPIC, Talk, encoded, entry


def conforming(talk: Talk) -> None:
    """Play the usual traffic of a connection, which breaks no rule."""
    talk.greet()
    talk.client("LOOKUP", topic=TOPIC, request_id=1)
    talk.broker("LOOKUP_RESPONSE", request_id=1, response=1)
    talk.produce()
    talk.subscribe(permits=2)
    for position in range(2):
        talk.send(position)
        talk.deliver(position)
    talk.ack(0, 1)
    talk.client("FLOW", consumer_id=1, messagePermits=1)
    talk.deliver(2, messages=5)
    talk.broker("PING")
    talk.client("PONG")
    talk.client("CLOSE_CONSUMER", consumer_id=1, request_id=2)
    talk.broker("SUCCESS", request_id=2)
    talk.client("CLOSE_PRODUCER", producer_id=1, request_id=3)
    talk.broker("SUCCESS", request_id=3)


def _broken(talk: Talk) -> None:
    talk.raw(CLIENT, b"\x00\x00\x00\x05\x00\x00\x00\x09\x08")


def _too_big(talk: Talk) -> None:
    data = encoded("PING", b"x")
    talk.raw(CLIENT, (6_000_000 - 4).to_bytes(4, "big") + data[4:], 6_000_000)


def _newer(talk: Talk) -> None:
    talk.greet(8)
    talk.subscribe(kind=2)
    talk.broker("ACTIVE_CONSUMER_CHANGE", consumer_id=1, is_active=True)


def _not_offered(talk: Talk) -> None:
    talk.client("CONNECT", client_version="c", protocol_version=12)
    talk.broker("CONNECTED", server_version="b", protocol_version=21)


def _reused(talk: Talk) -> None:
    talk.greet()
    talk.client("LOOKUP", topic=TOPIC, request_id=1)
    talk.client("LOOKUP", topic=TOPIC, request_id=1)
    talk.broker("LOOKUP_RESPONSE", request_id=1)
    talk.broker("LOOKUP_RESPONSE", request_id=1)


def _twice(talk: Talk) -> None:
    talk.produce()
    talk.broker("ERROR", request_id=100, error=0, message="after all not")


def _wrong_answer(talk: Talk) -> None:
    talk.client("LOOKUP", topic=TOPIC, request_id=1)
    talk.broker("SUCCESS", request_id=1)


def _unanswered(talk: Talk) -> None:
    talk.client("LOOKUP", topic=TOPIC, request_id=1)
    talk.close(after_ms=1500)


def _send_to_closed(talk: Talk) -> None:
    talk.produce()
    talk.client("CLOSE_PRODUCER", producer_id=1, request_id=1)
    talk.broker("SUCCESS", request_id=1)
    talk.send(0)


def _not_ready(talk: Talk) -> None:
    talk.client("PRODUCER", topic=TOPIC, producer_id=1, request_id=1)
    talk.send(0)
    talk.broker("PRODUCER_SUCCESS", request_id=1, producer_name="p")


def _producing(*steps: Callable[[Talk], None]) -> Callable[[Talk], None]:
    def plant(talk: Talk) -> None:
        talk.produce()
        for step in steps:
            step(talk)

    return plant


def _consuming(*steps: Callable[[Talk], None], kind: int = 1, permits: int = 2) -> Callable[[Talk], None]:
    def plant(talk: Talk) -> None:
        talk.subscribe(kind=kind, permits=permits)
        for step in steps:
            step(talk)

    return plant


def _bad_checksum(talk: Talk) -> None:
    talk.client("SEND", entry()[:-1] + b"!", producer_id=1, sequence_id=0)
    talk.receipt(0)


def _unreadable(talk: Talk) -> None:
    talk.client("SEND", b"\x00\x00\x00\xff", producer_id=1, sequence_id=0)
    talk.receipt(0)


def _miscounted(talk: Talk) -> None:
    talk.client("SEND", entry(3), producer_id=1, sequence_id=0, num_messages=2)
    talk.receipt(0)


def _out_of_order(talk: Talk) -> None:
    for sequence in (0, 1):
        talk.send(sequence, receipt=False)
    for sequence in (1, 0):
        talk.receipt(sequence)


def _backwards(talk: Talk) -> None:
    talk.produce(user_provided_producer_name=False)
    for sequence in (5, 4):
        talk.send(sequence)


def _closed_then_message(talk: Talk) -> None:
    talk.client("CLOSE_CONSUMER", consumer_id=1, request_id=1)
    talk.broker("SUCCESS", request_id=1)
    talk.deliver(0)


BEFORE_GREETING: dict[str, Callable[[Talk], None]] = {
    "command-before-connect": lambda talk: talk.client("LOOKUP", topic=TOPIC, request_id=1),
    "command-before-connected": lambda talk: talk.broker("REACHED_END_OF_TOPIC", consumer_id=1),
    "newer-than-version": _newer,
    "request-id-reused": _reused,
    "version-not-offered": _not_offered,
}
"""Talks that greet in their own way, or do not greet, by the rule that each breaks."""

AFTER_GREETING: dict[str, Callable[[Talk], None]] = {
    "broken-frame": _broken,
    "frame-too-big": _too_big,
    "wrong-direction": lambda talk: talk.client("REACHED_END_OF_TOPIC", consumer_id=1),
    "second-connect": lambda talk: talk.client("CONNECT", client_version="c", protocol_version=21),
    "second-connected": lambda talk: talk.broker("CONNECTED", server_version="b", protocol_version=21),
    "feature-not-offered": lambda talk: talk.client("WATCH_TC_ASSIGNMENTS", watch_id=1),
    "pong-unasked": lambda talk: talk.client("PONG"),
    "answer-to-nothing": lambda talk: talk.broker("SUCCESS", request_id=77),
    "answered-twice": _twice,
    "wrong-answer": _wrong_answer,
    "unanswered-request": _unanswered,
    "producer-id-in-use": _producing(lambda talk: talk.produce(request=101)),
    "unknown-producer": _send_to_closed,
    "send-before-ready": _not_ready,
    "sequence-goes-back": _backwards,
    "receipt-of-nothing": _producing(lambda talk: talk.receipt(9)),
    "receipts-out-of-order": _producing(_out_of_order),
    "checksum-wrong": _producing(_bad_checksum),
    "entry-unreadable": _producing(_unreadable),
    "num-messages-mismatch": _producing(_miscounted),
    "consumer-id-in-use": _consuming(lambda talk: talk.subscribe(request=201)),
    "unknown-consumer": lambda talk: talk.client("FLOW", consumer_id=9, messagePermits=1),
    "message-to-nobody": _consuming(_closed_then_message),
    "permits-exceeded": _consuming(lambda talk: talk.deliver(0), lambda talk: talk.deliver(1), permits=1),
    "ack-not-delivered": _consuming(lambda talk: talk.deliver(0), lambda talk: talk.ack(0, 1)),
    "cumulative-on-shared": _consuming(lambda talk: talk.deliver(0), lambda talk: talk.ack(0, cumulative=True)),
    "cumulative-of-many": _consuming(
        lambda talk: talk.deliver(0),
        lambda talk: talk.deliver(1),
        lambda talk: talk.ack(0, 1, cumulative=True),
        kind=0,
    ),
    "active-change-elsewhere": _consuming(
        lambda talk: talk.broker("ACTIVE_CONSUMER_CHANGE", consumer_id=1, is_active=True)
    ),
}

PLANTED = {**BEFORE_GREETING, **AFTER_GREETING}

FAULT_OF = dict.fromkeys(PLANTED, CLIENT) | dict.fromkeys(
    [
        "command-before-connected",
        "newer-than-version",
        "version-not-offered",
        "second-connected",
        "answer-to-nothing",
        "answered-twice",
        "wrong-answer",
        "unanswered-request",
        "receipt-of-nothing",
        "receipts-out-of-order",
        "message-to-nobody",
        "permits-exceeded",
        "active-change-elsewhere",
    ],
    BROKER,
)


def plant(name: str, talk: Talk) -> Talk:
    """Add the frames that break the rule `name`, and return the talk."""
    if name in AFTER_GREETING:
        talk.greet()
    PLANTED[name](talk)
    return talk
