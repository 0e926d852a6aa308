"""FLOW: the messages that the broker delivers for permits."""

from __future__ import annotations

import pytest

from pulsarium.broker.config import Config
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.numbers import INT_MAX
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import (
    TOPIC,
    Bed,
    Earliest,
    Exclusive,
    Shared,
    Type,
    Wire,
    batch_of,
    entry_ids,
    plain,
    serving,
)


@pytest.mark.req("B-05")
@pytest.mark.parametrize("type", [Exclusive, Shared])
async def test_permits_add_up(wire: Wire, sender: Wire, type: int) -> None:
    await wire.subscribe(type=type)
    await sender.publish_numbered(10)
    for permits in (1, 2, 3):
        await wire.flow(permits)
        await wire.messages(permits)
        await wire.quiet()
    await wire.flow(2)
    await wire.flow(3)
    assert entry_ids(await wire.messages(4)) == [6, 7, 8, 9]
    await sender.publish_numbered(3)
    await wire.messages(1)
    await wire.quiet()


@pytest.mark.req("B-05")
@pytest.mark.parametrize("type", [Exclusive, Shared])
async def test_a_batch_may_drive_the_permits_below_zero(wire: Wire, sender: Wire, type: int) -> None:
    await wire.subscribe(type=type)
    await wire.flow(1)
    await sender.publish(*[batch_of(*[b"x"] * 10)] * 3)
    await wire.messages(1)
    await wire.flow(9)
    await wire.quiet()  # 0 permits: no message yet
    await wire.flow(1)
    await wire.messages(1)
    await wire.quiet()


@pytest.mark.req("B-05")
async def test_a_batch_of_none_costs_nothing(wire: Wire, sender: Wire) -> None:
    await wire.subscribe(type=Shared)
    await wire.flow(1)
    await sender.publish(*[plain(b"", num_messages_in_batch=0)] * 3, plain(b"last"), plain(b"too much"))
    assert (await wire.payloads(4))[3] == b"last"
    await wire.quiet()


@pytest.mark.parametrize("permits", [0, 2**31, 2**32 - 1])
async def test_permits_that_are_none_close(wire: Wire, permits: int) -> None:
    await wire.subscribe()
    await wire.flow(permits)
    assert await wire.closed() == []


async def test_permits_for_a_consumer_that_is_not_there_are_lost(wire: Wire, sender: Wire) -> None:
    await wire.flow(10, consumer_id=7)
    await wire.subscribe(consumer_id=7)
    await sender.publish_numbered(1)
    await wire.quiet()


