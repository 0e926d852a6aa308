"""Random histories of one producer on a broker that deduplicates: every message once, in order, whatever happens."""

from __future__ import annotations

from typing import Any

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarium.broker.config import Config
from pulsarium.client import BatchingType, Producer
from pulsarium.client.producer.receipt import Receipt
from pulsarium.proto import batch, entry
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import TOPIC, Wire
from tests.client.both import run_on
from tests.client.in_process import InProcess, in_process

ACTIONS = st.one_of(
    st.integers(1, 20),  # so many messages
    st.sampled_from(["unload", "cut", "wait", "moment", "flush", "delayed"]),
)


async def act(action: int | str, inside: InProcess) -> None:
    if action == "unload":
        topics = inside.bed.broker.topics
        if topics.exists(TopicName.parse(TOPIC)):
            topics.unload(TopicName.parse(TOPIC))
            inside.bed.broker.turn.finish()
    elif action == "cut":
        await inside.cut()
    elif action == "wait":
        await anyio.sleep(0.3)
    elif action == "moment":
        await anyio.lowlevel.checkpoint()


KINDS: dict[str, dict[str, Any]] = {
    "plain": {"batching_enabled": False},
    "batched": {"batching_max_messages": 7},
    "by key": {"batching_max_messages": 7, "batching_type": BatchingType.KeyBased},
    "chunked": {"batching_enabled": False, "chunking_enabled": True, "chunk_max_message_size": 3},
}
KEYS = 3


def content(number: int) -> bytes:
    """One to three chunks."""
    return b"%d" % number + b" " * (number % 4 * 2)


async def history(actions: list[int | str], kind: str) -> None:
    async with in_process(Config(brokerDeduplicationEnabled=True)) as inside, inside.client() as client:
        receipts: list[Receipt] = []
        client._core.memory.limit = 30

        async def send(producer: Producer, **options: Any) -> None:
            number = len(receipts)
            receipts.append(await producer.submit(content(number), partition_key=str(number % KEYS), **options))

        async with client.create_producer("t", **KINDS[kind]) as producer:
            for action in actions:
                if isinstance(action, int):
                    for _ in range(action):
                        await send(producer)
                elif action == "delayed":
                    await send(producer, deliver_after=0.5)
                elif action == "flush":
                    await producer.flush()
                    assert all(receipt.is_done() for receipt in receipts)
                else:
                    await act(action, inside)
        for number, receipt in enumerate(receipts):
            chunks = -(-len(content(number)) // 3) if kind == "chunked" else 1
            where = await receipt.wait()
            assert where.ledger_id < 0 or (where.first_chunk is not None) == (chunks > 1)
        assert producer.last_sequence_id() == len(receipts) - 1
        assert client._core.memory.used == 0
        found = await everything(inside)
        sent = [content(n) for n in range(len(receipts))]
        if kind == "by key":
            assert sorted(found) == sorted(sent)
            for key in range(KEYS):
                assert [one for one in found if int(one) % KEYS == key] == sent[key::KEYS]
        else:
            assert found == sent


async def everything(inside: InProcess) -> list[bytes]:
    """What a consumer gets, with the chunks that become a message put together."""
    wire = await inside.bed.connect()
    await wire.subscribe(initialPosition=pb.CommandSubscribe.Earliest)
    await wire.flow(10_000)
    found: list[bytes] = []
    begun: dict[str, list[bytes]] = {}
    while (received := await next_message(wire)) is not None:
        metadata, payload = received
        if metadata.num_chunks_from_msg > 1:
            chunks = begun.setdefault(metadata.uuid, [])
            if metadata.chunk_id == 0:
                chunks.clear()
            if metadata.chunk_id == len(chunks):  # else it was stored before
                chunks.append(payload)
            if metadata.chunk_id == metadata.num_chunks_from_msg - 1:
                found.append(b"".join(begun.pop(metadata.uuid)))
        elif metadata.HasField("num_messages_in_batch"):
            found += [single for _, single in batch.unpack(payload, metadata.num_messages_in_batch)]
        else:
            found.append(payload)
    return found


async def next_message(wire: Wire) -> tuple[pb.MessageMetadata, bytes] | None:
    with anyio.move_on_after(1):
        command, trailing = (await wire.next())[:2]
        assert command.type == pb.BaseCommand.MESSAGE
        return entry.parse_metadata(trailing), entry.payload_of(trailing)
    return None


@given(st.lists(ACTIONS, max_size=15), st.sampled_from(sorted(KINDS)))
@settings(max_examples=100)
def test_every_message_once_and_in_order(actions: list[int | str], kind: str) -> None:
    run_on("trio", history, actions, kind, jump=True)
