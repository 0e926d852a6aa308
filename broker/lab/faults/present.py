"""Who is on a connection, by id: also those whom the broker has let go of but not told yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.broker.model.subscription.consumer import Consumer
    from pulsarium.broker.model.topic.producer import Producer
    from pulsarium.broker.session.session import Session

OPENED = {pb.BaseCommand.SUCCESS, pb.BaseCommand.PRODUCER_SUCCESS}
SPARE = 100  # of the gone


class Present:
    """Producers and consumers of a session. CLOSE_PRODUCER and CLOSE_CONSUMER go out when it has none any more."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._producers: dict[int, Producer] = {}
        self._consumers: dict[int, Consumer] = {}
        self.look()

    def look(self) -> None:
        """Somebody may have come."""
        session = self._session
        if len(self._producers) > 2 * len(session.producers) + SPARE:
            self._producers.clear()
        if len(self._consumers) > 2 * len(session.consumers) + SPARE:
            self._consumers.clear()
        self._producers |= session.waiting_producers | session.producers
        self._consumers |= session.consumers

    def producer(self, producer_id: int) -> Producer | None:
        return self._session.producers.get(producer_id) or self._producers.get(producer_id)

    def consumer(self, consumer_id: int) -> Consumer | None:
        return self._session.consumers.get(consumer_id) or self._consumers.get(consumer_id)
