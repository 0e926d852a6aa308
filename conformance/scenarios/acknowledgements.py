"""Scenarios of acknowledgements and redeliveries."""

from __future__ import annotations

import time
from typing import Any

from pulsarium.conformance.scenario import Message, Stage, scenario, texts

ACKS = "Pulsar's documentation, Concepts: Messaging, Acknowledgments"
NACKS = "Pulsar's documentation, Concepts: Messaging, Negative acknowledgment"
PIP_54 = "PIP-54, acknowledgements at the level of batch indexes"


def left(stage: Stage, topic: str, kind: str = "Exclusive", **options: Any) -> list[str]:
    """Return what a new consumer of the subscription receives before a last message."""
    stage.send(stage.producer(topic), ["end"])
    consumer, got = stage.consumer(topic, kind, **options), list[Message]()
    while not got or got[-1]["value"] != "end":
        some = stage.receive(consumer, 1)
        stage.that(some, f"the last message did not come after {[each['value'] for each in got]}")
        got += some
    return [each["value"] for each in got[:-1]]


def the_unacknowledged_messages_of_a_batch_come_back(stage: Stage, kind: str) -> None:
    """Acknowledge every other message of a batch, and see that a new consumer of this type gets the others."""
    topic = stage.topic()
    consumer = stage.consumer(topic, kind, batch_index=True)
    stage.send(stage.producer(topic, batch=10), texts(0, 10))
    got = stage.receive_in_order(consumer, texts(0, 10))
    for each in got[::2]:
        stage.acknowledge(consumer, each)
    stage.close(consumer)
    stage.equal(left(stage, topic, kind, batch_index=True), texts(0, 10)[1::2], "messages that came back")


