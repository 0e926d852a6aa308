"""Unusual talks that break no rule: frames that cross on the wire, early closes, and messages that are sent again."""

from __future__ import annotations

from collections.abc import Callable

from .talk import TOPIC, Talk, entry

BY_BROKER = 2**64 - 1
"""The request_id of a CLOSE_PRODUCER that the broker sends without a request of the client."""


def _sends(talk: Talk, *sequences: int) -> None:
    for sequence in sequences:
        talk.client("SEND", entry(sequence=sequence), producer_id=1, sequence_id=sequence)


def _close_producer(talk: Talk) -> None:
    talk.broker("CLOSE_PRODUCER", producer_id=1, request_id=BY_BROKER)


def _crossing(talk: Talk) -> None:
    talk.produce()
    _close_producer(talk)
    _sends(talk, 1)


def _crossing_and_again(talk: Talk) -> None:
    talk.produce(user_provided_producer_name=False)
    talk.send(0)
    _sends(talk, 1)
    _close_producer(talk)
    _sends(talk, 2)
    talk.produce(request=101, user_provided_producer_name=False, producer_name="p", epoch=1)
    for sequence in (1, 2, 3):
        talk.send(sequence)


def _waiting_for_its_turn(talk: Talk) -> None:
    """Close a producer that waits for exclusive access (WaitForExclusive)."""
    talk.client("PRODUCER", topic=TOPIC, producer_id=1, request_id=100, producer_access_mode=2)
    talk.broker("PRODUCER_SUCCESS", request_id=100, producer_name="p", producer_ready=False)
    talk.client("CLOSE_PRODUCER", producer_id=1, request_id=101)
    talk.broker("SUCCESS", request_id=101)


def _sent_again(talk: Talk) -> None:
    talk.produce(user_provided_producer_name=False)
    _sends(talk, 0, 1, 2)
    talk.broker("SEND_ERROR", producer_id=1, sequence_id=0, error=9, message="checksum")
    _sends(talk, 0, 1, 2)
    for sequence in (1, 2, 0, 1, 2):
        talk.receipt(sequence)


def _late_receipt(talk: Talk) -> None:
    talk.produce()
    _sends(talk, 0)
    _close_producer(talk)
    talk.client("PRODUCER", topic=TOPIC, producer_id=1, request_id=101, producer_name="p", epoch=1)
    talk.receipt(0)
    talk.broker("PRODUCER_SUCCESS", request_id=101, producer_name="p")


def _subscribed_again(talk: Talk) -> None:
    for request in (1, 3):
        talk.client("SUBSCRIBE", topic=TOPIC, subscription="s", subType=1, consumer_id=1, request_id=request)
        if request == 1:
            talk.client("CLOSE_CONSUMER", consumer_id=1, request_id=2)
    talk.broker("ERROR", request_id=1, error=0, message="closed before it was there")
    talk.broker("SUCCESS", request_id=2)
    talk.broker("SUCCESS", request_id=3)
    talk.client("FLOW", consumer_id=1, messagePermits=10)
    talk.deliver(0)
    talk.ack(0)


def _produced_again(talk: Talk) -> None:
    talk.client("PRODUCER", topic=TOPIC, producer_id=1, request_id=1)
    talk.client("CLOSE_PRODUCER", producer_id=1, request_id=2)
    talk.client("PRODUCER", topic=TOPIC, producer_id=1, request_id=3)
    talk.broker("ERROR", request_id=1, error=0, message="closed before it was there")
    talk.broker("SUCCESS", request_id=2)
    talk.broker("PRODUCER_SUCCESS", request_id=3, producer_name="p")
    talk.send(0)


def _replayed(talk: Talk) -> None:
    """Send lower sequence ids again, as an application does that names its producer and relies on deduplication."""
    talk.produce(producer_name="mine", user_provided_producer_name=True)
    for sequence in (5, 3, 4):
        talk.send(sequence)


LEGAL: dict[str, Callable[[Talk], None]] = {
    "send-crosses-close": _crossing,
    "send-crosses-close-and-goes-again": _crossing_and_again,
    "closed-while-waiting-for-exclusive": _waiting_for_its_turn,
    "sent-again-after-an-error": _sent_again,
    "receipt-after-opening-again": _late_receipt,
    "subscribed-again-at-once": _subscribed_again,
    "produced-again-at-once": _produced_again,
    "replay-of-own-sequence-ids": _replayed,
}
"""Legal talks by name. Each begins after the greeting."""
