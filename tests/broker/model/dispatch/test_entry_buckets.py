"""Key_Shared by entry buckets: consumers share the buckets of a segment, and each entry goes whole to one consumer."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.routing import bucket_hash
from tests.broker.model.dispatch.sharing import dispatcher, got, joined, payloads, why
from tests.broker.wire import Bed, Cumulative, Earliest, KeyShared, Type, Wire, batch_of, frame_of, message_id, plain

QUARTERS = ((0, 0x3FFF), (0x4000, 0x7FFF), (0x8000, 0xBFFF), (0xC000, 0xFFFF))
STARTS = [start for start, _ in QUARTERS]
OTHER_TYPE = "Subscription is of different type. Active subscription"


def buckets(*ranges: tuple[int, int], **fields: Any) -> dict[str, Any]:
    """Return the keySharedMeta of a consumer that shares these buckets."""
    return {
        "keySharedMode": pb.KeySharedMode.STICKY,
        "hashRanges": [{"start": start, "end": end} for start, end in ranges],
        "entryBucketDispatch": True,
        **fields,
    }


async def sharer(bed: Bed, name: str, **fields: Any) -> Wire:
    return await joined(bed, name, keySharedMeta=buckets(*QUARTERS), **fields)


def stamped(*stamps: int) -> list[bytes]:
    """Return batches of two keys each, whose metadata has only the lowest hash of their bucket."""
    return [batch_of(b"a", b"b", entry_hash_min=stamp, entry_hash_max=stamp, sequence_id=stamp) for stamp in stamps]


async def refusal(bed: Bed, **meta: Any) -> Any:
    wire = await bed.connect()
    frame = wire.numbered(
        Type.SUBSCRIBE,
        topic="persistent://public/default/t",
        subscription="sub",
        subType=KeyShared,
        consumer_id=7,
        consumer_name="late",
        initialPosition=Earliest,
        **({"keySharedMeta": meta} if meta else {}),
    )
    await wire.write(frame)
    return await wire.expect(Type.ERROR)


async def test_consumers_own_equal_runs_of_buckets_in_the_order_of_their_names(bed: Bed, sender: Wire) -> None:
    second, first = await sharer(bed, "c2"), await sharer(bed, "c1")
    await sender.publish(*stamped(0, 0x3FFF, 0x4000, 0x8000, 0xFFFF))
    counts = [[each.command.message_id.entryId for each in await got(wire)] for wire in (first, second)]
    assert counts == [[0, 1, 2], [3, 4]]


async def test_an_entry_without_a_hash_goes_by_the_low_bits_of_its_key(bed: Bed, sender: Wire) -> None:
    wires = [await sharer(bed, f"c{number}") for number in range(4)]
    keys = [f"key-{number}" for number in range(20)]
    await sender.publish(*(plain(key.encode(), partition_key=key) for key in keys))
    for number, wire in enumerate(wires):
        assert await payloads(wire) == [key.encode() for key in keys if bucket_hash(key) >> 14 == number]


async def test_more_consumers_than_buckets_leave_some_without_messages(bed: Bed, sender: Wire) -> None:
    wires = [await sharer(bed, f"c{number}") for number in range(5)]
    await sender.publish(*stamped(*STARTS))
    assert [len(await got(wire)) for wire in wires] == [0, 1, 1, 1, 1]


async def test_a_moving_bucket_is_withheld_until_its_old_owner_has_acknowledged(bed: Bed, sender: Wire) -> None:
    old = await sharer(bed, "c1")
    await sender.publish(*stamped(*STARTS))
    owed = [message.position for message in await got(old)]
    new = await sharer(bed, "c2")
    again = await sender.publish(*stamped(0x8001, 0x1))
    assert [message.position for message in await got(old)] == [again[1]]
    assert await got(new) == []
    assert why(bed, again[0]) == Reason.DRAINING
    await old.ack(owed[2])
    assert [message.position for message in await got(new)] == [again[0]]


async def test_the_entries_of_a_consumer_that_leaves_go_to_the_others_in_order(bed: Bed, sender: Wire) -> None:
    stays, leaves = await sharer(bed, "c1"), await sharer(bed, "c2")
    await sender.publish(*stamped(*STARTS, *STARTS))
    await got(stays)
    owed = [message.position for message in await got(leaves)]
    await leaves.aclose()
    assert [message.position for message in await got(stays)] == owed


async def test_a_cumulative_acknowledgement_has_no_effect(bed: Bed, sender: Wire) -> None:
    consumer = await sharer(bed, "c1")
    positions = await sender.publish(*stamped(*STARTS))
    await got(consumer)
    last = message_id(positions[-1])
    await consumer.write(frame_of(Type.ACK, consumer_id=0, ack_type=Cumulative, message_id=[last]))
    await consumer.rest(0.001)
    assert len(next(iter(dispatcher(bed).consumers)).pending) == 4


START_AT_0 = (
    "Entry-bucket boundaries must be ascending, contiguous and start at 0: found [1,65535] where start 0 was expected"
)


@pytest.mark.parametrize(
    ("ranges", "text"),
    [
        ((), "Entry-bucket subscription must declare the segment's bucket boundaries"),
        (((1, 0xFFFF),), START_AT_0),
        (((0, 0xFFFE),), "Entry-bucket boundaries must tile the 16-bit ring: last range ends at 65534"),
        (((0, 0), (1, 0xFFFF)), "Entry-bucket 0 must span at least [0,1] to hold the canonical hash"),
    ],
)
async def test_boundaries_must_cover_all_hashes(bed: Bed, ranges: Any, text: str) -> None:
    error = await refusal(bed, **buckets(*ranges))
    assert (error.error, error.message) == (pb.ConsumerAssignError, text)


async def test_a_consumer_with_other_boundaries_is_refused(bed: Bed) -> None:
    await sharer(bed, "c1")
    error = await refusal(bed, **buckets((0, 0x7FFF), (0x8000, 0xFFFF)))
    assert error.error == pb.ConsumerAssignError
    assert error.message == (
        "Consumer declares different entry-bucket boundaries than the subscription: [[0, 32767], [32768, 65535]] != "
        "[[0, 16383], [16384, 32767], [32768, 49151], [49152, 65535]]"
    )


async def test_entry_buckets_and_plain_key_shared_do_not_mix(bed: Bed) -> None:
    sharing = await sharer(bed, "c1")
    plain_sticky = {**buckets(*QUARTERS), "entryBucketDispatch": False}
    error = await refusal(bed, **plain_sticky)
    assert (error.error, error.message) == (
        pb.ConsumerBusy,
        f"{OTHER_TYPE} dispatches by entry-bucket while the connecting consumer does not.",
    )
    await sharing.aclose()
    await joined(bed, "c3", keySharedMeta=plain_sticky)
    error = await refusal(bed, **buckets(*QUARTERS))
    assert (error.error, error.message) == (
        pb.ConsumerBusy,
        f"{OTHER_TYPE} does not dispatch by entry-bucket while the connecting consumer does.",
    )
