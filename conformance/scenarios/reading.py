"""Scenarios of seeks, readers, the last message id, compaction and table views."""

from __future__ import annotations

from pulsarium.conformance.scenario import Stage, scenario, texts

SEEK = "Pulsar's documentation, Concepts: Messaging, Subscriptions: seek"
READERS = "Pulsar's documentation, Concepts: Clients, Reader interface"


@scenario(
    "SEEK", "A seek to the earliest message delivers everything again, acknowledged or not.", SEEK, bug="ignores seek"
)
def a_seek_to_the_earliest_message(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send_each(stage.producer(topic), texts(0, 5))
    stage.receive_in_order(consumer, texts(0, 5), acknowledge=True)
    stage.ask("seek", consumer=consumer, start="earliest")
    stage.receive_in_order(consumer, texts(0, 5))


@scenario("SEEK", "A seek to the latest message skips what is stored.", SEEK, bug="ignores seek")
def a_seek_to_the_latest_message(stage: Stage) -> None:
    topic = stage.topic()
    producer = stage.producer(topic)
    stage.send_each(producer, texts(0, 5))
    consumer = stage.consumer(topic)
    stage.receive(consumer, 1)
    stage.ask("seek", consumer=consumer, start="latest")
    stage.send(producer, ["new"])
    stage.receive_all(consumer, ["new"])


@scenario(
    "SEEK",
    "After a seek to a message, it or the next one comes first, and then the rest.",
    SEEK,
    bug='sets seek.start "earliest"',
)
def a_seek_to_a_message(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    ids = stage.send_each(stage.producer(topic), texts(0, 10))
    stage.receive_in_order(consumer, texts(0, 10), acknowledge=True)
    stage.ask("seek", consumer=consumer, start=ids[4])
    (first,) = stage.receive(consumer, 1)
    number = int(first["value"].removeprefix("m-"))
    stage.that(number in (4, 5), f"{first['value']} came first")
    stage.receive_in_order(consumer, texts(number + 1, 9 - number))


@scenario(
    "SEEK",
    "After a seek into a batch, this message or the next one comes first, and not those before.",
    SEEK,
    bug='sets seek.start "earliest"',
)
def a_seek_into_a_batch(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Shared")
    ids = stage.send(stage.producer(topic, batch=10), texts(0, 10))
    stage.receive_in_order(consumer, texts(0, 10), acknowledge=True)
    stage.ask("seek", consumer=consumer, start=ids[4])
    (first,) = stage.receive(consumer, 1)
    number = int(first["value"].removeprefix("m-"))
    stage.that(number in (4, 5), f"{first['value']} came first")
    stage.receive_in_order(consumer, texts(number + 1, 9 - number))


@scenario("SEEK", "After a seek to a time, messages published then and later come.", SEEK, bug="sets seek.time 0")
def a_seek_to_a_time(stage: Stage) -> None:
    topic = stage.topic()
    consumer, producer = stage.consumer(topic), stage.producer(topic)
    stage.send_each(producer, texts(0, 5))
    moment = stage.now()
    stage.send_each(producer, texts(5, 5))
    stage.receive_in_order(consumer, texts(0, 10), acknowledge=True)
    stage.ask("seek", consumer=consumer, time=moment)
    stage.receive_in_order(consumer, texts(5, 5))


@scenario("SUBSCRIBE", "A reader from the earliest message reads everything.", READERS, bug="reverses")
def a_reader_from_the_earliest_message(stage: Stage) -> None:
    topic = stage.topic()
    stage.send_each(stage.producer(topic), texts(0, 10))
    reader = stage.reader(topic)
    stage.receive_in_order(reader, texts(0, 10))
    stage.nothing(reader)


@scenario(
    "SUBSCRIBE",
    "A reader from the latest message reads later messages alone.",
    READERS,
    bug='sets reader.start "earliest"',
)
def a_reader_from_the_latest_message(stage: Stage) -> None:
    topic = stage.topic()
    producer = stage.producer(topic)
    stage.send(producer, texts(0, 5))
    reader = stage.reader(topic, "latest")
    stage.send(producer, texts(5, 5))
    stage.receive_in_order(reader, texts(5, 5))


@scenario(
    "SUBSCRIBE",
    "A reader from a message begins with this one or the next one.",
    READERS,
    bug='sets reader.start "earliest"',
)
def a_reader_from_a_message(stage: Stage) -> None:
    topic = stage.topic()
    ids = stage.send_each(stage.producer(topic), texts(0, 10))
    reader = stage.reader(topic, ids[4])
    (first,) = stage.receive(reader, 1)
    number = int(first["value"].removeprefix("m-"))
    stage.that(number in (4, 5), f"{first['value']} came first")
    stage.receive_in_order(reader, texts(number + 1, 9 - number))


@scenario(
    "SUBSCRIBE",
    "A reader that includes its start begins with the message itself.",
    READERS,
    bug="without reader.inclusive",
)
def a_reader_that_includes_its_start(stage: Stage) -> None:
    topic = stage.topic()
    ids = stage.send_each(stage.producer(topic), texts(0, 10))
    stage.receive_in_order(stage.reader(topic, ids[4], inclusive=True), texts(4, 6))


@scenario(
    "SUBSCRIBE",
    "A reader from the latest message that includes its start begins with the last stored message.",
    READERS,
    bug="without reader.inclusive",
)
def a_reader_that_includes_the_latest_message(stage: Stage) -> None:
    topic = stage.topic()
    producer = stage.producer(topic)
    stage.send_each(producer, texts(0, 5))
    reader = stage.reader(topic, "latest", inclusive=True)
    stage.that(stage.ask("has-message", reader=reader)["available"], "nothing is available")
    stage.receive_in_order(reader, ["m-4"])
    stage.send(producer, ["m-5"])
    stage.receive_in_order(reader, ["m-5"])


@scenario(
    "SEEK",
    "After a seek of a reader to a message, it or the next one comes first, and then the rest.",
    READERS,
    bug="ignores seek",
)
def a_reader_may_seek(stage: Stage) -> None:
    topic = stage.topic()
    ids = stage.send_each(stage.producer(topic), texts(0, 10))
    reader = stage.reader(topic)
    stage.receive_in_order(reader, texts(0, 10))
    stage.ask("seek", consumer=reader, start=ids[4])
    (first,) = stage.receive(reader, 1)
    number = int(first["value"].removeprefix("m-"))
    stage.that(number in (4, 5), f"{first['value']} came first")
    stage.receive_in_order(reader, texts(number + 1, 9 - number))


@scenario(
    "SEEK",
    "After a seek of a reader to a time, messages published then and later come, and none after a time to come.",
    READERS,
    bug="sets seek.time 0",
)
def a_reader_may_seek_to_a_time(stage: Stage) -> None:
    topic = stage.topic()
    producer, reader = stage.producer(topic), stage.reader(topic)
    stage.send_each(producer, texts(0, 3))
    moment = stage.now()
    stage.send_each(producer, texts(3, 3))
    for start, values in ((moment, texts(3, 3)), (moment + 3_600_000, []), (1, texts(0, 6))):
        stage.ask("seek", consumer=reader, time=start)
        if values:
            stage.receive_in_order(reader, values)
        else:
            stage.nothing(reader)


@scenario(
    "SUBSCRIBE", "A reader of a partitioned topic reads all partitions.", READERS, bug='sets reader.start "latest"'
)
def a_reader_reads_all_partitions(stage: Stage) -> None:
    topic = stage.topic(3)
    stage.send_each(stage.producer(topic), texts(0, 30))
    reader = stage.reader(topic)
    stage.receive_all(reader, texts(0, 30))
    stage.nothing(reader)


@scenario(
    "SUBSCRIBE",
    "A reader in the middle of a batch skips the messages before.",
    READERS,
    bug='sets reader.start "earliest"',
)
def a_reader_in_the_middle_of_a_batch(stage: Stage) -> None:
    topic = stage.topic()
    ids = stage.send(stage.producer(topic, batch=10), texts(0, 10))
    stage.receive_in_order(stage.reader(topic, ids[4], inclusive=True), texts(4, 6))


@scenario("SUBSCRIBE", "A reader leaves no subscription behind.", READERS, bug="ignores close")
def a_reader_leaves_no_subscription(stage: Stage) -> None:
    topic = stage.topic()
    stage.send(stage.producer(topic), ["a"])
    reader = stage.reader(topic)
    stage.receive_all(reader, ["a"])
    stage.close(reader)
    stage.until(lambda: stage.side.stats(topic)["subscriptions"] == {}, "the reader's subscription is still there")


@scenario("CLOSE_CONSUMER", "A reader goes on behind its last message after an unload.", READERS, bug="reverses")
def a_reader_goes_on_after_an_unload(stage: Stage) -> None:
    topic = stage.topic()
    producer = stage.producer(topic)
    stage.send_each(producer, texts(0, 4))
    reader = stage.reader(topic, queue=1)
    stage.receive_in_order(reader, texts(0, 2))
    stage.side.unload(topic)
    stage.send(producer, ["m-4"])
    stage.receive_in_order(reader, texts(2, 3))
    stage.nothing(reader)


@scenario(
    "GET_LAST_MESSAGE_ID",
    "A reader knows whether a message is available: yes, no, and yes again.",
    READERS,
    bug="says has-message.available true",
)
def a_reader_knows_whether_a_message_is_available(stage: Stage) -> None:
    topic = stage.topic()
    producer = stage.producer(topic)
    stage.send_each(producer, texts(0, 3))
    reader = stage.reader(topic)
    for value in texts(0, 3):
        stage.that(stage.ask("has-message", reader=reader)["available"], f"nothing is available before {value}")
        stage.receive_in_order(reader, [value])
    stage.that(not stage.ask("has-message", reader=reader)["available"], "something is available at the end")
    stage.send(producer, ["m-3"])
    stage.that(stage.ask("has-message", reader=reader)["available"], "nothing is available after one more message")


@scenario(
    "GET_LAST_MESSAGE_ID", "An empty topic has no message available.", READERS, bug="says has-message.available true"
)
def an_empty_topic_has_no_message_available(stage: Stage) -> None:
    reader = stage.reader(stage.topic())
    stage.that(not stage.ask("has-message", reader=reader)["available"], "something is available")


@scenario(
    "GET_LAST_MESSAGE_ID",
    "A reader from the latest message has none available until one is published.",
    READERS,
    bug="says has-message.available true",
)
def a_latest_reader_has_no_message_available(stage: Stage) -> None:
    topic = stage.topic()
    producer = stage.producer(topic)
    stage.send(producer, ["old"])
    reader = stage.reader(topic, "latest")
    stage.that(not stage.ask("has-message", reader=reader)["available"], "something is available")
    stage.send(producer, ["new"])
    stage.that(stage.ask("has-message", reader=reader)["available"], "nothing is available")
    stage.receive_all(reader, ["new"])


@scenario(
    "GET_LAST_MESSAGE_ID",
    "The last message id is that of the last message.",
    "CommandGetLastMessageId",
    bug="says last-message-id.place [0, 0, -1]",
)
def the_last_message_id_is_that_of_the_last_message(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send_each(stage.producer(topic), texts(0, 5))
    last = stage.receive_in_order(consumer, texts(0, 5))[-1]
    found = stage.ask("last-message-id", consumer=consumer)["place"]
    stage.equal(found[:2], stage.told(last, "place")[:2], "ledger and entry")


@scenario(
    "GET_LAST_MESSAGE_ID",
    "The last message id names the last message of a batch.",
    "CommandGetLastMessageId",
    bug="says last-message-id.place [0, 0, -1]",
)
def the_last_message_id_names_the_last_of_a_batch(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send(stage.producer(topic, batch=5), texts(0, 5))
    last = stage.receive_in_order(consumer, texts(0, 5))[-1]
    stage.equal(stage.ask("last-message-id", consumer=consumer)["place"], stage.told(last, "place"), "place")


@scenario(
    "GET_LAST_MESSAGE_ID",
    "The last message id of an empty topic is none.",
    "CommandGetLastMessageId",
    bug="says last-message-id.place [0, 0, -1]",
)
def the_last_message_id_of_an_empty_topic(stage: Stage) -> None:
    place = stage.ask("last-message-id", consumer=stage.consumer(stage.topic()))["place"]
    stage.equal(place[1], -1, "entry")


@scenario(
    "SUBSCRIBE",
    "After a compaction, readers of the compacted topic get the newest message of each key.",
    "PIP-14",
    bug="without consumer.compacted",
)
def a_compacted_topic_has_the_newest_of_each_key(stage: Stage) -> None:
    topic = stage.topic()
    stage.close(stage.consumer(topic, compacted=True))
    stage.send_each(stage.producer(topic), [(key, key + version) for version in "12" for key in "abc"])
    stage.side.compact(topic)
    consumer = stage.consumer(topic, compacted=True)
    stage.receive_in_order(consumer, ["a2", "b2", "c2"])
    stage.nothing(consumer)


@scenario(
    "SUBSCRIBE",
    "A reader of the compacted topic reads the newest message of each key.",
    "PIP-14",
    bug="without reader.compacted",
)
def a_reader_of_a_compacted_topic(stage: Stage) -> None:
    topic = stage.topic()
    stage.close(stage.consumer(topic))
    stage.send_each(stage.producer(topic), [(key, key + version) for version in "12" for key in "abc"])
    stage.side.compact(topic)
    reader = stage.reader(topic, compacted=True)
    stage.receive_in_order(reader, ["a2", "b2", "c2"])
    stage.nothing(reader)


@scenario(
    "FLOW",
    "A reader asks for no more messages than its queue has room for.",
    "CommandFlow",
    bug="without reader.queue",
)
def a_reader_asks_for_what_its_queue_holds(stage: Stage) -> None:
    topic = stage.topic()
    stage.send_each(stage.producer(topic), texts(0, 10))
    stage.receive_in_order(stage.reader(topic, queue=4), texts(0, 10))
    asked = [frame.body.messagePermits for frame in stage.history().of("FLOW")]
    stage.that(asked and max(asked) <= 4, f"permits of the reader: {asked}")


@scenario(
    "SUBSCRIBE",
    "Without read-compacted, a compacted topic has all its messages.",
    "PIP-14",
    bug="sets consumer.compacted true",
)
def a_compacted_topic_keeps_all_messages_for_others(stage: Stage) -> None:
    topic = stage.topic()
    stage.close(stage.consumer(topic))
    sent = [(key, key + version) for version in "12" for key in "ab"]
    stage.send_each(stage.producer(topic), sent)
    stage.side.compact(topic)
    stage.receive_in_order(stage.consumer(topic), [value for _, value in sent])


@scenario(
    "SUBSCRIBE", "A tombstone removes its key at the next compaction.", "PIP-14", bug="without consumer.compacted"
)
def a_tombstone_removes_its_key(stage: Stage) -> None:
    topic = stage.topic()
    stage.close(stage.consumer(topic, compacted=True))
    producer = stage.producer(topic)
    stage.send_each(producer, [("a", "a1"), ("b", "b1"), {"key": "a", "value": "", "null": True}])
    stage.side.compact(topic)
    consumer = stage.consumer(topic, compacted=True)
    stage.receive_in_order(consumer, ["b1"])
    stage.nothing(consumer)


@scenario(
    "SUBSCRIBE",
    "A compaction drops messages without a key.",
    "topicCompactionRetainNullKey",
    bug="without consumer.compacted",
)
def a_compacted_topic_has_no_messages_without_a_key(stage: Stage) -> None:
    topic = stage.topic()
    stage.close(stage.consumer(topic, compacted=True))
    stage.send_each(stage.producer(topic), [("a", "a1"), "no key", ("b", "b1")])
    stage.side.compact(topic)
    consumer = stage.consumer(topic, compacted=True)
    stage.receive_in_order(consumer, ["a1", "b1"])
    stage.nothing(consumer)


@scenario(
    "GET_LAST_MESSAGE_ID",
    "A reader of the compacted topic has nothing available behind the last compacted message.",
    "PIP-14",
    bug="says has-message.available true",
)
def a_reader_of_a_compacted_topic_knows_its_end(stage: Stage) -> None:
    topic = stage.topic()
    stage.close(stage.consumer(topic))
    stage.send_each(stage.producer(topic), [("a", "a1"), ("b", "b1"), {"key": "a", "value": "", "null": True}])
    stage.side.compact(topic)
    reader = stage.reader(topic, compacted=True)
    stage.that(stage.ask("has-message", reader=reader)["available"], "nothing is available")
    stage.receive_in_order(reader, ["b1"])
    stage.that(not stage.ask("has-message", reader=reader)["available"], "something is available at the end")


@scenario(
    "SUBSCRIBE",
    "After the compaction of a batch, its older messages of a key are gone.",
    "PIP-14",
    bug="without consumer.compacted",
)
def a_compacted_batch_has_the_newest_of_each_key(stage: Stage) -> None:
    topic = stage.topic()
    stage.close(stage.consumer(topic, compacted=True))
    stage.send(stage.producer(topic, batch=10), [(f"k{n % 5}", f"m-{n}") for n in range(10)])
    stage.side.compact(topic)
    consumer = stage.consumer(topic, compacted=True)
    stage.receive_in_order(consumer, texts(5, 5))
    stage.nothing(consumer)


@scenario(
    "SUBSCRIBE",
    "What is published after a compaction follows the compacted messages.",
    "PIP-14",
    bug="without consumer.compacted",
)
def later_messages_follow_the_compacted_ones(stage: Stage) -> None:
    topic = stage.topic()
    stage.close(stage.consumer(topic, compacted=True))
    producer = stage.producer(topic)
    stage.send_each(producer, [("a", "a1"), ("a", "a2")])
    stage.side.compact(topic)
    stage.send_each(producer, [("a", "a3"), ("b", "b1")])
    stage.receive_in_order(stage.consumer(topic, compacted=True), ["a2", "a3", "b1"])


@scenario(
    "SUBSCRIBE",
    "A table view has the newest value of each key, and follows changes.",
    "PIP-104",
    bug="says table.entries {}",
)
def a_table_view_has_the_newest_values(stage: Stage) -> None:
    topic = stage.topic()
    producer = stage.producer(topic)
    stage.send_each(producer, [("a", "1"), ("b", "2"), ("a", "3")])
    view = stage.opened("table-view", client=stage.client, topic=topic)
    stage.equal(stage.ask("table", view=view)["entries"], {"a": "3", "b": "2"}, "entries")
    stage.send(producer, [("b", "4")])
    stage.until(lambda: stage.ask("table", view=view)["entries"] == {"a": "3", "b": "4"}, "the view does not follow")


@scenario("SUBSCRIBE", "A tombstone removes a key from a table view.", "PIP-104", bug="says table.entries {}")
def a_tombstone_removes_a_key_from_a_table_view(stage: Stage) -> None:
    topic = stage.topic()
    producer = stage.producer(topic)
    stage.send_each(producer, [("a", "1"), ("b", "2")])
    view = stage.opened("table-view", client=stage.client, topic=topic)
    stage.send(producer, [{"key": "a", "value": "", "null": True}])
    stage.until(lambda: stage.ask("table", view=view)["entries"] == {"b": "2"}, "the key is still there")


@scenario(
    "SUBSCRIBE",
    "A table view begins with the compacted messages, and has those behind them too.",
    "PIP-104",
    bug="says table.entries {}",
)
def a_table_view_of_a_compacted_topic(stage: Stage) -> None:
    topic = stage.topic()
    stage.close(stage.consumer(topic))
    producer = stage.producer(topic)
    stage.send_each(producer, [("a", "1"), ("b", "2"), ("a", "3")])
    stage.side.compact(topic)
    stage.send(producer, [("c", "4")])
    view = stage.opened("table-view", client=stage.client, topic=topic)
    entries = {"a": "3", "b": "2", "c": "4"}
    stage.until(lambda: stage.ask("table", view=view)["entries"] == entries, "an entry is missing")
