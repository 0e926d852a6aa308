"""The pace of producers: their messages a second between two looks of a page."""

from __future__ import annotations

from pulsarium.broker.clock import Timeline
from pulsarium.broker.model.topic.producers import Producer
from pulsarium.broker.web.rates import Rates


class Paces:
    """Counts of what producers had sent at the last look of a page. At the first look, the rates of the stats count."""

    def __init__(self, rates: Rates, clock: Timeline) -> None:
        self._rates = rates
        self._clock = clock
        self._looked = clock.monotonic()
        self._seconds = 0.0  # between the last two looks
        self._before: dict[Producer, int] = {}
        self._now: dict[Producer, int] = {}

    def look(self) -> None:
        """Begin the next look."""
        now = self._clock.monotonic()
        self._seconds, self._looked = now - self._looked, now
        self._before, self._now = self._now, {}

    def of(self, producer: Producer) -> float:
        """Return the messages a second of a producer."""
        sent = self._now[producer] = producer.messages_in
        before = self._before.get(producer)
        if before is None or not self._seconds:
            return self._rates.of(producer).messages
        return (sent - before) / self._seconds
