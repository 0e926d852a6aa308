"""Streams on each subscription type: one producer at a time, and a few consumers, which stay or come and go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.abc

from pulsarium.client import BatchingType, CompressionType, Consumer, ConsumerType, InitialPosition, MessageOptions

from .account import Account
from .load import NUMBERS, Load, Site, burst, producing

SUBSCRIPTION = "soak"
ONCE = "soak/once"  # a namespace with deduplication
BATCHED: dict[str, Any] = {"batching_max_messages": 50}
UNBATCHED: dict[str, Any] = {"batching_enabled": False}


@dataclass(frozen=True)
class Kind:
    """A kind of stream: how its messages are published and consumed, and which guarantees they must keep."""

    name: str
    type: ConsumerType
    options: Mapping[str, Any] = field(default_factory=lambda: BATCHED)
    consumers: int = 1
    lanes: int = 1
    partitions: int = 0
    churn: bool = False  # consumers and producers come and go
    unload: bool = False
    nacks: float = 0.0
    large: int = 0  # bytes of a message; 0: some hundred
    grow: int = 0  # number of partitions to which the topic grows
    ordered: bool = False
    once: bool = False


KINDS = (
    Kind("plain", ConsumerType.Exclusive, UNBATCHED, ordered=True, once=True),
    Kind("shared-once", ConsumerType.Shared, UNBATCHED, consumers=3, once=True),
    Kind("compressed", ConsumerType.Shared, {**BATCHED, "compression_type": CompressionType.ZLib}, 2, churn=True),
    Kind("lz4", ConsumerType.Exclusive, {**BATCHED, "compression_type": CompressionType.LZ4}, ordered=True, once=True),
    Kind("nacked", ConsumerType.Shared, UNBATCHED, consumers=3, churn=True, nacks=0.02),
    Kind("nacked-exclusive", ConsumerType.Exclusive, nacks=0.001, ordered=True),
    Kind(
        "keyed",
        ConsumerType.KeyShared,
        {**BATCHED, "batching_type": BatchingType.KeyBased},
        consumers=4,
        lanes=20,
        churn=True,
        ordered=True,
    ),
    Kind("failover", ConsumerType.Failover, consumers=3, churn=True, unload=True, ordered=True),
    Kind("chunked", ConsumerType.Exclusive, {**UNBATCHED, "chunking_enabled": True}, large=60_000, ordered=True),
    Kind("partitioned", ConsumerType.Failover, consumers=2, lanes=10, partitions=3, churn=True, ordered=True),
    Kind("growing", ConsumerType.Shared, consumers=2, partitions=1, grow=6),
    Kind("unloaded", ConsumerType.Shared, UNBATCHED, consumers=2, unload=True),
)
CHUNK_BYTES = 16_000


class Stream(Load):
    """A stream of one kind."""

    def __init__(self, site: Site, kind: Kind) -> None:
        super().__init__(site, kind.name)
        self._kind = kind
        # All producers have the same name and continue its sequence ids, so that the broker drops duplicates.
        self._name = f"{site.prefix}-{kind.name}"
        self._topic = self.topic(ONCE if kind.unload or kind.ordered else "soak/plain")
        self._account = self.account(ordered=kind.ordered, once=kind.once)
        self._next = 0

    async def run(self) -> None:
        kind, admin = self._kind, self.site.admin
        if kind.partitions:
            self.partitioned.add(self._topic)
            await admin.topics.create_partitioned_topic(self._topic, kind.partitions)
        async with anyio.create_task_group() as tasks:
            for number in range(kind.consumers):
                await tasks.start(self._consume, number)
            if kind.unload:
                tasks.start_soon(self._unload)
            if kind.grow:
                tasks.start_soon(self._grow)
            await self._publish()
            await self.settled(self._account, self._topic, SUBSCRIPTION)
            if kind.once:
                await self._compare()
            self.is_over = True

    async def _publish(self) -> None:
        kind, chance = self._kind, self.chance
        options = {**kind.options, "producer_name": self._name, "auto_update_partitions_interval": 1.0}
        if kind.large:
            options["chunk_max_message_size"] = CHUNK_BYTES
        while not self.site.stopping:
            async with producing(self.site, self._topic, **options) as producer:
                while not self.site.stopping:
                    count = 1 if kind.large else chance.randrange(1, 60)
                    await burst(producer, self._account, [self._message() for _ in range(count)])
                    await self.site.pause(chance.random() * 0.3)
                    if kind.churn and chance.random() < 0.05:
                        break

    def _message(self) -> tuple[int, int, bytes, MessageOptions]:
        lane, number = self._next % self._kind.lanes, self._next // self._kind.lanes
        self._next += 1
        content = self.content(number, lane, size=self._kind.large)
        return number, lane, content, {"partition_key": f"key-{lane}"} if self._kind.lanes > 1 else {}

    async def _consume(self, number: int, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        told = False
        while not self.is_over:
            subscribing = self.site.client.subscribe(
                self._topic,
                SUBSCRIPTION,
                consumer_type=self._kind.type,
                consumer_name=f"{self._name}-{number}",
                initial_position=InitialPosition.Earliest,
                negative_ack_redelivery_delay=0.1,
                receiver_queue_size=200,
                auto_update_partitions_interval=1.0,
            )
            async with subscribing as consumer:
                if not told:
                    told = True
                    task_status.started()
                await self._receive(consumer)
            if not self.is_over:
                await self.site.pause(self.chance.random())

    async def _receive(self, consumer: Consumer[bytes]) -> None:
        """Receive and acknowledge messages until the load is over or this consumer leaves."""
        kind, chance = self._kind, self.chance
        async for message in self.arrivals(consumer):
            number, lane, _ = NUMBERS.unpack_from(message.data())
            self._account.saw(number, lane)
            if not self.site.stopping and chance.random() < kind.nacks:
                consumer.negative_acknowledge(message)
            else:
                await consumer.acknowledge(message)
            # consumers stay once the site stops, because they must receive the rest of the backlog
            if kind.churn and not self.site.stopping and chance.random() < 0.002:
                return

    async def _unload(self) -> None:
        while not self.site.stopping:
            await self.site.pause(self.chance.uniform(2, 8))
            await self.site.admin.topics.unload(self._topic)

    async def _grow(self) -> None:
        for partitions in range(self._kind.partitions + 1, self._kind.grow + 1):
            await self.site.pause(self.chance.uniform(2, 10))
            await self.site.admin.topics.update_partitioned_topic(self._topic, partitions)

    async def _compare(self) -> None:
        """Compare the account with the broker's counters, which are complete because the topic was never unloaded."""
        stats = await self.site.admin.topics.get_stats(self._topic)
        account: Account = self._account
        came, went = stats["msgInCounter"], stats["subscriptions"][SUBSCRIPTION]["msgOutCounter"]
        if not came == went == account.confirmed == account.seen:
            account.violate(f"{came} in and {went} out by stats, {account.confirmed} sent and {account.seen} seen")


def streams(site: Site) -> list[Load]:
    return [Stream(site, kind) for kind in KINDS]