async def test_permits_wrap_around(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe(type=Shared)
    await wire.flow(INT_MAX)
    await sender.publish_numbered(1)
    await wire.messages(1)
    await wire.flow(INT_MAX)
    await wire.alive()
    (consumer,) = bed.subscription().consumers
    assert consumer.permits == -3
    await sender.publish_numbered(1)
    await wire.quiet()


@pytest.mark.req("W-02", "B-01")
async def test_entries_arrive_as_they_were_sent(wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    await wire.flow()
    entries = [
        plain(b"checked"),
        plain(b"unchecked", checksum=False),
        batch_of(b"a", b"b", partition_key="k"),
        plain(b"", null_value=True, properties=[{"key": "k", "value": "v"}]),
    ]
    await sender.publish(*entries)
    messages = await wire.messages(4)
    assert [message.entry for message in messages] == entries
    assert all(message.command.message_id.partition == -1 for message in messages)
    assert not any(message.command.HasField("redelivery_count") for message in messages)
    assert not any(message.command.HasField("consumer_epoch") for message in messages)


@pytest.mark.req("B-36")
async def test_messages_of_partitions_name_them(bed: Bed, wire: Wire, sender: Wire) -> None:
    bed.broker.topics.create_partitions(TopicName.parse(f"{TOPIC}-parts"), 3)
    await sender.producer(f"{TOPIC}-parts-partition-2", 1)
    await wire.subscribe(f"{TOPIC}-parts-partition-2")
    await wire.flow()
    await sender.publish(plain(b"x"), producer_id=1)
    assert (await wire.message()).command.message_id.partition == 2


async def test_unreadable_metadata_reaches_nobody_and_holds_nobody_up(bed: Bed, wire: Wire, sender: Wire) -> None:
    for sub_type, name in ((Exclusive, "ex"), (Shared, "sh")):
        await wire.subscribe(name=name, type=sub_type, consumer_id=sub_type)
        await wire.flow(consumer_id=sub_type)
    await sender.publish(b"\0\0\0\3xyzgarbage", plain(b"", marker_type=21), plain(b"good"))
    assert await wire.payloads(2) == [b"good", b"good"]
    assert [bed.subscription(name).cursor.backlog() for name in ("ex", "sh")] == [1, 1]


@pytest.mark.req("W-03")
@pytest.mark.req("S415-30")
async def test_stamps_of_the_broker_go_only_to_those_who_can_take_them(autojump_clock: object) -> None:
    interceptors = (
        "org.apache.pulsar.common.intercept.AppendBrokerTimestampMetadataInterceptor",
        "org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor",
    )
    config = Config(brokerEntryMetadataInterceptors=interceptors, exposingBrokerEntryMetadataToClientEnabled=True)
    async with serving(config) as bed:
        wire = await bed.connect()
        await wire.producer()
        entry = plain(b"x")
        await wire.publish(entry, batch_of(b"a", b"b"), num_messages=2)
        flag = "supports_broker_entry_metadata"
        for number, (version, flags, stamped) in enumerate(
            [(18, [flag], True), (21, [flag], True), (17, [flag], False), (21, [], False)]
        ):
            reader = await bed.connect(version, flags)
            await reader.subscribe(name=f"s{number}", initialPosition=Earliest)
            await reader.flow()
            first, second = await reader.messages(2)
            assert first.entry.endswith(entry)
            assert (first.entry == entry) is not stamped
            if stamped:
                size = int.from_bytes(first.entry[2:6], "big")
                stamp = pb.BrokerEntryMetadata.FromString(first.entry[6 : 6 + size])
                assert stamp.index == 1  # num_messages announced two messages
                assert stamp.broker_timestamp == bed.broker.clock.now_ms()
                stamp = pb.BrokerEntryMetadata.FromString(second.entry[6 : 6 + size])
                assert stamp.index == 3


@pytest.mark.req("W-03")
async def test_stamps_stay_inside_unless_they_are_exposed(autojump_clock: object) -> None:
    interceptors = ("org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor",)
    async with serving(Config(brokerEntryMetadataInterceptors=interceptors)) as bed:
        wire = await bed.connect(21, ["supports_broker_entry_metadata"])
        await wire.producer()
        await wire.subscribe()
        await wire.flow()
        entry = plain(b"x")
        await wire.publish(entry)
        assert (await wire.message()).entry == entry


@pytest.mark.req("W-04")
@pytest.mark.parametrize("version", [10, 11])
async def test_old_clients_get_no_checksums(bed: Bed, sender: Wire, version: int) -> None:
    old = await bed.connect(version)
    await old.subscribe()
    await old.flow()
    await sender.publish(plain(b"x"))
    assert (await old.message()).entry == plain(b"x", checksum=version >= 11)


@pytest.mark.req("W-04")
async def test_a_batch_closes_a_client_that_cannot_take_one_and_goes_to_the_next(bed: Bed, sender: Wire) -> None:
    old, new = await bed.connect(3), await bed.connect(4)
    for consumer in (old, new):
        await consumer.subscribe(type=Shared)
        await consumer.flow()
    await sender.publish(batch_of(b"a", b"b"))
    received = await old.closed()
    assert [r.command.type for r in received] == []
    message = await new.message()
    assert message.position.entry_id == 0
    assert message.redelivery_count == 0
    await sender.publish(plain(b"c"))
    assert await new.payloads(1) == [b"c"]


@pytest.mark.req("W-04")
async def test_a_batch_of_one_is_taken_by_all(bed: Bed, sender: Wire) -> None:
    old = await bed.connect(3)
    await old.subscribe()
    await old.flow()
    await sender.publish(batch_of(b"a"))
    await old.messages(1)
    await old.alive()


async def test_a_batch_of_less_than_no_messages_breaks_no_stats(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe(type=Shared)
    await wire.flow(10)
    await sender.publish(plain(b"x", num_messages_in_batch=-5))
    await wire.message()
    stats = await wire.ask(Type.CONSUMER_STATS, consumer_id=0)
    assert (stats.unackedMessages, stats.availablePermits) == (0, 15)


async def test_permits_below_zero_wrap(wire: Wire, sender: Wire) -> None:
    await wire.subscribe(type=Shared)
    await wire.flow(1)
    await sender.publish(batch_of(b"a", b"b", b"c"))
    await wire.message()
    assert (await wire.ask(Type.CONSUMER_STATS, consumer_id=0)).availablePermits == 2**64 - 2
