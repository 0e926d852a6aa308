"""Keep a durable subscription for a stream, so that the broker retains unprocessed messages."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import NamedTuple

import anyio

from pulsarium.client import Client, Consumer, InitialPosition, MessageId, PulsarError
from pulsarium.client.bulk import last_message, standing_consumer
from pulsarium.client.errors import ConsumerBusy
from pulsarium.pipeline.source.ledgers import Ledgers
from pulsarium.pipeline.source.places import FIRST, ReadPosition, end_of
from pulsarium.pipeline.source.topics import each

_logger = logging.getLogger(__name__)

HELD = 1
"""Processed entries that stay unacknowledged, so that their ledger is not deleted while reading continues in it.

Then a deleted ledger means lost data.
"""

TAKEOVER = 15.0
"""Seconds to wait for the consumer of the query's previous run, which the broker may still have."""


class SubscriptionInUse(RuntimeError):
    """A subscription of a query that another query, or another program, uses."""


class SubscriptionLook(NamedTuple):
    """The end of a topic, and the position of a subscription."""

    end: ReadPosition
    """After the last message, or FIRST without messages."""
    first: ReadPosition | None
    """The first position that is not acknowledged, or None when the broker does not tell it."""

    def has_passed(self, start: ReadPosition) -> bool:
        """Return whether the subscription does not keep everything from `start` on."""
        if self.first is None:
            return False
        if start == FIRST or (start.entry == start.batch_index == self.first.entry == 0):
            return self.first.entry > 0  # the broker may have replaced an empty ledger
        return self.first > start


class SourceSubscription:
    """A subscription with one consumer on each topic, which receives no messages.

    Its position follows what Spark has recorded, and is never ahead. No other consumer can join it.
    """

    def __init__(self, client: Client, name: str) -> None:
        self.name = name
        self._client = client
        self._members: dict[str, Consumer[bytes]] = {}
        self._moved: dict[str, ReadPosition] = {}

    @property
    def has_begun(self) -> bool:
        """Return whether a seek has moved it to the start of the query."""
        return bool(self._moved)

    async def look(self, topic: str) -> SubscriptionLook:
        last, done = await last_message(await self._member(topic))
        return SubscriptionLook(end_of(last) or FIRST, None if done is None else ReadPosition(*done.entry).next_entry)

    async def seek(self, starts: Mapping[str, ReadPosition]) -> None:
        """Move to the start of a stream, forward or backward."""

        async def one(topic: str) -> None:
            consumer, start = await self._member(topic), starts[topic]
            held = ReadPosition(start.ledger, max(start.entry - HELD, 0))
            await consumer.seek(MessageId.earliest if start == FIRST else held.message_id())
            self._moved[topic] = start

        await each(starts, one)

    async def move_up(self, starts: Mapping[str, ReadPosition], ledgers: Mapping[str, Ledgers]) -> None:
        """Acknowledge everything before these positions. A failed topic is tried again with the next batch."""

        async def one(topic: str) -> None:
            start, before = starts[topic], self._moved.get(topic, FIRST)
            done = (ledgers.get(topic) or Ledgers([])).before(start, held=HELD)
            if done is None and before.entry > 0 and before.ledger < start.ledger:
                done = ReadPosition(before.ledger, before.entry - 1)  # the entry before `start` is in the newer ledger
            if start == before or done is None:
                return
            try:
                consumer = await self._member(topic)
                await consumer.acknowledge_cumulative(MessageId(done.ledger, done.entry))
                self._moved[topic] = start
            except PulsarError as error:
                _logger.warning(
                    "%s: subscription %s was not moved, and the next batch tries again: %s", topic, self.name, error
                )

        await each(starts, one)

    async def forget(self, topic: str) -> None:
        """Close the consumer of a deleted topic."""
        consumer = self._members.pop(topic, None)
        if consumer is not None:
            await consumer.aclose()

    async def join(self, topic: str, initial_position: InitialPosition) -> None:
        """Subscribe to a topic. A new subscription begins at `initial_position`."""
        await self._member(topic, initial_position)

    async def delete(self) -> None:
        """Delete the subscription from all topics that it has joined."""

        async def one(topic: str) -> None:
            await self._members.pop(topic).unsubscribe()

        await each(list(self._members), one)

    async def aclose(self) -> None:
        await each(list(self._members), self.forget)

    async def _member(self, topic: str, initial: InitialPosition = InitialPosition.Earliest) -> Consumer[bytes]:
        """Return the consumer of a topic.

        Raise `TopicNotFound` when the topic was deleted, and `SubscriptionInUse`.
        """
        if topic not in self._members:
            try:
                self._members[topic] = await self._joined(topic, initial)
            except ConsumerBusy as error:
                raise SubscriptionInUse(
                    f"{topic}: another query or program uses the subscription {self.name}, and would move it past "
                    "messages that this query needs. A checkpoint is for one query at a time: stop the other one, or "
                    "use another checkpointLocation. Queries with checkpoints of their own must not name the same "
                    "predefinedSubscription"
                ) from error
        return self._members[topic]

    async def _joined(self, topic: str, initial: InitialPosition) -> Consumer[bytes]:
        """Return a new consumer. Raise `ConsumerBusy` when another one stays on the subscription."""
        deadline = anyio.current_time() + TAKEOVER
        while True:
            consumer = standing_consumer(self._client, topic, self.name, initial, "spark")
            try:
                return await consumer.__aenter__()
            except ConsumerBusy:
                if anyio.current_time() >= deadline:
                    raise
                await anyio.sleep(0.2)
