"""Scenarios of batches, chunks and compression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pulsarium.conformance.scenario import Stage, keyed, scenario, texts, values_of
from pulsarium.proto.generated.PulsarApi_pb2 import CompressionType

BATCHES = "Pulsar's documentation, Concepts: Messaging, Batching"
LARGE = "".join(f"{number:07} " for number in range(800_000))  # 6.4 MB


@scenario(
    "SEND", "Messages of a batch are one entry, with batch indexes from 0.", BATCHES, bug="without producer.batch"
)
def a_batch_is_one_entry(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send(stage.producer(topic, batch=10), texts(0, 10))
    places = [stage.told(each, "place") for each in stage.receive_in_order(consumer, texts(0, 10))]
    stage.equal(len({tuple(place[:2]) for place in places}), 1, "entries")
    stage.equal([place[2] for place in places], list(range(10)), "batch indexes")


@scenario("SEND", "The sequence ids of a batch rise by one.", BATCHES, bug="forgets sequence")
def messages_of_a_batch_have_sequence_ids(stage: Stage) -> None:
    topic = stage.topic()
    consumer, producer = stage.consumer(topic), stage.producer(topic, batch=5)
    for first in (0, 5):
        stage.send(producer, texts(first, 5))
        got = stage.receive_in_order(consumer, texts(first, 5))
        stage.equal([stage.told(each, "sequence") for each in got], list(range(first, first + 5)), "sequence ids")


@scenario("SEND", "Each message of a batch has an index of the broker.", "PIP-70", bug="forgets index")
def messages_of_a_batch_have_indexes(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send(stage.producer(topic, batch=3), texts(0, 5))
    got = stage.receive_in_order(consumer, texts(0, 5))
    stage.equal([stage.told(each, "index") for each in got], list(range(5)), "indexes")


@scenario("SEND", "Without batches each message is an entry.", BATCHES, bug="sets producer.batch 10")
def without_batches_each_message_is_an_entry(stage: Stage) -> None:
    topic = stage.topic()
    stage.send(stage.producer(topic), texts(0, 10))
    stage.receive_in_order(stage.consumer(topic), texts(0, 10))
    entries = stage.history().entries(topic)
    stage.equal(len(entries), 10, "entries")
    stage.that(not any(entry.batched for entry in entries), "an entry is a batch")


@scenario("SEND", "A batch ends at its limit of messages.", BATCHES, bug="sets producer.batch 100")
def a_batch_ends_at_its_limit(stage: Stage) -> None:
    topic = stage.topic()
    stage.send(stage.producer(topic, batch=10), texts(0, 25))
    stage.receive_in_order(stage.consumer(topic), texts(0, 25))
    stage.equal([len(entry.messages) for entry in stage.history().entries(topic)], [10, 10, 5], "messages of entries")


@scenario("SEND", "Messages of a batch keep their keys, properties and event times.", BATCHES, bug="forgets properties")
def messages_of_a_batch_keep_what_they_carry(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    sent = [{"value": f"m-{n}", "key": f"k{n}", "properties": {"n": str(n)}, "event-time": n + 1} for n in range(5)]
    stage.send(stage.producer(topic, batch=5), sent)
    for number, each in enumerate(stage.receive_in_order(consumer, texts(0, 5))):
        found = (each.get("key"), each.get("properties"), each.get("event-time"))
        stage.equal(found, (f"k{number}", {"n": str(number)}, number + 1), f"what message {number} carries")


@scenario("SEND", "A batch may have empty messages and tombstones.", BATCHES, bug="repeats")
def a_batch_may_have_empty_messages(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send(stage.producer(topic, batch=3), ["", "a", ""])
    got = stage.receive(consumer, 3)
    stage.equal([each["value"] for each in got], ["", "a", ""], "values")


def _compressed(name: str, *, batched: bool) -> Callable[[Stage], None]:
    def run(stage: Stage) -> None:
        topic = stage.topic()
        consumer = stage.consumer(topic)
        values = [each * 2000 for each in texts(0, 10)]  # the Java client compresses from 4 KiB on
        options: dict[str, Any] = {"batch": 10} if batched else {}
        stage.send(stage.producer(topic, compression=name, **options), values)
        stage.receive_in_order(consumer, values)
        found = {entry.metadata.compression for entry in stage.history().entries(topic) if entry.metadata}
        stage.equal({CompressionType.Name(each) for each in found}, {name}, "compressions of entries")

    run.__name__ = f"{'a_batch' if batched else 'a_message'}_compressed_with_{name.lower()}"
    run.__module__ = __name__
    return run


for _name in ("LZ4", "ZLIB", "ZSTD", "SNAPPY"):
    for _batched in (False, True):
        _what = "batches" if _batched else "messages"
        scenario(
            "SEND",
            f"Compressed with {_name}, {_what} arrive as they were.",
            "PulsarApi.proto, CompressionType",
            bug="without producer.compression",
        )(_compressed(_name, batched=_batched))


@scenario(
    "SEND",
    "A message above the limit of an entry travels in chunks, in order with its neighbors.",
    "PIP-37",
    bug="without producer.chunk",
)
def a_large_message_travels_in_chunks(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send_each(stage.producer(topic, chunk=True), ["m-0", LARGE, "m-1"])
    stage.receive_in_order(consumer, ["m-0", LARGE, "m-1"])
    chunks = [entry.metadata for entry in stage.history().entries(topic) if entry.metadata and entry.chunked]
    stage.equal([each.chunk_id for each in chunks], list(range(chunks[0].num_chunks_from_msg)), "chunks")


@scenario("SEND", "A message in chunks carries its key and properties.", "PIP-37", bug="forgets key")
def a_message_in_chunks_carries_its_key(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send(stage.producer(topic, chunk=True), [{"value": LARGE, "key": "k", "properties": {"p": "v"}}])
    (message,) = stage.receive_all(consumer, [LARGE])
    stage.equal((message.get("key"), message.get("properties")), ("k", {"p": "v"}), "key and properties")


@scenario(
    "ACK",
    "The acknowledgement of a message in chunks acknowledges all its chunks.",
    "PIP-37",
    bug="ignores acknowledge",
)
def an_acknowledged_message_in_chunks_does_not_come_back(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send(stage.producer(topic, chunk=True), [LARGE])
    stage.receive_all(consumer, [LARGE], acknowledge=True)
    stage.close(consumer)
    stage.send(stage.producer(topic), ["behind"])
    stage.receive_all(stage.consumer(topic), ["behind"], acknowledge=True)
    stage.until(lambda: stage.backlog(topic) == 0, "chunks are in the backlog")


@scenario(
    "REDELIVER_UNACKNOWLEDGED_MESSAGES",
    "A negatively acknowledged message in chunks comes again as a whole.",
    "PIP-37",
    bug="ignores negative-acknowledge",
)
def a_negatively_acknowledged_message_in_chunks_comes_again(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Shared")
    stage.send(stage.producer(topic, chunk=True), [LARGE])
    (message,) = stage.receive_all(consumer, [LARGE])
    stage.ask("negative-acknowledge", consumer=consumer, message=message["id"])
    stage.receive_all(consumer, [LARGE], acknowledge=True)
    stage.until(lambda: stage.backlog(topic) == 0, "chunks are in the backlog")


@scenario(
    "SUBSCRIBE",
    "A reader may begin with a message in chunks, or behind it.",
    "PIP-37",
    bug="without reader.inclusive",
)
def a_reader_begins_with_a_message_in_chunks(stage: Stage) -> None:
    topic = stage.topic()
    _, large, _ = stage.send_each(stage.producer(topic, chunk=True), ["m-0", LARGE, "m-1"])
    stage.receive_in_order(stage.reader(topic, large, inclusive=True), [LARGE, "m-1"])
    stage.receive_in_order(stage.reader(topic, large), ["m-1"])


@scenario("SEND", "Two producers send messages in chunks at once, and both arrive whole.", "PIP-37", bug="repeats")
def chunks_of_two_producers_are_kept_apart(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    sending = [stage.sending(stage.producer(topic, chunk=True), [side + LARGE]) for side in "ab"]
    for each in sending:
        each.wait(60)
    stage.receive_all(consumer, ["a" + LARGE, "b" + LARGE])


@scenario(
    "SEND",
    "On Shared, all chunks of a message go to one consumer.",
    "PIP-37",
    bug='sets consumer.type "Exclusive"',
)
def all_chunks_of_a_message_go_to_one_shared_consumer(stage: Stage) -> None:
    topic = stage.topic()
    consumers = [stage.consumer(topic, "Shared", queue=2) for _ in range(2)]
    sending = [stage.sending(stage.producer(topic, chunk=True), [f"{side}{n}" + LARGE for n in "12"]) for side in "ab"]
    for each in sending:
        each.wait(60)
    got = stage.receive_shared(consumers, 4)
    values = sorted(each["value"] for some in got for each in some)
    stage.equal(values, [each + LARGE for each in ("a1", "a2", "b1", "b2")], "messages")
    stage.until(lambda: stage.backlog(topic) == 0, "chunks are in the backlog")


@scenario("SEND", "A thousand messages in batches arrive in order.", BATCHES, bug="reverses")
def a_thousand_messages_in_batches(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send(stage.producer(topic, batch=100), keyed(0, 1000))
    stage.in_order(stage.receive_in_order(consumer, values_of(keyed(0, 1000))))
