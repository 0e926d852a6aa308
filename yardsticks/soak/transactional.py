"""A load of transactions: consumers see committed messages once, and aborted messages never."""

from __future__ import annotations

import anyio
import anyio.abc

from pulsarium.client import Consumer, ConsumerType, InitialPosition, Message, Producer, PulsarError

from .load import NUMBERS, Load, Site, burst, producing, taken

SUBSCRIPTION = "soak"
ABORTED = 0.3
MESSAGES = 5


class Transactions(Load):
    """Transactions that move numbered messages: they acknowledge on one topic, and publish on another one."""

    def __init__(self, site: Site) -> None:
        super().__init__(site, "transactions")
        self._here, self._there = self.topic(name="-here"), self.topic(name="-there")
        self._account = self.account(once=True)

    async def run(self) -> None:
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._move)
            await tasks.start(self._check)
            number = 0
            async with producing(self.site, self._here, batching_enabled=False) as producer:
                while not self.site.stopping:
                    some = range(number, number + self.chance.randrange(1, 2 * MESSAGES))
                    number = some.stop
                    # a message that is confirmed on the first topic must be seen on the second one, once
                    await burst(producer, self._account, [(each, 0, self.content(each), {}) for each in some])
                    await self.site.pause(self.chance.random() * 0.2)
            await self.settled(self._account, self._there, SUBSCRIPTION)
            await self.settled(self._account, self._here, SUBSCRIPTION)
            self.is_over = True

    async def _move(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with (
            self.site.client.subscribe(
                self._here, SUBSCRIPTION, consumer_type=ConsumerType.Shared, initial_position=InitialPosition.Earliest
            ) as consumer,
            producing(self.site, self._there) as producer,
        ):
            task_status.started()
            while not self.is_over:
                messages: list[Message[bytes]] = []
                while len(messages) < MESSAGES and (message := await taken(consumer)) is not None:
                    messages.append(message)
                if messages:
                    await self._in_transaction(consumer, producer, messages)

    async def _in_transaction(
        self, consumer: Consumer[bytes], producer: Producer[bytes], messages: list[Message[bytes]]
    ) -> None:
        txn = await self.site.client.begin_transaction()
        try:
            for message in messages:
                await producer.submit(message.data(), txn=txn)
                await consumer.acknowledge(message, txn=txn)
            if self.chance.random() < ABORTED:
                await txn.abort()
            else:
                await txn.commit()
        except PulsarError as error:
            self._account.violate(f"a transaction failed: {error!r}")

    async def _check(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with self.site.client.subscribe(
            self._there, SUBSCRIPTION, initial_position=InitialPosition.Earliest
        ) as consumer:
            task_status.started()
            async for message in self.arrivals(consumer):
                self._account.saw(NUMBERS.unpack_from(message.data())[0])
                await consumer.acknowledge(message)
