"""Our own client over sockets, under both event loops, with the official client as a reader."""

from __future__ import annotations

import pulsar
import pytest

from pulsarium.client import CompressionType, InitialPosition, connect
from pulsarium.client.errors import ConnectError
from tests.client.both import on_both

from .broker_process import Address
from .conftest import Launch

NAME = "persistent://public/default/t"
CONTENTS = [b"%d " % n * 300 for n in range(20)]


@pytest.mark.parametrize("batching", [False, True], ids=["plain", "batched"])
@pytest.mark.parametrize("compression", CompressionType)
@on_both
async def test_the_official_client_reads_what_we_send(
    broker: Address, official: pulsar.Client, topic: str, compression: CompressionType, batching: bool
) -> None:
    async with connect(broker.service_url) as client:
        options = {"compression_type": compression, "batching_enabled": batching}
        async with client.create_producer(topic, **options) as producer:  # type: ignore[arg-type]
            receipts = [
                producer.send_nowait(content, partition_key="k", properties={"a": "ä"}, event_timestamp=5)
                for content in CONTENTS
            ]
            ids = [await receipt.wait() for receipt in receipts]
    consumer = official.subscribe(topic, "s", initial_position=pulsar.InitialPosition.Earliest)
    messages = [consumer.receive(30_000) for _ in CONTENTS]
    assert [message.data() for message in messages] == CONTENTS
    assert {(m.partition_key(), m.properties()["a"], m.event_timestamp()) for m in messages} == {("k", "ä", 5)}
    assert {message.producer_name() for message in messages} == {producer.producer_name()}
    found = [message.message_id() for message in messages]
    assert [(one.ledger_id(), one.entry_id(), one.batch_index()) for one in found] == [
        (one.ledger_id, one.entry_id, one.batch_index) for one in ids
    ]


@on_both
async def test_a_broker_that_is_killed_and_comes_back(launch: Launch, data: str) -> None:
    """Messages with a receipt survive. The client sends the others again, in order."""
    process = launch("--data", data)
    contents = [b"%d" % n for n in range(300)]
    async with connect(process.address.service_url) as client:
        async with client.create_producer(NAME, batching_max_messages=10) as producer:
            receipts = [producer.send_nowait(content) for content in contents[:100]]
            await producer.flush()
            receipts += [producer.send_nowait(content) for content in contents[100:200]]
            process.kill()
            receipts += [producer.send_nowait(content) for content in contents[200:]]
            launch("--data", data, port=process.address.port, http_port=process.address.http_port)
            ids = [await receipt.wait() for receipt in receipts]
        assert ids == sorted(ids)
        first: dict[bytes, None] = {}
        async with client.subscribe(NAME, "s", initial_position=InitialPosition.Earliest) as consumer:
            while len(first) < len(contents):
                first.setdefault((await consumer.receive()).data())
        assert list(first) == contents


@on_both
async def test_our_client_says_that_nobody_listens(launch: Launch) -> None:
    process = launch()
    process.kill()
    address = process.address
    with pytest.raises(ConnectError, match=str(address.port)):
        async with connect(address.service_url, operation_timeout=0.2) as client, client.create_producer(NAME):
            pass
