"""The durable subscription of a stream: it keeps the broker from deleting what was not processed yet."""

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
    """One member on each topic, which takes no messages. It is as far as Spark has said it is, and never ahead."""

    def __init__(self, client: Client, name: str, *, holds_back: bool) -> None:
        """`holds_back`: the last entry that was processed stays unacknowledged, so that its ledger is not deleted as
        long as reading is to go on there: a ledger that is gone means loss, then."""
        self.name = name
        self._client = client
        self._held = 1 if holds_back else 0
        self._members: dict[str, Consumer[bytes]] = {}
        self._moved: dict[str, Position] = {}

    async def last_message(self, topic: str) -> tuple[MessageId, MessageId | None]:
        """The last message of a topic, and the last entry that the subscription has done, where the broker says it."""
        return await last_message(await self._member(topic))

    async def begin(self, starts: Mapping[str, Position]) -> None:
        """Set it to where a new stream begins, be that forward or back."""

        async def one(topic: str) -> None:
            consumer, start = await self._member(topic), starts[topic]
            held = Position(start.ledger, max(start.entry - self._held, 0))
            await consumer.seek(MessageId.earliest if start == FIRST else held.message_id())
            self._moved[topic] = start

        await each(starts, one)

    async def move_up(self, starts: Mapping[str, Position], ledgers: Mapping[str, Ledgers]) -> None:
        """Everything before these positions was processed. What fails is done with the next batch."""

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
                _logger.warning("%s: subscription %s stays behind: %s", topic, self.name, error)

        await each(starts, one)

    async def forget(self, topic: str) -> None:
        """The topic is gone."""
        consumer = self._members.pop(topic, None)
        if consumer is not None:
            await consumer.aclose()

    async def join(self, topic: str, initial_position: InitialPosition) -> None:
        """Where it is not there yet, it begins here."""
        await self._member(topic, initial_position)

    async def aclose(self) -> None:
        await each(list(self._members), self.forget)

    async def _member(self, topic: str, initial: InitialPosition = InitialPosition.Earliest) -> Consumer[bytes]:
        """Failover: that of a driver which died, and which the broker did not notice yet, is in nobody's way."""
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
