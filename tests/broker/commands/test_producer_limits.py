"""Policies that refuse producers or their messages."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.commands.producer_limits import LOOSE, put, put_topic
from tests.broker.commands.refusals import refused_producer
from tests.broker.wire import TOPIC, Bed, Type, Wire, batch_of, plain

KEYS = [{"key": "k", "value": b"v"}]


async def refused(wire: Wire, sequence_id: int, entry: bytes, **fields: Any) -> tuple[int, str]:
    await wire.send(Type.SEND, entry, producer_id=0, sequence_id=sequence_id, **fields)
    error = await wire.expect(Type.SEND_ERROR)
    assert (error.producer_id, error.sequence_id) == (0, max(sequence_id, fields.get("highest_sequence_id", 0)))
    return error.error, error.message


# encryption


@pytest.mark.req("P-07")
async def test_a_namespace_may_require_encryption(bed: Bed, wire: Wire) -> None:
    put(bed, encryption_required=True)
    assert await refused_producer(wire) == (pb.MetadataError, f"Encryption is required in {TOPIC}")
    await wire.producer(encrypted=True)
    plainly = (pb.MetadataError, "Messages must be encrypted")
    assert await refused(wire, 0, plain(b"x")) == plainly
    assert await refused(wire, 1, batch_of(b"x", b"y"), highest_sequence_id=2) == plainly
    await wire.publish(plain(b"x", encryption_keys=KEYS))
    topic = bed.topic()
    assert topic.messages_in == 1


@pytest.mark.req("P-07")
async def test_metadata_that_nobody_can_read_closes_where_it_must_be_read(bed: Bed, wire: Wire) -> None:
    put(bed, encryption_required=True)
    await wire.producer(encrypted=True)
    await wire.write(wire.sends(b"\0\0\0\3xyzgarbage"))
    assert await wire.closed() == []


@pytest.mark.req("P-07")
@pytest.mark.parametrize("name", [TOPIC, LOOSE])
async def test_producers_without_encryption_are_disconnected_when_it_is_required(bed: Bed, name: str) -> None:
    wire = await bed.connect()
    await wire.producer(name)
    await wire.producer(name, 1, encrypted=True)
    put(bed, encryption_required=True)
    assert (await wire.expect(Type.CLOSE_PRODUCER)).producer_id == 0
    await wire.write(wire.sends(plain(b"x")))  # the client has not read the CLOSE_PRODUCER yet
    await wire.alive()
    await wire.publish(plain(b"x", encryption_keys=KEYS), producer_id=1)


@pytest.mark.req("P-07")
@pytest.mark.serving(Config(encryptionRequireOnProducer=True))
async def test_the_broker_may_require_it_of_producers_only(wire: Wire) -> None:
    assert await refused_producer(wire) == (pb.MetadataError, f"Encryption is required in {TOPIC}")
    await wire.producer(encrypted=True)
    await wire.publish(plain(b"not encrypted"))


@pytest.mark.req("P-01", "P-07", "P-08")
async def test_a_producer_that_is_refused_leaves_nothing_behind(bed: Bed, wire: Wire) -> None:
    put(bed, encryption_required=True)
    schema = {"name": "", "schema_data": b"", "type": pb.Schema.Type.Value("String")}
    code, _ = await refused_producer(wire, initial_subscription_name="s", schema=schema)
    assert code == pb.MetadataError
    assert not bed.topic().subscriptions
    base = await wire.request(Type.GET_SCHEMA, topic=TOPIC)
    assert base.getSchemaResponse.error_code == pb.TopicNotFound
    put(bed, encryption_required=False)
    await wire.producer(initial_subscription_name="s")


# delayed delivery


@pytest.mark.req("B-22")
async def test_a_delay_may_be_so_long(bed: Bed, wire: Wire) -> None:
    put(bed, delayed_delivery_policies={"active": True, "tickTime": 1000, "maxDeliveryDelayInMillis": 1000})
    await wire.producer()
    too_long = (pb.NotAllowedError, "Exceeds max allowed delivery delay of 1000 milliseconds")
    assert await refused(wire, 0, plain(b"x", publish_time=5000, deliver_at_time=6001)) == too_long
    late = batch_of(b"x", b"y", publish_time=5000, deliver_at_time=6001)
    assert await refused(wire, 1, late, num_messages=2) == too_long
    assert await refused(wire, 2, plain(b"x", publish_time=2**64 - 1, deliver_at_time=1000)) == too_long
    await wire.publish(plain(b"x", publish_time=5000, deliver_at_time=6000), plain(b"y"))
    topic = bed.topic()
    assert topic.messages_in == 6  # refused messages count
    put(bed, delayed_delivery_policies={"active": False, "tickTime": 1000, "maxDeliveryDelayInMillis": 1000})
    await wire.publish(plain(b"x", publish_time=5000, deliver_at_time=9000))


@pytest.mark.req("B-22")
@pytest.mark.serving(Config(delayedDeliveryMaxDelayInMillis=1000))
async def test_nothing_is_delayed_on_a_non_persistent_topic(wire: Wire) -> None:
    await wire.producer(LOOSE)
    await wire.publish(plain(b"x", publish_time=5000, deliver_at_time=9000))


# size of messages


@pytest.mark.req("W-05")
@pytest.mark.parametrize("name", [TOPIC, LOOSE])
async def test_a_topic_may_limit_the_size_of_messages(bed: Bed, name: str) -> None:
    wire = await bed.connect()
    await wire.producer(name)
    entry = plain(b"123456789")
    put_topic(bed, name, max_message_size=len(entry))
    await wire.publish(entry)
    too_large = (pb.NotAllowedError, "Exceed maximum message size")
    assert await refused(wire, 1, plain(b"1234567890")) == too_large
    assert bed.broker.topics.find(TopicName.parse(name)).messages_in == 2
    chunk = plain(b"1234567890", uuid="u", chunk_id=0, num_chunks_from_msg=2)
    await wire.send(Type.SEND, chunk, producer_id=0, sequence_id=2, is_chunk=True)
    await wire.receipts(1)
    put_topic(bed, name)
    await wire.publish(plain(b"1234567890"))


@pytest.mark.req("W-05")
@pytest.mark.serving(Config(maxMessageSize=1000))
async def test_a_limit_that_is_not_below_the_brokers_is_none(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    for limit in (1000, 5000, 0, -1):
        put_topic(bed, max_message_size=limit)
        await wire.publish(plain(b"x" * 2000))