@scenario(
    "ACK",
    "An acknowledged message is not delivered to a new consumer of the subscription.",
    ACKS,
    bug="ignores acknowledge",
)
def acknowledged_messages_do_not_come_back(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send(stage.producer(topic), texts(0, 10))
    stage.receive_in_order(consumer, texts(0, 10), acknowledge=True)
    stage.close(consumer)
    stage.equal(left(stage, topic), [], "messages that came back")


@scenario(
    "ACK",
    "Messages that were not acknowledged come back to a new consumer.",
    ACKS,
    bug="instead acknowledge acknowledge-cumulative",
)
def unacknowledged_messages_come_back(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send_each(stage.producer(topic), texts(0, 6))
    got = stage.receive_in_order(consumer, texts(0, 6))
    for number in (1, 3, 4):
        stage.acknowledge(consumer, got[number])
    stage.close(consumer)
    stage.equal(left(stage, topic), ["m-0", "m-2", "m-5"], "messages that came back")


@scenario(
    "ACK",
    "Acknowledgements of single messages outlive an unload of their topic.",
    ACKS,
    bug="instead acknowledge acknowledge-cumulative",
)
def single_acknowledgements_outlive_an_unload(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Shared")
    stage.send_each(stage.producer(topic), texts(0, 9))
    for each in stage.receive_in_order(consumer, texts(0, 9))[1::3]:
        stage.acknowledge(consumer, each)
    stage.close(consumer)
    stage.side.unload(topic)
    stage.equal(left(stage, topic, "Shared"), ["m-0", "m-2", "m-3", "m-5", "m-6", "m-8"], "messages that came back")


@scenario(
    "ACK",
    "A cumulative acknowledgement covers every message up to its own.",
    ACKS,
    bug="instead acknowledge-cumulative acknowledge",
)
def a_cumulative_acknowledgement_covers_all_before(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send_each(stage.producer(topic), texts(0, 10))
    got = stage.receive_in_order(consumer, texts(0, 10))
    stage.ask("acknowledge-cumulative", consumer=consumer, message=got[5]["id"])
    stage.close(consumer)
    stage.equal(left(stage, topic), texts(6, 4), "messages that came back")


@scenario(
    "ACK",
    "A cumulative acknowledgement on Failover covers every message up to its own.",
    ACKS,
    bug="instead acknowledge-cumulative acknowledge",
)
def a_cumulative_acknowledgement_on_failover(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Failover")
    stage.send_each(stage.producer(topic), texts(0, 4))
    got = stage.receive_in_order(consumer, texts(0, 4))
    stage.ask("acknowledge-cumulative", consumer=consumer, message=got[2]["id"])
    stage.close(consumer)
    stage.equal(left(stage, topic, "Failover"), ["m-3"], "messages that came back")


@scenario(
    "ACK",
    "A cumulative acknowledgement of one of several topics covers this topic, and no other.",
    ACKS,
    bug="instead acknowledge-cumulative acknowledge",
)
def a_cumulative_acknowledgement_covers_one_of_several_topics(stage: Stage) -> None:
    topics = [stage.topic() for _ in range(2)]
    consumer = stage.consumer(topics)
    for topic, letter in zip(topics, "ab", strict=True):
        stage.send_each(stage.producer(topic), [letter + number for number in "12"])
    got = stage.receive_all(consumer, ["a1", "a2", "b1", "b2"])
    (last,) = (each for each in got if each["value"] == "a2")
    stage.ask("acknowledge-cumulative", consumer=consumer, message=last["id"])
    stage.close(consumer)
    stage.receive_all(stage.consumer(topics), ["b1", "b2"])


@scenario(
    "ACK", "A Shared subscription refuses cumulative acknowledgements.", ACKS, bug="succeeds acknowledge-cumulative"
)
def shared_refuses_cumulative_acknowledgements(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Shared")
    stage.send(stage.producer(topic), ["a"])
    (message,) = stage.receive_all(consumer, ["a"])
    kinds = ("InvalidConfiguration", "Other")
    stage.refused(kinds, "acknowledge-cumulative", consumer=consumer, message=message["id"])


@scenario(
    "ACK", "A Key_Shared subscription refuses cumulative acknowledgements.", ACKS, bug="succeeds acknowledge-cumulative"
)
def key_shared_refuses_cumulative_acknowledgements(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Key_Shared")
    stage.send(stage.producer(topic), [("k", "a")])
    (message,) = stage.receive_all(consumer, ["a"])
    kinds = ("InvalidConfiguration", "Other")
    stage.refused(kinds, "acknowledge-cumulative", consumer=consumer, message=message["id"])


@scenario(
    "ACK_RESPONSE",
    "An acknowledgement with a receipt is done when it returns.",
    "PIP-58, AckResponse",
    bug="ignores acknowledge",
)
def acknowledgements_with_a_receipt(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, receipt=True)
    stage.send_each(stage.producer(topic), texts(0, 10))
    got = stage.receive_in_order(consumer, texts(0, 10))
    for each in got[:5]:
        stage.acknowledge(consumer, each)
    stage.equal(stage.backlog(topic), 5, "backlog")


@scenario(
    "ACK",
    "A batch comes back as long as one of its messages is not acknowledged.",
    ACKS,
    bug="instead acknowledge acknowledge-cumulative",
)
def a_batch_comes_back_as_a_whole(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Shared")
    stage.send(stage.producer(topic, batch=5), texts(0, 5))
    got = stage.receive_in_order(consumer, texts(0, 5))
    for each in got[:4]:
        stage.acknowledge(consumer, each)
    stage.close(consumer)
    back = set(left(stage, topic, "Shared"))
    stage.that("m-4" in back, f"m-4 did not come back, but {sorted(back)}")


@scenario("ACK", "A batch is acknowledged when all its messages are.", ACKS, bug="ignores acknowledge")
def a_batch_is_acknowledged_with_all_its_messages(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send(stage.producer(topic, batch=5), texts(0, 5))
    stage.receive_in_order(consumer, texts(0, 5), acknowledge=True)
    stage.close(consumer)
    stage.equal(left(stage, topic), [], "messages that came back")


@scenario(
    "ACK",
    "With acknowledgements of batch indexes, only the other messages of a batch come back.",
    PIP_54,
    bug="without consumer.batch-index",
)
def single_messages_of_a_batch_are_acknowledged(stage: Stage) -> None:
    the_unacknowledged_messages_of_a_batch_come_back(stage, "Shared")


@scenario(
    "ACK",
    "On Exclusive too, acknowledgements of batch indexes leave only the other messages of a batch.",
    PIP_54,
    bug="without consumer.batch-index",
)
def single_messages_of_a_batch_are_acknowledged_on_exclusive(stage: Stage) -> None:
    the_unacknowledged_messages_of_a_batch_come_back(stage, "Exclusive")


@scenario(
    "ACK",
    "A cumulative acknowledgement in the middle of a batch covers the messages before.",
    PIP_54,
    bug="without consumer.batch-index",
)
def a_cumulative_acknowledgement_inside_a_batch(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, batch_index=True)
    stage.send(stage.producer(topic, batch=10), texts(0, 10))
    got = stage.receive_in_order(consumer, texts(0, 10))
    stage.ask("acknowledge-cumulative", consumer=consumer, message=got[5]["id"])
    stage.close(consumer)
    stage.equal(left(stage, topic, batch_index=True), texts(6, 4), "messages that came back")


@scenario(
    "ACK",
    "A cumulative acknowledgement of the last message of a batch covers the whole batch.",
    ACKS,
    bug="instead acknowledge-cumulative acknowledge",
)
def a_cumulative_acknowledgement_of_a_whole_batch(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send(stage.producer(topic, batch=5), texts(0, 5))
    got = stage.receive_in_order(consumer, texts(0, 5))
    stage.ask("acknowledge-cumulative", consumer=consumer, message=got[-1]["id"])
    stage.close(consumer)
    stage.equal(left(stage, topic), [], "messages that came back")


@scenario(
    "REDELIVER_UNACKNOWLEDGED_MESSAGES",
    "Only a negatively acknowledged message comes again.",
    NACKS,
    bug="ignores negative-acknowledge",
)
def a_negatively_acknowledged_message_comes_again(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Shared")
    stage.send_each(stage.producer(topic), texts(0, 10))
    got = stage.receive_all(consumer, texts(0, 10))
    for each in got:
        operation = "negative-acknowledge" if each["value"] == "m-4" else "acknowledge"
        stage.ask(operation, consumer=consumer, message=each["id"])
    stage.receive_all(consumer, ["m-4"], acknowledge=True)
    stage.nothing(consumer)


@scenario(
    "REDELIVER_UNACKNOWLEDGED_MESSAGES",
    "On Exclusive, a negatively acknowledged message comes again when the others are acknowledged.",
    NACKS,
    bug="ignores negative-acknowledge",
)
def a_negatively_acknowledged_message_comes_again_on_exclusive(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send_each(stage.producer(topic), texts(0, 10))
    got = stage.receive_in_order(consumer, texts(0, 10))
    for each in (*got[:4], *got[5:]):
        stage.acknowledge(consumer, each)
    stage.until(lambda: stage.backlog(topic) == 1, "the acknowledgements did not arrive")
    stage.ask("negative-acknowledge", consumer=consumer, message=got[4]["id"])
    stage.receive_all(consumer, ["m-4"], acknowledge=True)
    stage.nothing(consumer)


@scenario(
    "REDELIVER_UNACKNOWLEDGED_MESSAGES",
    "On Exclusive, a negative acknowledgement brings all unacknowledged messages again, in order.",
    NACKS,
    bug="ignores negative-acknowledge",
)
def a_negative_acknowledgement_on_exclusive_brings_all(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send_each(stage.producer(topic), texts(0, 5))
    got = stage.receive_in_order(consumer, texts(0, 5))
    stage.acknowledge(consumer, got[0])
    stage.until(lambda: stage.backlog(topic) == 4, "the acknowledgement did not arrive")
    stage.ask("negative-acknowledge", consumer=consumer, message=got[3]["id"])
    stage.receive_in_order(consumer, texts(1, 4))


@scenario(
    "REDELIVER_UNACKNOWLEDGED_MESSAGES",
    "A whole batch comes again when one of its messages is negatively acknowledged.",
    NACKS,
    bug="ignores negative-acknowledge",
)
def a_negatively_acknowledged_message_brings_its_batch(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Shared")
    stage.send(stage.producer(topic, batch=10), texts(0, 10))
    got = stage.receive_in_order(consumer, texts(0, 10))
    stage.ask("negative-acknowledge", consumer=consumer, message=got[4]["id"])
    stage.receive_in_order(consumer, texts(0, 10), acknowledge=True)
    stage.nothing(consumer)


@scenario(
    "REDELIVER_UNACKNOWLEDGED_MESSAGES",
    "With acknowledgements of batch indexes, what is acknowledged of a batch does not come again.",
    PIP_54,
    bug="without consumer.batch-index",
)
def what_is_left_of_a_batch_comes_again(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Shared", batch_index=True)
    stage.send(stage.producer(topic, batch=3), texts(0, 3))
    got = stage.receive_in_order(consumer, texts(0, 3))
    stage.acknowledge(consumer, got[1])
    stage.until(lambda: stage.unacknowledged(topic) == 2, "the acknowledgement did not arrive")
    stage.ask("negative-acknowledge", consumer=consumer, message=got[0]["id"])
    stage.receive_in_order(consumer, ["m-0", "m-2"], acknowledge=True)
    stage.nothing(consumer)


@scenario(
    "REDELIVER_UNACKNOWLEDGED_MESSAGES",
    "A negatively acknowledged message comes again after the delay of its consumer, and not before.",
    ACKS,
    bug="without consumer.nack-delay",
)
def a_negatively_acknowledged_message_waits(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Shared", nack_delay=3000)
    stage.send(stage.producer(topic), ["a"])
    (message,) = stage.receive_all(consumer, ["a"])
    begun = time.monotonic()
    stage.ask("negative-acknowledge", consumer=consumer, message=message["id"])
    stage.receive_all(consumer, ["a"])
    waited = time.monotonic() - begun
    stage.that(waited > 2, f"the message came again after {waited:.1f} s, and not after 3 s")


@scenario(
    "REDELIVER_UNACKNOWLEDGED_MESSAGES",
    "A message tells how often it was redelivered.",
    "PIP-22",
    bug="forgets redeliveries",
)
def the_redelivery_count_rises(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Shared")
    stage.send(stage.producer(topic), ["a"])
    for count in range(3):
        (message,) = stage.receive_all(consumer, ["a"])
        stage.equal(stage.told(message, "redeliveries") or 0, count, "redelivery count")
        stage.ask("negative-acknowledge", consumer=consumer, message=message["id"])


@scenario(
    "REDELIVER_UNACKNOWLEDGED_MESSAGES",
    "All unacknowledged messages come again when they are asked for.",
    ACKS,
    bug="ignores redeliver",
)
def all_unacknowledged_messages_come_again(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send_each(stage.producer(topic), texts(0, 5))
    got = stage.receive_in_order(consumer, texts(0, 5))
    for each in got[:2]:
        stage.acknowledge(consumer, each)
    # Clients collect acknowledgements, and Java's sends its request before them.
    stage.until(lambda: stage.backlog(topic) == 3, "the acknowledgements did not arrive")
    stage.ask("redeliver", consumer=consumer)
    stage.receive_in_order(consumer, texts(2, 3))


@scenario(
    "REDELIVER_UNACKNOWLEDGED_MESSAGES",
    "An unacknowledged message comes again after the timeout.",
    ACKS,
    bug="without consumer.ack-timeout",
)
def an_unacknowledged_message_comes_again_after_the_timeout(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Shared", ack_timeout=3000)
    stage.send_each(stage.producer(topic), texts(0, 2))
    got = stage.receive_all(consumer, texts(0, 2))
    stage.acknowledge(consumer, got[0])
    stage.receive_all(consumer, [got[1]["value"]], acknowledge=True)


@scenario(
    "SEND",
    "A message that is redelivered too often goes to the dead letter topic.",
    "PIP-22",
    bug="without consumer.dead-letter",
)
def a_message_goes_to_the_dead_letter_topic(stage: Stage) -> None:
    topic = stage.topic()
    letters = f"{topic}-dead"
    dead = stage.consumer(letters, subscription="dead")
    consumer = stage.consumer(topic, "Shared", dead_letter={"max": 2, "topic": letters})
    stage.send(stage.producer(topic), [("k", "bad")])
    for _ in range(3):
        (message,) = stage.receive_all(consumer, ["bad"])
        stage.ask("negative-acknowledge", consumer=consumer, message=message["id"])
    (letter,) = stage.receive_all(dead, ["bad"])
    stage.equal(letter.get("key"), "k", "key of the dead letter")
    stage.nothing(consumer)


@scenario(
    "SEND",
    "The name of the dead letter topic comes from topic and subscription.",
    "PIP-22",
    bug="without consumer.dead-letter",
)
def the_dead_letter_topic_has_a_name_by_default(stage: Stage) -> None:
    topic = stage.topic()
    dead = stage.consumer(f"{topic}-s-DLQ", subscription="dead")
    consumer = stage.consumer(topic, "Shared", dead_letter={"max": 1})
    stage.send(stage.producer(topic), ["bad"])
    for _ in range(2):
        (message,) = stage.receive_all(consumer, ["bad"])
        stage.ask("negative-acknowledge", consumer=consumer, message=message["id"])
    stage.receive_all(dead, ["bad"])


@scenario(
    "SEND", "A message to consume later comes again through the retry letter topic.", "PIP-58", bug="forgets properties"
)
def a_message_is_consumed_later(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Shared", dead_letter={"max": 5}, retry=True)
    stage.send(stage.producer(topic), ["a"])
    (message,) = stage.receive_all(consumer, ["a"])
    stage.ask("reconsume-later", consumer=consumer, message=message["id"], delay=1000)
    (again,) = stage.receive_all(consumer, ["a"])
    properties = again.get("properties", {})
    stage.equal(properties.get("RECONSUMETIMES"), "1", "the property RECONSUMETIMES")
    stage.equal(properties.get("REAL_TOPIC"), topic, "the property REAL_TOPIC")


@scenario(
    "SEND",
    "A message that is consumed later too often goes to the dead letter topic.",
    "PIP-58",
    bug="without consumer.dead-letter",
)
def a_message_is_consumed_later_too_often(stage: Stage) -> None:
    topic = stage.topic()
    letters = f"{topic}-dead"
    dead = stage.consumer(letters, subscription="dead")
    consumer = stage.consumer(topic, "Shared", dead_letter={"max": 2, "topic": letters}, retry=True)
    stage.send(stage.producer(topic), ["a"])
    for times in (None, "1", "2"):
        (message,) = stage.receive_all(consumer, ["a"])
        stage.equal(message.get("properties", {}).get("RECONSUMETIMES"), times, "the property RECONSUMETIMES")
        stage.ask("reconsume-later", consumer=consumer, message=message["id"], delay=100)
    stage.receive_all(dead, ["a"])
    stage.nothing(consumer)
