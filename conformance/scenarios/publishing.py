"""Scenarios of producers and what a message carries."""

from __future__ import annotations

import time

from pulsarium.conformance.protocol import ClientError
from pulsarium.conformance.scenario import QUIET_SECONDS, SECONDS, Stage, scenario, texts

MESSAGES = "Pulsar's documentation, Concepts: Messaging, Messages"
PRODUCERS = "Pulsar's documentation, Concepts: Messaging, Producers"
ACCESS = "PIP-68, access modes of producers"


@scenario(
    "SEND", "Messages of one producer arrive in the order in which they were published.", PRODUCERS, bug="reverses"
)
def messages_arrive_in_order(stage: Stage) -> None:
    topic = stage.topic()
    consumer, producer = stage.consumer(topic), stage.producer(topic)
    stage.send(producer, texts(0, 50))
    stage.receive_in_order(consumer, texts(0, 50), acknowledge=True)
    stage.nothing(consumer)


@scenario("SEND", "A message carries its key and properties.", MESSAGES, bug="forgets properties")
def a_message_carries_its_key_and_properties(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send(stage.producer(topic), [{"value": "a", "key": "k", "properties": {"p": "v", "ä": "ß"}}])
    (message,) = stage.receive_all(consumer, ["a"])
    stage.equal(message.get("key"), "k", "key")
    stage.equal(message.get("properties"), {"p": "v", "ä": "ß"}, "properties")


@scenario("SEND", "A message without a key has none when it arrives.", MESSAGES, bug='tells key "x"')
def a_message_without_a_key_has_none(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send(stage.producer(topic), ["a"])
    (message,) = stage.receive_all(consumer, ["a"])
    stage.equal(message.get("key") or "", "", "key")
    stage.equal(message.get("properties") or {}, {}, "properties")


@scenario("SEND", "A message carries its event time in milliseconds.", MESSAGES, bug="forgets event-time")
def a_message_carries_its_event_time(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send(stage.producer(topic), [{"value": "a", "event-time": 1_234_567_890_123}])
    (message,) = stage.receive_all(consumer, ["a"])
    stage.equal(message.get("event-time"), 1_234_567_890_123, "event time")


@scenario("SEND", "A message carries its ordering key beside its key.", "PIP-34", bug="forgets ordering-key")
def a_message_carries_its_ordering_key(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send(stage.producer(topic), [{"value": "a", "key": "k", "ordering-key": "o"}])
    (message,) = stage.receive_all(consumer, ["a"])
    stage.equal((message.get("key"), stage.told(message, "ordering-key")), ("k", "o"), "key and ordering key")


@scenario("SEND", "An empty message is a message.", MESSAGES, bug="repeats")
def an_empty_message_is_a_message(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send_each(stage.producer(topic), ["", "a"])
    stage.receive_in_order(consumer, ["", "a"])


@scenario("SEND", "Text of all planes of Unicode arrives as it was.", MESSAGES, bug="forgets key")
def unicode_arrives_as_it_was(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    value = "grüße, 你好, 🚀 and \u0000"
    stage.send(stage.producer(topic), [(value, value)])
    (message,) = stage.receive_all(consumer, [value])
    stage.equal(message.get("key"), value, "key")


@scenario("SEND", "A message without a value (a tombstone) is not an empty message.", "PIP-39", bug="forgets null")
def a_tombstone_is_not_an_empty_message(stage: Stage) -> None:
    topic = stage.topic()
    consumer, producer = stage.consumer(topic), stage.producer(topic)
    stage.send(producer, [{"key": "k", "value": "", "null": True}])
    (message,) = stage.receive(consumer, 1)
    stage.that(message.get("null"), "the message has a value")


@scenario("SEND", "A message names its producer, and its sequence ids rise by one.", PRODUCERS, bug="forgets sequence")
def sequence_ids_rise_by_one(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send_each(stage.producer(topic, name="p"), texts(0, 5))
    got = stage.receive_in_order(consumer, texts(0, 5))
    stage.equal({stage.told(each, "publisher") for each in got}, {"p"}, "producer names")
    stage.equal([stage.told(each, "sequence") for each in got], list(range(5)), "sequence ids")


@scenario(
    "PRODUCER",
    "The last sequence id is that of the last stored message.",
    PRODUCERS,
    bug="says last-sequence.sequence 7",
)
def the_last_sequence_id_is_known(stage: Stage) -> None:
    producer = stage.producer(stage.topic())
    stage.send(producer, texts(0, 3))
    stage.equal(stage.ask("last-sequence", producer=producer)["sequence"], 2, "last sequence id")


@scenario(
    "PRODUCER",
    "A second producer of the same name is refused until the first one closes.",
    PRODUCERS,
    bug="succeeds producer",
)
def producer_names_are_unique(stage: Stage) -> None:
    topic = stage.topic()
    first = stage.producer(topic, name="p")
    other = stage.connect()
    stage.refused(("ProducerBusy", "Timeout", "Other"), "producer", client=other, topic=topic, name="p", **{"as": "x"})
    stage.close(first)
    stage.send(stage.producer(topic, client=other, name="p"), ["a"])
    stage.receive_all(stage.consumer(topic), ["a"])


@scenario("PRODUCER", "Producers of different names share a topic.", PRODUCERS, bug="reverses")
def producers_share_a_topic(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    for number in range(3):
        stage.send(stage.producer(topic), [f"m-{number}"])
    stage.receive_in_order(consumer, texts(0, 3))


@scenario("PRODUCER", "The broker gives each producer without a name its own.", PRODUCERS, bug='tells publisher "x"')
def the_broker_names_producers(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    for number in range(2):
        stage.send(stage.producer(topic), [f"m-{number}"])
    got = stage.receive_in_order(consumer, texts(0, 2))
    stage.equal(len({stage.told(each, "publisher") for each in got} - {None, ""}), 2, "names of the producers")


@scenario("PRODUCER", "An exclusive producer keeps others out until it closes.", ACCESS, bug="succeeds producer")
def an_exclusive_producer_keeps_others_out(stage: Stage) -> None:
    topic = stage.topic()
    first = stage.producer(topic, access="exclusive")
    for access in ("exclusive", "shared"):
        fields = {"client": stage.client, "topic": topic, "access": access, "as": f"x-{access}"}
        stage.refused(("ProducerBusy", "Fenced", "Timeout", "Other"), "producer", **fields)
    stage.close(first)
    stage.send(stage.producer(topic), ["a"])


@scenario("PRODUCER", "A shared producer keeps exclusive ones out until it closes.", ACCESS, bug="succeeds producer")
def a_shared_producer_keeps_exclusive_ones_out(stage: Stage) -> None:
    topic = stage.topic()
    first = stage.producer(topic)
    fields = {"client": stage.client, "topic": topic, "access": "exclusive", "as": "x"}
    stage.refused(("ProducerBusy", "Fenced", "Timeout", "Other"), "producer", **fields)
    stage.close(first)
    stage.send(stage.producer(topic, access="exclusive"), ["a"])


@scenario(
    "PRODUCER",
    "A producer that waits for exclusive access opens when the first one closes.",
    ACCESS,
    bug="without producer.access",
)
def a_waiting_producer_opens_when_the_first_closes(stage: Stage) -> None:
    topic = stage.topic()
    first = stage.producer(topic, access="exclusive")
    fields = {"client": stage.connect(), "topic": topic, "access": "wait-for-exclusive", "as": "waiting"}
    waiting = stage.begin("producer", **fields)
    stage.send(first, ["a"])
    if waiting.comes_within(QUIET_SECONDS):
        waiting.wait(0)  # raises where the client refuses the mode
        stage.that(False, "the second producer is open beside the first")
    stage.close(first)
    waiting.wait(SECONDS)
    stage.send("waiting", ["b"])
    stage.receive_in_order(stage.consumer(topic), ["a", "b"])


@scenario(
    "PRODUCER",
    "A producer that fences takes the topic from the exclusive one, whose messages fail.",
    ACCESS,
    bug="without producer.access",
)
def a_fencing_producer_takes_the_topic(stage: Stage) -> None:
    topic = stage.topic()
    first = stage.producer(topic, access="exclusive")
    second = stage.producer(topic, client=stage.connect(), access="exclusive-with-fencing")
    stage.send(second, ["b"])
    try:
        stage.send(first, ["a"])
    except ClientError as error:
        stage.that(error.kind != "Timeout", "the fenced producer was not told")
    else:
        stage.that(False, "the fenced producer still publishes")
    stage.receive_all(stage.consumer(topic), ["b"])


@scenario("SEND", "Messages on a non-persistent topic reach the consumers that are there.", "PIP-3", bug="reverses")
def a_non_persistent_topic_delivers_at_once(stage: Stage) -> None:
    topic = stage.topic(persistent=False)
    stage.send(stage.producer(topic), ["before"])
    consumer = stage.consumer(topic, start="latest")
    stage.send(stage.producer(topic), texts(0, 10))
    stage.receive_in_order(consumer, texts(0, 10))


@scenario(
    "SEND",
    "A message above the limit of an entry is refused, and the producer goes on.",
    "maxMessageSize",
    bug="succeeds send",
)
def a_message_that_is_too_large_is_refused(stage: Stage) -> None:
    stage.need("open", "open.reconnect")  # the WebSocket API ends the socket
    topic = stage.topic()
    producer = stage.producer(topic)
    try:
        stage.send(producer, ["x" * (5 * 1024 * 1024 + 1)])
    except ClientError as error:
        stage.that(error.kind != "Timeout", "the producer was not told")
    else:
        stage.that(False, "the message was accepted")
    stage.send(producer, ["a"])
    stage.receive_all(stage.consumer(topic), ["a"])


@scenario("SEND", "A message just below the limit of an entry arrives whole.", "maxMessageSize", bug='tells value "x"')
def a_message_just_below_the_limit_arrives(stage: Stage) -> None:
    stage.need("open", "open.reconnect")  # the limit of the WebSocket API is lower
    topic = stage.topic()
    consumer = stage.consumer(topic)
    value = "x" * (5 * 1024 * 1024 - 1024)
    stage.send(stage.producer(topic), [value])
    stage.receive_all(consumer, [value])


@scenario("SEND", "Repeated sequence ids of a producer of the same name are dropped.", "PIP-6", bug="unsends sequence")
def repeated_sequence_ids_are_dropped(stage: Stage) -> None:
    stage.side.call("POST", f"/admin/v2/namespaces/{stage.namespace}/deduplication", True)
    topic = stage.topic()
    consumer = stage.consumer(topic)
    for first in (0, 1):
        producer = stage.producer(topic, name="p")
        stage.send_each(producer, [{"value": f"m-{n}", "sequence": n} for n in range(first, first + 3)])
        stage.close(producer)
    stage.receive_in_order(consumer, texts(0, 4))
    stage.nothing(consumer)


@scenario("SEND", "A repeated batch of a producer of the same name is dropped.", "PIP-6", bug="unsends sequence")
def repeated_batches_are_dropped(stage: Stage) -> None:
    stage.side.call("POST", f"/admin/v2/namespaces/{stage.namespace}/deduplication", True)
    topic = stage.topic()
    consumer = stage.consumer(topic)
    for first in (0, 0, 2):
        producer = stage.producer(topic, name="p", batch=2)
        stage.send(producer, [{"value": f"m-{n}", "sequence": n} for n in (first, first + 1)])
        stage.close(producer)
    stage.receive_in_order(consumer, texts(0, 4))
    stage.nothing(consumer)


@scenario(
    "PRODUCER_SUCCESS",
    "With deduplication, a producer that comes back with its name learns its last sequence id, after an unload too.",
    "PIP-6",
    bug="unsends sequence",
)
def a_producer_that_comes_back_knows_its_last_sequence_id(stage: Stage) -> None:
    stage.side.call("POST", f"/admin/v2/namespaces/{stage.namespace}/deduplication", True)
    topic = stage.topic()
    producer = stage.producer(topic, name="p")
    stage.send_each(producer, [{"value": "a", "sequence": 7}, {"value": "b", "sequence": 41}])
    stage.close(producer)
    for _ in range(2):
        again = stage.producer(topic, name="p")
        stage.equal(stage.ask("last-sequence", producer=again)["sequence"], 41, "last sequence id")
        stage.close(again)
        stage.side.unload(topic)


@scenario(
    "SEND",
    "A delayed message arrives at its time on Shared, after messages without a delay.",
    "PIP-26",
    bug="unsends delay",
)
def a_delayed_message_arrives_at_its_time(stage: Stage) -> None:
    topic = stage.topic()
    consumer, producer = stage.consumer(topic, "Shared"), stage.producer(topic)
    begun = time.monotonic()
    stage.send_each(producer, [{"value": "later", "delay": 5000}, "now"])
    stage.receive_in_order(consumer, ["now", "later"])
    waited = time.monotonic() - begun
    stage.that(waited > 3, f"the delayed message came after {waited:.1f} s, and not after 5 s")


@scenario("SEND", "An exclusive consumer gets a delayed message at once.", "PIP-26", bug='sets consumer.type "Shared"')
def an_exclusive_consumer_ignores_delays(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send_each(stage.producer(topic), [{"value": "m-0", "delay": 600_000}, "m-1"])
    stage.receive_in_order(consumer, texts(0, 2))


@scenario("SEND", "Messages have the broker's index, which counts from 0.", "PIP-70", bug="forgets index")
def messages_have_the_index_of_the_broker(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send_each(stage.producer(topic), texts(0, 5))
    got = stage.receive_in_order(consumer, texts(0, 5))
    stage.equal([stage.told(each, "index") for each in got], list(range(5)), "indexes")
