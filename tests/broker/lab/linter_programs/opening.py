"""Programs that break rules about PRODUCER and SUBSCRIBE, also when they are repeated."""

from __future__ import annotations

from typing import Any

from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import TOPIC, Exclusive, Failover, KeyShared, Shared, Type, message_id

from .program import Client, breaks, given, message


@breaks("producer-id-in-use")
async def _(client: Client, mended: bool) -> None:
    wire = await client.producing()
    await wire.producer(producer_id=1 if mended else 0, producer_name="q")


@breaks("consumer-id-in-use")
async def _(client: Client, mended: bool) -> None:
    wire, _ = await client.consuming()
    await wire.subscribe(type=Shared, consumer_id=1 if mended else 0)


async def _again(client: Client, first: dict[str, Any], then: dict[str, Any]) -> None:
    wire = await client.producing(**first)
    await client.unload(wire, Type.CLOSE_PRODUCER)
    await wire.producer(**{"producer_name": "p", "epoch": 1, **first, **then})


@breaks("producer-renamed")
async def _(client: Client, mended: bool) -> None:
    await _again(client, {}, {"producer_name": "p" if mended else "another"})


@breaks("producer-epoch-stale")
async def _(client: Client, mended: bool) -> None:
    await _again(client, {"epoch": 3}, {"epoch": 4 if mended else 3})


@breaks("topic-epoch-stale")
async def _(client: Client, mended: bool) -> None:
    await _again(client, {"producer_access_mode": pb.Exclusive}, given(mended, topic_epoch=0))


@breaks("subscription-name-empty")
async def _(client: Client, mended: bool) -> None:
    wire = await client.connected()
    await wire.request(Type.SUBSCRIBE, topic=TOPIC, subscription="s" if mended else "", subType=Shared, consumer_id=0)


@breaks("consumer-name-missing")
async def _(client: Client, mended: bool) -> None:
    wire = await client.connected()
    await wire.subscribe(type=Failover, **given(mended, consumer_name="c"))


@breaks("sticky-ranges")
async def _(client: Client, mended: bool) -> None:
    wire = await client.connected()
    ranges = [{"start": 0, "end": 99}, {"start": 100 if mended else 99, "end": 200}]
    meta = {"keySharedMode": pb.STICKY, "hashRanges": ranges}
    fields: dict[str, Any] = {"topic": TOPIC, "subscription": "s", "consumer_id": 0, "consumer_name": "c"}
    await wire.request(Type.SUBSCRIBE, subType=KeyShared, keySharedMeta=meta, **fields)


@breaks("read-compacted-elsewhere")
async def _(client: Client, mended: bool) -> None:
    wire = await client.connected()
    fields: dict[str, Any] = {"topic": TOPIC, "subscription": "s", "consumer_id": 0, "read_compacted": True}
    await wire.request(Type.SUBSCRIBE, subType=Exclusive if mended else Shared, **fields)


@breaks("start-on-durable")
async def _(client: Client, mended: bool) -> None:
    wire = await client.producing()
    (there,) = await wire.publish(message())
    await wire.subscribe(durable=not mended, start_message_id=message_id(there))
