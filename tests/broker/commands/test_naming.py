"""Text fields that are not UTF-8: the broker replaces the wrong bytes, as Pulsar does, and keeps the connection."""

from __future__ import annotations

import pytest

from pulsarium.broker.commands.naming import texts_of
from pulsarium.proto.framing import frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of
from tests.broker.wire import TOPIC, Bed, Exclusive, Type, Wire, command

MARK, BROKEN, READ = "zz", b"z\xff", "z\ufffd"


def broken(type: int, **fields: object) -> bytes:
    """Build a frame in which bytes that are not UTF-8 replace every MARK."""
    return frame(command(type, request_id=77, **fields).SerializeToString().replace(MARK.encode(), BROKEN))


async def test_names_of_consumers_and_producers(bed: Bed, wire: Wire) -> None:
    await wire.write(
        broken(
            Type.SUBSCRIBE,
            topic=TOPIC,
            subscription=f"s{MARK}",
            subType=Exclusive,
            consumer_id=0,
            consumer_name=MARK,
            metadata=[{"key": MARK, "value": MARK}],
        )
    )
    await wire.expect(Type.SUCCESS)
    (topic,) = bed.broker.topics.loaded.values()
    (subscription,) = topic.subscriptions.values()
    (consumer,) = subscription.consumers
    assert (subscription.name, consumer.name, consumer.metadata) == (f"s{READ}", READ, {READ: READ})
    await wire.write(broken(Type.PRODUCER, topic=TOPIC, producer_id=0, producer_name=MARK))
    assert (await wire.expect(Type.PRODUCER_SUCCESS)).producer_name == READ


@pytest.mark.parametrize("type", [Type.GET_TOPICS_OF_NAMESPACE, Type.WATCH_TOPIC_LIST])
async def test_a_pattern_that_is_no_utf_8_is_answered(wire: Wire, type: int) -> None:
    more = {"watcher_id": 0} if type == Type.WATCH_TOPIC_LIST else {}
    await wire.write(broken(type, namespace="public/default", topics_pattern=MARK, **more))
    assert (await wire.next()).command.type in (Type.GET_TOPICS_OF_NAMESPACE_RESPONSE, Type.WATCH_TOPIC_LIST_SUCCESS)


async def test_a_listener_name_that_is_no_utf_8_is_shown_with_replacements(wire: Wire) -> None:
    await wire.write(broken(Type.LOOKUP, topic=TOPIC, advertised_listener_name=MARK))
    assert (await wire.expect(Type.LOOKUP_RESPONSE)).message == f"the broker do not have {READ} listener"


async def test_brokers_that_a_proxy_names(bed: Bed) -> None:
    wire = bed.dial()
    sent = command(Type.CONNECT, client_version=MARK, protocol_version=21, proxy_to_broker_url=MARK)
    await wire.write(frame(sent.SerializeToString().replace(MARK.encode(), BROKEN)))
    await wire.expect(Type.CONNECTED)


def test_texts_are_read_as_utf_8_and_the_last_value_of_a_key_counts() -> None:
    assert text_of("a") == "a"
    assert text_of(b"\xc3\xbc") == "ü"
    assert texts_of([pb.KeyValue(key="a", value="1"), pb.KeyValue(key="a", value="2")]) == {"a": "2"}
