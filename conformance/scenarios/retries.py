"""Scenarios of negative acknowledgements that keep the order of keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pulsarium.conformance.scenario import Message, Stage, scenario

PIP_493 = "PIP-493, key-ordered negative acknowledgement"


def keyed(*values: str) -> list[tuple[str | None, str]]:
    """Return messages whose keys are the letters that their values begin with."""
    return [(value[0], value) for value in values]


def nack(stage: Stage, consumer: str, message: Message) -> None:
    stage.ask("negative-acknowledge", consumer=consumer, message=message["id"])


def refused(stage: Stage, topic: str, values: Sequence[str], **options: Any) -> tuple[str, Message]:
    """Publish messages, receive the first one, and refuse it. Return the consumer and the message.

    The other messages are in the client then.
    """
    consumer = stage.consumer(topic, "Key_Shared", **options)
    stage.send(stage.producer(topic), keyed(*values))
    (first,) = stage.receive_in_order(consumer, values[:1])
    unacked = len(values)
    stage.until(lambda: stage.unacknowledged(topic) == unacked, "not all messages were sent")
    nack(stage, consumer, first)
    return consumer, first


def of_subscription(stage: Stage, topic: str, field: str) -> int:
    """Return a number of a subscription's stats."""
    return int(stage.side.stats(topic)["subscriptions"]["s"][field])


@scenario(
    "PIP-493",
    "After a negative acknowledgement, later messages of the key wait until the message is acknowledged.",
    PIP_493,
    bug="instead negative-acknowledge acknowledge",
    pip=493,
)
def a_refused_key_waits_for_its_acknowledgement(stage: Stage) -> None:
    topic = stage.topic()
    consumer, _ = refused(stage, topic, ["a-1", "b-1", "a-2", "b-2"])
    got = stage.receive_all(consumer, ["a-1", "b-1", "b-2"])
    stage.nothing(consumer)
    stage.acknowledge(consumer, next(each for each in got if each["value"] == "a-1"))
    stage.receive_in_order(consumer, ["a-2"])


@scenario(
    "PIP-493",
    "A client tells the broker of a negative acknowledgement at once, and not after its delay.",
    PIP_493,
    bug="ignores negative-acknowledge",
    pip=493,
)
def a_key_is_refused_at_once(stage: Stage) -> None:
    stage.need("consumer", "consumer.nack-delay")
    topic = stage.topic()
    refused(stage, topic, ["a-1"], nack_delay=120_000)
    stage.until(
        lambda: of_subscription(stage, topic, "retryingPositionsCount") == 1, "the broker does not withhold the key"
    )


@scenario(
    "PIP-493",
    "A message that goes back to the broker unseen comes again as if it came for the first time.",
    PIP_493,
    bug="tells redeliveries 1",
    pip=493,
)
def returned_messages_are_no_redeliveries(stage: Stage) -> None:
    topic = stage.topic()
    consumer, _ = refused(stage, topic, ["a-1", "a-2", "a-3"])
    (first,) = stage.receive_in_order(consumer, ["a-1"], acknowledge=True)
    later = stage.receive_in_order(consumer, ["a-2", "a-3"])
    counts = [stage.told(each, "redeliveries") or 0 for each in (first, *later)]
    stage.equal(counts, [1, 0, 0], "redelivery counts")


@scenario(
    "PIP-493",
    "The permits of messages that go back to the broker are given back.",
    PIP_493,
    bug="sets consumer.queue 4",
    pip=493,
)
def permits_of_returned_messages_come_back(stage: Stage) -> None:
    stage.need("consumer", "consumer.nack-delay")
    topic = stage.topic()
    refused(stage, topic, [f"a-{number}" for number in range(10)], queue=10, nack_delay=120_000)

    def permits() -> int:
        (consumer,) = stage.side.stats(topic)["subscriptions"]["s"]["consumers"]
        return int(consumer["availablePermits"])

    stage.until(lambda: permits() >= 5, "the consumer has not half of its 10 permits again")
    stage.that(permits() <= 10, f"the consumer has {permits()} permits, and room for 10 messages")


@scenario(
    "PIP-493",
    "Several negatively acknowledged messages of a key come again one by one, in order.",
    PIP_493,
    bug="ignores negative-acknowledge",
    pip=493,
)
def refused_messages_of_a_key_come_one_by_one(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Key_Shared")
    values = ["a-1", "a-2", "a-3"]
    stage.send(stage.producer(topic), keyed(*values))
    for message in reversed(stage.receive_in_order(consumer, values)):
        nack(stage, consumer, message)
    for value in values:
        (message,) = stage.receive_in_order(consumer, [value])
        stage.nothing(consumer)
        stage.acknowledge(consumer, message)


@scenario(
    "PIP-493",
    "A message that comes a second time after it went back is delivered, because the broker withholds it no more.",
    PIP_493,
    bug="ignores receive",
    pip=493,
)
def a_key_goes_on_when_the_refused_message_is_skipped(stage: Stage) -> None:
    stage.need("consumer", "consumer.nack-delay")
    topic = stage.topic()
    consumer, _ = refused(stage, topic, ["a-1", "a-2", "a-3"], nack_delay=120_000)
    stage.until(lambda: of_subscription(stage, topic, "msgInReplay") == 2, "the later messages did not go back")
    stage.side.skip(topic, "s", 1)
    stage.receive_in_order(consumer, ["a-2", "a-3"])


@scenario(
    "PIP-493",
    "A client sends the acknowledgements that wait before it refuses another message of the batch.",
    PIP_493,
    bug="ignores acknowledge",
    pip=493,
)
def acknowledgements_go_before_a_negative_one(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Key_Shared", batch_index=True)
    stage.send(stage.producer(topic, batch=3), keyed("a-1", "a-2", "a-3"))
    first, second, _ = stage.receive_in_order(consumer, ["a-1", "a-2", "a-3"])
    stage.acknowledge(consumer, first)
    nack(stage, consumer, second)
    stage.receive_in_order(consumer, ["a-2", "a-3"])
    told = [each for each in stage.history().names() if each in ("ACK", "NEGATIVE_ACK")]
    stage.equal(told[:2], ["ACK", "NEGATIVE_ACK"], "commands about the batch")


@scenario(
    "PIP-493",
    "A message without a key is negatively acknowledged as ever, and others do not wait for it.",
    PIP_493,
    bug="instead negative-acknowledge acknowledge",
    pip=493,
)
def messages_without_a_key_wait_for_nobody(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Key_Shared")
    stage.send(stage.producer(topic), ["1", "2"])
    (first,) = stage.receive_in_order(consumer, ["1"])
    nack(stage, consumer, first)
    stage.receive_all(consumer, ["1", "2"])
    stage.equal(stage.history().of("NEGATIVE_ACK"), [], "commands of PIP-493 for a message without a key")
