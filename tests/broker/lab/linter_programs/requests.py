"""Programs that break rules about requests, and about the names in them."""

from __future__ import annotations

from pulsarium.proto.generated.PulsarApi_pb2 import Schema
from tests.broker.web.admin.rest import TOPICS, rest_of
from tests.broker.wire import TOPIC, Type, frame_of

from .program import Client, breaks


@breaks("request-id-reused")
async def _(client: Client, mended: bool) -> None:
    wire = await client.connected()
    ids = (1, 2) if mended else (1, 1)
    await wire.write(b"".join(frame_of(Type.LOOKUP, topic=TOPIC, request_id=each) for each in ids))


@breaks("request-id-reserved")
async def _(client: Client, mended: bool) -> None:
    wire = await client.connected()
    await wire.send(Type.LOOKUP, topic=TOPIC, request_id=1 if mended else 2**64 - 1)


@breaks("topic-name-invalid")
async def _(client: Client, mended: bool) -> None:
    wire = await client.connected()
    await wire.request(Type.LOOKUP, topic=TOPIC if mended else "persistent://nowhere")


@breaks("partitions-ignored")
async def _(client: Client, mended: bool) -> None:
    rest = rest_of(client.bed)
    assert (await rest.call("PUT", f"{TOPICS}/parted/partitions", 3)).status == 204
    wire = await client.connected()
    topic = "persistent://public/default/parted"
    assert (await wire.ask(Type.PARTITIONED_METADATA, topic=topic)).partitions == 3
    await wire.request(Type.PRODUCER, topic=f"{topic}-partition-0" if mended else topic, producer_id=0)


@breaks("schema-client-side")
async def _(client: Client, mended: bool) -> None:
    wire = await client.connected()
    schema = {"name": "s", "schema_data": b"", "type": Schema.String if mended else Schema.AutoConsume}
    await wire.request(Type.PRODUCER, topic=TOPIC, producer_id=0, schema=schema)


@breaks("schema-version-size")
async def _(client: Client, mended: bool) -> None:
    wire = await client.connected()
    await wire.send(Type.GET_SCHEMA, topic=TOPIC, request_id=1, schema_version=b"\0" * (8 if mended else 2))
