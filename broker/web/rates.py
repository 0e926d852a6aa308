"""Compute rates over the last interval (statsUpdateFrequencyInSecs) from counters that only grow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pulsarium.broker.cluster import Broker
from pulsarium.broker.model.subscription.base import Consumer
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.net.rounds import Rounds


class IntervalRate(NamedTuple):
    """Rates a second over the last whole interval, zeros before the first."""

    messages: float = 0.0
    bytes: float = 0.0

    @property
    def average_size(self) -> float:
        """Return the average bytes of a message."""
        return self.bytes / self.messages if self.messages else 0.0

    def __add__(self, other: object) -> IntervalRate:
        assert isinstance(other, IntervalRate)
        return IntervalRate(self.messages + other.messages, self.bytes + other.bytes)


NONE = IntervalRate()
DROPS = "drops"
ACKS = "acknowledgements"
REDELIVERIES = "redeliveries"


class Rates:
    """Read the counters of all producers and consumers once an interval."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._seconds = broker.config.statsUpdateFrequencyInSecs
        self._counts: dict[object, tuple[int, int]] = {}
        self._rates: dict[object, IntervalRate] = {}
        self._limited: dict[Topic, int] = {}
        self._timer = broker.clock.every(self._seconds, Rounds(broker.clock, self._update))

    def stop(self) -> None:
        """Stop reading counters."""
        self._timer.cancel()

    def of(self, counted: object) -> IntervalRate:
        """Return the rate of a producer or consumer. For a stored subscription, the rate of expired messages."""
        return self._rates.get(counted, NONE)

    def events(self, counted: object) -> int:
        """Return the number of messages behind the rate of `counted`."""
        return round(self.of(counted).messages * self._seconds)

    def limited(self, topic: Topic) -> int:
        """Return how often a connection of the topic's producers paused since the last interval ended."""
        return topic.publish_limited - self._limited.get(topic, 0)

    def drops(self, counted: object) -> float:
        """Return the lost messages a second of a non-persistent topic's producer or subscription."""
        return self.of((counted, DROPS)).messages

    def acks(self, consumers: Iterable[object]) -> float:
        """Return the acknowledged messages a second of consumers of Shared types.

        Elsewhere a cumulative acknowledgement counts as one message, and an individual one as none, as in Pulsar.
        """
        return sum((self.of((each, ACKS)).messages for each in consumers), 0.0)

    def redeliveries(self, consumers: Iterable[object]) -> float:
        """Return the messages a second that consumers of Shared types asked for again."""
        return sum((self.of((each, REDELIVERIES)).messages for each in consumers), 0.0)

    def total(self, counted: Iterable[object]) -> IntervalRate:
        return sum((self.of(each) for each in counted), NONE)

    def _update(self) -> Iterator[None]:
        counts: dict[object, tuple[int, int]] = {}
        rates: dict[object, IntervalRate] = {}
        limited: dict[Topic, int] = {}
        for topic in list(self._broker.topics.loaded.values()):  # also topics that other brokers serve
            if topic.closed:
                continue
            limited[topic] = topic.publish_limited
            for some in _counts(topic):
                new = dict(some)
                rates.update(self._rates_since(new))
                counts.update(new)
                yield
        self._counts, self._rates, self._limited = counts, rates, limited

    def _rates_since(self, counts: dict[object, tuple[int, int]]) -> Iterator[tuple[object, IntervalRate]]:
        """Yield the rates of everything that counted a message since the last time."""
        before, seconds = self._counts, self._seconds
        for counted, (messages, size) in counts.items():
            old_messages, old_size = before.get(counted, (0, 0))
            if messages != old_messages:
                yield counted, IntervalRate((messages - old_messages) / seconds, (size - old_size) / seconds)


Counts = list[tuple[object, tuple[int, int]]]


def _counts(topic: Topic) -> Iterator[Counts]:
    """Yield the messages and bytes so far of everything on a topic that has counters, a subscription at a time."""
    yield [
        count
        for producer in topic.producers.by_name.values()
        for count in (
            (producer, (producer.messages_in, producer.bytes_in)),
            ((producer, DROPS), (producer.dropped, 0)),
        )
    ]
    for subscription in list(topic.subscriptions.values()):  # others may come and go in between
        yield [
            ((subscription, DROPS), (subscription.dropped, 0)),
            (subscription, (subscription.expired.total, 0)),
            *_counts_of(subscription.consumers),
        ]


def _counts_of(consumers: Iterable[Consumer]) -> Iterator[tuple[object, tuple[int, int]]]:
    for consumer in consumers:
        yield consumer, (consumer.messages_out, consumer.bytes_out)
        yield (consumer, ACKS), (consumer.acked, 0)
        yield (consumer, REDELIVERIES), (consumer.redelivered, 0)
