"""Random histories of one producer on a broker that deduplicates: every message once, in order, whatever happens."""

from __future__ import annotations

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarium.broker.config import Config
from pulsarium.client.client import Client
from pulsarium.client.consumer.options import InitialPosition
from pulsarium.client.producer.batching import Receipt
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import TOPIC
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


async def history(actions: list[int | str], batching: bool) -> None:
    async with in_process(Config(brokerDeduplicationEnabled=True)) as inside, inside.client() as client:
        receipts: list[Receipt] = []
        async with client.create_producer("t", batching_enabled=batching, batching_max_messages=7) as producer:
            for action in actions:
                if isinstance(action, int):
                    receipts += [producer.send_nowait(b"%d" % (len(receipts) + n)) for n in range(action)]
                elif action == "delayed":
                    receipts.append(producer.send_nowait(b"%d" % len(receipts), deliver_after=0.5))
                elif action == "flush":
                    await producer.flush()
                    assert all(receipt.is_done for receipt in receipts)
                else:
                    await act(action, inside)
        for receipt in receipts:
            await receipt.wait()
        assert producer.last_sequence_id == len(receipts) - 1
        assert await everything(client) == [b"%d" % n for n in range(len(receipts))]


async def everything(client: Client) -> list[bytes]:
    found: list[bytes] = []
    async with client.subscribe("t", "s", initial_position=InitialPosition.Earliest) as consumer:
        with anyio.move_on_after(1):
            while True:
                found.append((await consumer.receive()).data())
    return found


@given(st.lists(ACTIONS, max_size=15), st.booleans())
@settings(max_examples=60)
def test_every_message_once_and_in_order(actions: list[int | str], batching: bool) -> None:
    run_on("trio", history, actions, batching, jump=True)
