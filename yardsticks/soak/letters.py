"""Loads of dead letters and of delayed messages."""

from __future__ import annotations

import time

import anyio
import anyio.abc

from pulsarium.client import ConsumerDeadLetterPolicy, ConsumerType, InitialPosition, MessageId, MessageOptions

from .load import NUMBERS, Load, Site, burst, producing

SUBSCRIPTION = "soak"
REDELIVERIES = 2
GOOD, BAD = 0, 1  # bad messages are never acknowledged before they are dead letters
TICK_MS = 1000  # delayedDeliveryTickTimeMillis: a message may be delivered this much early


class DeadLetters(Load):
    """Messages of which some are redelivered a few times, and are then moved to the dead letter topic."""

    def __init__(self, site: Site) -> None:
        super().__init__(site, "dead-letters")
        self._topic, self._dead = self.topic(), self.topic(name="-dead")
        self._account = self.account(once=True)
        self._letters = self.account(" (dead)")

    async def run(self) -> None:
        admin = self.site.admin
        await admin.topics.create_non_partitioned_topic(self._dead)
        await admin.topics.create_subscription(self._dead, SUBSCRIPTION, MessageId.earliest)
        async with anyio.create_task_group() as tasks:
            for topic in (self._topic, self._topic, self._dead):
                await tasks.start(self._consume, topic)
            good = bad = 0
            async with producing(self.site, self._topic, batching_enabled=False) as producer:
                while not self.site.stopping:
                    more = self.chance.randrange(1, 30)
                    await burst(producer, self._account, [self._message(n, GOOD) for n in range(good, good + more)])
                    await burst(producer, self._letters, [self._message(bad, BAD)])
                    good, bad = good + more, bad + 1
                    await self.site.pause(self.chance.random() * 0.3)
            await self.settled(self._account, self._topic, SUBSCRIPTION)
            await self.settled(self._letters, self._dead, SUBSCRIPTION)
            self.is_over = True

    async def _consume(self, topic: str, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        policy = ConsumerDeadLetterPolicy(REDELIVERIES, self._dead) if topic == self._topic else None
        async with self.site.client.subscribe(
            topic,
            SUBSCRIPTION,
            consumer_type=ConsumerType.Shared,
            initial_position=InitialPosition.Earliest,
            negative_ack_redelivery_delay=0.1,
            dead_letter_policy=policy,
        ) as consumer:
            task_status.started()
            async for message in self.arrivals(consumer):
                number, kind, _ = NUMBERS.unpack_from(message.data())
                if topic == self._dead:
                    self._letters.saw(number)
                elif kind == BAD:
                    consumer.negative_acknowledge(message)
                    continue
                else:
                    self._account.saw(number)
                await consumer.acknowledge(message)

    def _message(self, number: int, kind: int) -> tuple[int, int, bytes, MessageOptions]:
        return number, 0, self.content(number, kind), {}


class Delayed(Load):
    """Delayed messages, all of which must be delivered, and none before its time."""

    def __init__(self, site: Site) -> None:
        super().__init__(site, "delayed")
        self._topic = self.topic()
        self._account = self.account(once=True)

    async def run(self) -> None:
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._consume)
            number = 0
            async with producing(self.site, self._topic, batching_enabled=False) as producer:
                while not self.site.stopping:
                    messages = []
                    for each in range(number, number + self.chance.randrange(1, 30)):
                        due = int(time.time() * 1000) + self.chance.randrange(5000)
                        messages.append((each, 0, self.content(each, due=due), MessageOptions(deliver_at=due)))
                    number += len(messages)
                    await burst(producer, self._account, messages)
                    await self.site.pause(self.chance.random() * 0.3)
            await self.settled(self._account, self._topic, SUBSCRIPTION)
            self.is_over = True

    async def _consume(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with self.site.client.subscribe(
            self._topic, SUBSCRIPTION, consumer_type=ConsumerType.Shared, initial_position=InitialPosition.Earliest
        ) as consumer:
            task_status.started()
            async for message in self.arrivals(consumer):
                number, _, due = NUMBERS.unpack_from(message.data())
                early = due - time.time() * 1000
                if early > TICK_MS:
                    self._account.violate(f"{number} came {early:.0f} ms early")
                self._account.saw(number)
                await consumer.acknowledge(message)
