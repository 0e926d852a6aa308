"""Messages that are read, answered and acknowledged in transactions, while connections break: each is answered once."""

from __future__ import annotations

import random

import anyio
import pytest
from trio.testing import MockClock

from pulsarium.broker.config import Config
from pulsarium.client.client import Client
from pulsarium.client.consumer.consumer import Consumer
from pulsarium.client.consumer.options import ConsumerType, InitialPosition
from pulsarium.client.errors import PulsarError
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.producer import Producer
from tests.client.in_process import InProcess, in_process

MESSAGES = 12
ROUNDS = 300
#: What a connection loses is sent again, perhaps in the same transaction: deduplication sees to that.
CONFIG = Config(transactionCoordinatorEnabled=True, brokerDeduplicationEnabled=True)


class Change(Exception):
    """Of mind."""


class Loop:
    """Takes some messages, answers each, and acknowledges them, in one transaction."""

    def __init__(
        self, inside: InProcess, client: Client, consumer: Consumer[bytes], producer: Producer[bytes], seed: int
    ) -> None:
        self.inside = inside
        self.client = client
        self.consumer = consumer
        self.producer = producer
        self.chance = random.Random(seed)
        self.failed = 0

    async def run(self) -> None:
        for _ in range(ROUNDS):
            messages = await self._some()
            if not messages:
                return
            try:
                await self._answer(messages)
            except (PulsarError, Change):
                self.failed += 1
                for message in messages:
                    self.consumer.negative_acknowledge(message)
        raise AssertionError("there is no end to it")

    async def _some(self) -> list[Message[bytes]]:
        messages = []
        for number in range(self.chance.randrange(1, 4)):
            with anyio.move_on_after(60 if number == 0 else 0.1):
                messages.append(await self.consumer.receive())
        return messages

    async def _answer(self, messages: list[Message[bytes]]) -> None:
        async with self.client.transaction(timeout=20) as txn:
            for message in messages:
                await self._perhaps_cut()
                await self.producer.submit(message.data(), txn=txn)
                await self._perhaps_cut()
                await self.consumer.acknowledge(message, txn=txn)
            if self.chance.random() < 0.1:
                raise Change

    async def _perhaps_cut(self) -> None:
        if self.chance.random() < 0.1:
            await self.inside.cut()


@pytest.mark.req("B-29")
@pytest.mark.parametrize("seed", range(12))
async def test_each_is_answered_once(autojump_clock: MockClock, seed: int) -> None:
    kind = list(ConsumerType)[seed % 4]
    async with in_process(CONFIG) as inside, inside.client(operation_timeout=5) as client:
        inside.partitioned("in", 2)
        async with (
            client.create_producer("in", batching_max_messages=3) as source,
            client.create_producer("out") as producer,
            client.subscribe(
                "in",
                "s",
                consumer_type=kind,
                initial_position=InitialPosition.Earliest,
                negative_ack_redelivery_delay=1,
            ) as consumer,
        ):
            for number in range(MESSAGES):
                await source.submit(b"%d" % number)
            await source.flush()
            loop = Loop(inside, client, consumer, producer, seed)
            await loop.run()
            await anyio.sleep(30)  # what nobody ended has timed out
            async with client.create_reader("out", MessageId.earliest) as reader:
                found = []
                while await reader.has_message_available():
                    found.append(int((await reader.read_next()).data()))
            assert sorted(found) == list(range(MESSAGES)), loop.failed
