"""Loads of topics, subscriptions and clients that come and go."""

from __future__ import annotations

import anyio

from pulsarium.client import ConsumerType, InitialPosition, MessageId, connect
from pulsarium.client.admin.errors import NotFound

from .load import SETTLE_SECONDS, Load, Site, burst, politely, producing, taken

EXPIRING = "soak/expiring"  # a namespace with a short message TTL
SUBSCRIPTION = "soak"


class Topics(Load):
    """Topics with and without partitions that are created, used and deleted, and leave nothing behind."""

    def __init__(self, site: Site) -> None:
        super().__init__(site, "topics")
        self._account = self.account()

    async def run(self) -> None:
        topics, made = self.site.admin.topics, 0
        while not self.site.stopping:
            made += 1
            topic = f"persistent://soak/plain/{self.site.prefix}-guest-{made}"
            partitions = self.chance.choice([0, 0, 2])
            if partitions:
                await topics.create_partitioned_topic(topic, partitions)
            else:
                await topics.create_non_partitioned_topic(topic)
            await self._use(topic, made)
            if partitions:
                await topics.delete_partitioned_topic(topic, force=True)
            else:
                await topics.delete(topic, force=True)
            if await politely(topics.get_stats(topic), NotFound):
                self._account.violate(f"{topic} was deleted, and is there")
            await self.site.pause(self.chance.random() * 0.5)

    async def _use(self, topic: str, made: int) -> None:
        """Publish and receive messages, and acknowledge about half of them. The others are deleted with the topic."""
        account = self._account
        async with (
            self.site.client.subscribe(topic, SUBSCRIPTION, consumer_type=ConsumerType.Shared) as consumer,
            producing(self.site, topic) as producer,
        ):
            count = self.chance.randrange(20)
            await burst(producer, account, [(each, made, self.content(each, made), {}) for each in range(count)])
            for number in range(count):
                message = await taken(consumer, SETTLE_SECONDS)
                if message is None:
                    account.violate(f"{topic}: {number} of {count} came")
                    break
                account.saw(number, made)
                if self.chance.random() < 0.5:
                    await consumer.acknowledge(message)
        account.forget(made)


class Expiring(Load):
    """A subscription without consumers, whose backlog expires by TTL and on request."""

    def __init__(self, site: Site) -> None:
        super().__init__(site, "expiring")
        self._topic = self.topic(EXPIRING)
        self._account = self.account()

    async def run(self) -> None:
        topics = self.site.admin.topics
        await topics.create_non_partitioned_topic(self._topic)
        await topics.create_subscription(self._topic, SUBSCRIPTION, MessageId.earliest)
        number, asked = 0, anyio.current_time()
        async with producing(self.site, self._topic) as producer:
            while not self.site.stopping:
                some = range(number, number + self.chance.randrange(1, 60))
                number = some.stop
                await burst(producer, self._account, [(each, 0, self.content(each), {}) for each in some])
                for each in some:  # no consumer is to receive them, so they count as seen
                    self._account.saw(each)
                await self.site.pause(self.chance.random() * 0.3)
                if anyio.current_time() - asked > 10:
                    asked = anyio.current_time()
                    await topics.expire_messages(self._topic, SUBSCRIPTION, 5)
        await topics.skip_all_messages(self._topic, SUBSCRIPTION)
        await self.settled(self._account, self._topic, SUBSCRIPTION)


class Clients(Load):
    """Connections that come and go, some in the middle of their work, with a producer, a reader and a subscription."""

    def __init__(self, site: Site) -> None:
        super().__init__(site, "clients")
        self._topic = self.topic()
        self._account = self.account()
        self._number = 0

    async def run(self) -> None:
        while not self.site.stopping:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._visit)
                await self.site.pause(self.chance.random() * 2)
                if self.chance.random() < 0.3:
                    tasks.cancel_scope.cancel()  # the client leaves in the middle

    async def _visit(self) -> None:
        async with connect(self.site.service_url) as client:
            for _ in range(self.chance.randrange(1, 4)):
                async with (
                    client.create_producer(self._topic) as producer,
                    client.create_reader(self._topic, start_message_id=MessageId.earliest) as reader,
                    client.subscribe(
                        self._topic,
                        f"visitor-{self.chance.randrange(3)}",
                        consumer_type=ConsumerType.Shared,
                        initial_position=InitialPosition.Latest,
                    ) as consumer,
                ):
                    self._number += 1
                    await producer.send(self.content(self._number))
                    await reader.read_next()
                    message = await taken(consumer)
                    if message is not None:
                        await consumer.acknowledge(message)
                    if self.chance.random() < 0.5:
                        await consumer.unsubscribe(force=True)
