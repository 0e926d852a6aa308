"""MESSAGE with the permits that it cost (PIP-491)."""

from __future__ import annotations

import pytest

from pulsarium.broker.config import PROFILES, Profile, profile_of
from pulsarium.broker.config.proposals import MESSAGE_PERMITS
from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.masks import Mask
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.compacted import Retained, compacted, compacted_batch
from tests.broker.wire import (
    Bed,
    Earliest,
    Exclusive,
    Failover,
    KeyShared,
    Message,
    Shared,
    Type,
    Wire,
    batch_of,
    message_id,
    plain,
    serving,
)

TYPES = pytest.mark.parametrize("type", [Exclusive, Failover, Shared, KeyShared])
ON = pytest.mark.serving(profile=profile_of("pip", pip=[MESSAGE_PERMITS]))
EIGHT = batch_of(*[b"x"] * 8)
LEFT = 0b100101  # of the batch of eight
NON_PERSISTENT = "non-persistent://public/default/passing"


def told(messages: list[Message]) -> list[int | None]:
    """Return the permits that each MESSAGE tells."""
    commands = [message.command for message in messages]
    return [each.message_permits if each.HasField("message_permits") else None for each in commands]


def balance(bed: Bed) -> int:
    """Return the permits that the only consumer of the only topic has left."""
    (topic,) = bed.broker.topics.loaded.values()
    (consumer,) = topic.subscriptions["sub"].consumers
    return consumer.permits


@ON
@TYPES
async def test_a_message_tells_what_the_consumer_lost(bed: Bed, wire: Wire, sender: Wire, type: int) -> None:
    await wire.subscribe(type=type)
    batches = await sender.publish(EIGHT, EIGHT, plain(b"one"))
    await wire.ack(message_id=[message_id(batches[1], ack_set=[LEFT])])
    await wire.flow(20)
    if type == Failover:
        await wire.expect(Type.ACTIVE_CONSUMER_CHANGE)
    assert told(await wire.messages(3)) == [8, 3, 1]
    assert balance(bed) == 20 - (8 + 3 + 1)


@ON
@TYPES
async def test_a_message_of_a_non_persistent_topic_tells_it_too(bed: Bed, wire: Wire, type: int) -> None:
    await wire.subscribe(NON_PERSISTENT, type=type)
    if type == Failover:
        await wire.expect(Type.ACTIVE_CONSUMER_CHANGE)
    await wire.flow(20)
    await wire.alive()
    sender = await bed.connect()
    await sender.producer(NON_PERSISTENT)
    await sender.write(sender.sends(EIGHT, plain(b"one")))
    assert told(await wire.messages(2)) == [8, 1]
    assert balance(bed) == 20 - (8 + 1)


@ON
async def test_a_batch_tells_all_its_permits_where_few_were_left(wire: Wire, sender: Wire) -> None:
    await wire.subscribe(type=Shared)
    await sender.publish(EIGHT, plain(b"one"))
    await wire.flow(1)
    assert told(await wire.messages(1)) == [8]
    await wire.flow(7)
    await wire.quiet()
    await wire.flow(1)
    assert told(await wire.messages(1)) == [1]


@ON
async def test_a_redelivered_part_of_a_batch_tells_the_permits_of_the_part(wire: Wire, sender: Wire) -> None:
    await wire.subscribe(type=Shared)
    await wire.flow()
    (position,) = await sender.publish(EIGHT)
    assert told(await wire.messages(1)) == [8]
    await wire.ack(message_id=[message_id(position, ack_set=[LEFT])])
    await wire.redeliver([position])
    (again,) = await wire.messages(1)
    assert (told([again]), again.redelivery_count) == ([3], 1)


@ON
async def test_messages_that_compaction_removed_from_a_batch_cost_permits(bed: Bed, wire: Wire, sender: Wire) -> None:
    (position,) = await sender.publish(batch_of(b"x", b"y"))
    compacted(bed.topic(), Retained(position, {position: compacted_batch(None, b"y")}))
    await wire.subscribe(initialPosition=Earliest, read_compacted=True)
    await wire.flow()
    assert told(await wire.messages(1)) == [2]


@ON
async def test_a_chunk_and_an_encrypted_batch_tell_their_permits(wire: Wire, sender: Wire) -> None:
    """The broker cannot read an encrypted batch. Its metadata says how many messages it has."""
    await wire.subscribe()
    await wire.flow()
    chunk = plain(b"x", uuid="u", chunk_id=0, num_chunks_from_msg=3, total_chunk_msg_size=9)
    encrypted = plain(b"?", num_messages_in_batch=5, encryption_keys=[{"key": "k", "value": b"v"}])
    await sender.publish(chunk, encrypted)
    assert told(await wire.messages(2)) == [1, 5]


@ON
async def test_a_batch_of_none_tells_no_permits(wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    await wire.flow()
    await sender.publish(plain(b"one"), plain(b"", num_messages_in_batch=0), plain(b"two"))
    assert told(await wire.messages(3)) == [1, None, 1]


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: str(profile.name))
async def test_without_the_proposal_no_message_tells_permits(autojump_clock: object, profile: Profile) -> None:
    async with serving(profile=profile) as bed:
        wire = await bed.connect()
        await wire.subscribe()
        await wire.producer()
        await wire.flow()
        await wire.publish(EIGHT, plain(b"one"))
        received = [each.command.message for each in await wire.rest() if each.command.type == Type.MESSAGE]
        assert [each.HasField("message_permits") for each in received] == [False, False]


@ON
async def test_behind_the_mask_of_a_release_no_message_tells_permits(bed: Bed, sender: Wire) -> None:
    lab = bed.broker.cluster.attached(Lab)
    lab.masks.add(Mask(profile="pulsar-5.0"))
    wire = await bed.connect()
    await wire.subscribe()
    await wire.flow()
    await sender.publish(EIGHT)
    assert told(await wire.messages(1)) == [None]


def test_the_number_of_the_field_is_the_drafts() -> None:
    field = pb.CommandMessage.DESCRIPTOR.fields_by_name["message_permits"]
    assert (field.number, field.type) == (6, field.TYPE_UINT32)
