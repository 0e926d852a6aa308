"""Keep a durable subscription for a stream, so that the broker retains unprocessed messages."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from uuid import uuid4

from pulsarium.client import Client, Consumer, InitialPosition, MessageId, PulsarError
from pulsarium.client.admin.errors import AdminError
from pulsarium.client.bulk import last_message, standing_consumer
from pulsarium.pipeline.source.ledgers import Ledgers
from pulsarium.pipeline.source.places import FIRST, Position
from pulsarium.pipeline.source.topics import each

_logger = logging.getLogger(__name__)


class Subscription:
    """A subscription with one consumer on each topic, which receives no messages.

    Its position follows what Spark has recorded, and is never ahead.
    """

    def __init__(self, client: Client, name: str, *, holds_back: bool) -> None:
        """Prepare the subscription.

        With `holds_back` the last processed entry stays unacknowledged, so that its ledger is not deleted while reading
        continues in it. Then a deleted ledger means lost data.
        """
        self.name = name
        self._client = client
        self._held = 1 if holds_back else 0
        self._consumer_name = f"spark-{uuid4().hex[:10]}"  # tells the consumers of this query from all others
        self._members: dict[str, Consumer[bytes]] = {}
        self._moved: dict[str, Position] = {}

    async def last_message(self, topic: str) -> tuple[MessageId, MessageId | None]:
        """Return the last message of a topic, and the subscription's mark-delete position if the broker tells it."""
        return await last_message(await self._member(topic))

    async def begin(self, starts: Mapping[str, Position]) -> None:
        """Seek to the start of a new stream, forward or backward."""

        async def one(topic: str) -> None:
            consumer, start = await self._member(topic), starts[topic]
            held = Position(start.ledger, max(start.entry - self._held, 0))
            await consumer.seek(MessageId.earliest if start == FIRST else held.message_id())
            self._moved[topic] = start

        await each(starts, one)

    async def move_up(self, starts: Mapping[str, Position], ledgers: Mapping[str, Ledgers]) -> None:
        """Acknowledge everything before these positions. A failed topic is tried again with the next batch."""

        async def one(topic: str) -> None:
            start, known = starts[topic], ledgers.get(topic) or Ledgers([], {})
            done = known.before(start, held=self._held)
            if start == self._moved.get(topic) or done is None:
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

    async def aclose(self) -> None:
        await each(list(self._members), self.forget)

    async def _member(self, topic: str, initial: InitialPosition = InitialPosition.Earliest) -> Consumer[bytes]:
        """Return the consumer of a topic. Raise `TopicNotFound` when the topic was deleted."""
        if topic not in self._members:
            consumer = standing_consumer(self._client, topic, self.name, initial, self._consumer_name)
            await consumer.__aenter__()
            self._members[topic] = consumer
        return self._members[topic]

    async def warn_of_others(self, topics: Iterable[str]) -> None:
        """Warn when another consumer uses the subscription of one of these topics. Needs the admin API."""
        for topic, others in (await each(topics, self._others)).items():
            if others:
                _logger.warning(
                    "%s: another consumer (%s) uses the subscription %s. Give each query on the same topics another "
                    "subscriptionPrefix, because a shared subscription may move past messages that one of them needs",
                    topic,
                    ", ".join(others),
                    self.name,
                )

    async def _others(self, topic: str) -> list[str]:
        try:
            stats = await self._client.admin.topics.get_stats(topic)
        except AdminError:
            return []
        found = stats.get("subscriptions", {}).get(self.name, {}).get("consumers", [])
        names = [str(each.get("consumerName", "")) for each in found]
        return [name for name in names if name != self._consumer_name]
