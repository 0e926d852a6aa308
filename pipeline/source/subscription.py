"""Keep a durable subscription for a stream, so that the broker retains unprocessed messages."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pulsarium.client import Client, Consumer, ConsumerType, InitialPosition, MessageId, PulsarError
from pulsarium.client.bulk import last_message
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
        """Return the consumer of a topic.

        Its type is Failover, so that the consumer of a dead driver, which the broker still knows, does not block it.
        """
        if topic not in self._members:
            consumer = self._client.subscribe(
                topic,
                self.name,
                consumer_type=ConsumerType.Failover,
                initial_position=initial,
                consumer_name="spark",
                start_paused=True,
                start_message_id_inclusive=True,
                ack_receipt_enabled=True,
            )
            await consumer.__aenter__()
            self._members[topic] = consumer
        return self._members[topic]
