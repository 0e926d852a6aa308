"""Compacted topics and last message ids, as the official client saw them on a broker of Pulsar 4.2.4."""

from __future__ import annotations

import time
from typing import Any

import pulsar
import pytest

from tests.foreign.python.compaction import SCRIPTS, Place, Script

from ..admin import Admin
from ..deadline import eventually
from .traffic import QUIET_MS, SECONDS, position, receive

EARLIEST = pulsar.InitialPosition.Earliest


def publish(client: Any, topic: str, script: Script) -> None:
    producer = client.create_producer(topic, batching_enabled=script.batched, batching_max_publish_delay_ms=60_000)
    for batch in script.entries:
        for key, message in batch:
            producer.send_async(message, lambda result, message_id: None, partition_key=key)
        producer.flush()
    producer.close()


def compact(admin: Admin, topic: str) -> None:
    admin.compact(topic)
    eventually(lambda: admin.compaction(topic)["status"] == "SUCCESS", what="a compaction")


def place_of(message_id: Any) -> Place:
    _, entry_id, _, batch_index = position(message_id)
    return entry_id, batch_index


def read_all(reader: Any, count: int) -> list[Place]:
    """Read `count` messages and see that no more come, whatever `has_message_available` says."""
    places = [place_of(reader.read_next(timeout_millis=int(SECONDS * 1000)).message_id()) for _ in range(count)]
    with pytest.raises(pulsar.Timeout):
        reader.read_next(timeout_millis=QUIET_MS)
    return places


@pytest.fixture(params=SCRIPTS)
def script(request: pytest.FixtureRequest, client: Any, admin: Admin, topic: str) -> Script:
    """Publish the messages of a script, and compact the topic."""
    script = SCRIPTS[request.param]
    publish(client, topic, script)
    compact(admin, topic)
    return script


@pytest.mark.req("S429-03", "S429-09", "S429-13", "S429-16", "B-32")
@pytest.mark.parametrize("read_compacted", [False, True])
def test_a_consumer_reads_the_compacted_or_all_messages(
    client: Any, topic: str, script: Script, read_compacted: bool
) -> None:
    expected = script.got if read_compacted else script.everything()
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST, is_read_compacted=read_compacted)
    last = place_of(consumer.get_last_message_id())
    assert last == (script.last if read_compacted else expected[-1][0])
    messages = receive(consumer, len(expected))
    assert [(place_of(m.message_id()), m.partition_key(), m.data()) for m in messages] == expected
    with pytest.raises(pulsar.Timeout):
        consumer.receive(timeout_millis=QUIET_MS)


@pytest.mark.parametrize("read_compacted", [False, True])
def test_a_reader_reads_the_compacted_or_all_messages(
    client: Any, topic: str, script: Script, read_compacted: bool
) -> None:
    expected = script.got if read_compacted else script.everything()
    reader = client.create_reader(topic, pulsar.MessageId.earliest, is_read_compacted=read_compacted)
    assert read_all(reader, len(expected)) == [place for place, _, _ in expected]
    assert not reader.has_message_available()


@pytest.mark.req("S429-14")
@pytest.mark.parametrize("read_compacted", [False, True])
def test_a_reader_that_asks_whether_there_is_more(
    client: Any, topic: str, script: Script, read_compacted: bool
) -> None:
    """The loop ends. It includes removed messages behind the last one only if the client has them already."""
    expected = [place for place, _, _ in (script.got if read_compacted else script.everything())]
    wanted = [place for place in expected if place <= script.last] if read_compacted else expected
    reader = client.create_reader(topic, pulsar.MessageId.earliest, is_read_compacted=read_compacted)
    places = []
    end = time.monotonic() + SECONDS
    while reader.has_message_available():
        assert time.monotonic() < end
        places.append(place_of(reader.read_next(timeout_millis=int(SECONDS * 1000)).message_id()))
    assert places == expected[: max(len(places), len(wanted))]


def test_a_reader_goes_on_behind_the_horizon(client: Any, admin: Admin, topic: str) -> None:
    publish(client, topic, SCRIPTS["cpC"])
    compact(admin, topic)
    reader = client.create_reader(topic, pulsar.MessageId.earliest, is_read_compacted=True)
    assert read_all(reader, 1) == [(1, -1)]
    client.create_producer(topic).send(b"new", partition_key="k1")
    assert reader.has_message_available()
    assert reader.read_next(timeout_millis=int(SECONDS * 1000)).data() == b"new"
    assert not reader.has_message_available()
    reader.seek(pulsar.MessageId.earliest)
    assert read_all(reader, 2) == [(1, -1), (3, -1)]


def test_a_subscription_comes_back(client: Any, admin: Admin, topic: str) -> None:
    """The broker does not redeliver acknowledged messages of the compacted ledger, also after an unload."""
    script = Script(False, [[(f"k{number % 4}", b"%d" % number)] for number in range(10)], (9, -1), [])
    publish(client, topic, script)
    compact(admin, topic)
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST, is_read_compacted=True)
    messages = receive(consumer, 4)
    assert [message.data() for message in messages] == [b"6", b"7", b"8", b"9"]
    consumer.acknowledge(messages[1])
    consumer.close()
    admin.unload(topic)
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST, is_read_compacted=True)
    messages = receive(consumer, 3)
    assert [message.data() for message in messages] == [b"6", b"8", b"9"]
    consumer.acknowledge_cumulative(messages[1])
    consumer.close()
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST, is_read_compacted=True)
    assert [message.data() for message in receive(consumer, 1)] == [b"9"]
    assert admin.backlog(topic, "s") == 1


@pytest.mark.req("S429-29", "S429-30", "S429-31")
def test_compaction_deletes_by_an_empty_value_and_keeps_no_entry_for_nothing(
    client: Any, admin: Admin, topic: str
) -> None:
    """Compaction removes messages without a key too, by default."""
    entries: list[list[tuple[str | None, bytes]]] = [
        [("gone", b"1"), ("also gone", b"2")],
        [(None, b"no key"), ("kept", b"3")],
        [("gone", b""), ("also gone", b"")],
        [(None, b"no key")],
    ]
    publish(client, topic, Script(True, entries, (0, 0), []))  # type: ignore[arg-type]
    compact(admin, topic)
    reader = client.create_reader(topic, pulsar.MessageId.earliest, is_read_compacted=True)
    messages = [reader.read_next(timeout_millis=30_000) for _ in entries[1]]  # the first batch is removed
    assert [(place_of(each.message_id()), each.data()) for each in messages] == [((1, 0), b""), ((1, 1), b"3")]
    assert read_all(reader, 0) == []
    compacted = admin.call("GET", f"/admin/v2/{topic.replace('://', '/')}/internalStats")["compactedLedger"]
    assert compacted["entries"] == 1
