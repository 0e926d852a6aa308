"""What tests say of topics and subscriptions, and the words for what is not so."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.base import SubscribedTopic, Subscription
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.testing.stored import Stored, topics_of
from pulsarium.proto.topic_name import TopicName

MOST_SHOWN = 10
LONGEST_VALUE = 60


class _OfTopic:
    """Of a topic, partitions and all."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.cluster = cluster
        self.name = TopicName.parse(topic)
        self._stored: dict[str, Stored] = {}

    def topics(self) -> list[Topic]:
        return topics_of(self.cluster, self.name)

    def stored(self, topic: SubscribedTopic) -> Stored:
        """What the topic has now."""
        stored = self._stored.setdefault(str(topic.name), Stored())
        if isinstance(topic, PersistentTopic):
            stored.read(topic)
        return stored

    def values(self) -> list[bytes]:
        return [value for topic in self.topics() for value in self.stored(topic).values]

    def absent(self) -> str:
        """What to say when there is no such topic."""
        names = self.cluster.topics.names(str(self.name.namespace_name), non_persistent=True)
        return f"there is no topic {self.name}; its namespace has {', '.join(names) or 'none'}"


class Produced(_OfTopic):
    """A topic has these messages, or so many, and no more."""

    def __init__(self, cluster: Cluster, topic: str, expected: int | Sequence[bytes | str]) -> None:
        super().__init__(cluster, topic)
        texts = () if isinstance(expected, int) else expected
        self._count = expected if isinstance(expected, int) else len(expected)
        self._expected = None if isinstance(expected, int) else [_bytes(each) for each in texts]
        if self._expected and not self.name.is_persistent:
            raise ValueError(f"{self.name} is not persistent: its messages are not kept, only how many there were")

    def count(self) -> int:
        topics = self.topics()
        if self.name.is_persistent:
            return sum(len(self.stored(topic).values) for topic in topics)
        return sum(topic.messages_in for topic in topics)

    def decided(self) -> bool:
        return self.count() >= self._count

    def problem(self) -> str | None:
        count, values = self.count(), self.values()
        if count != self._count:
            if not self.topics():
                return self.absent()
            return f"{self.name} has {_messages(count)}, not {self._count}: {_shown(values)}{self._producers()}"
        if self._expected is None:
            return None
        if self.cluster.metadata.partitions_of(self.name):  # which have no order among them
            values, expected = sorted(values), sorted(self._expected)
        else:
            expected = self._expected
        if values == expected:
            return None
        index = next(index for index in range(count) if values[index] != expected[index])
        return (
            f"message {index} of {self.name} is {_value(values[index])}, not {_value(expected[index])}; "
            f"it has {_shown(values)}"
        )

    def _producers(self) -> str:
        names = [producer for topic in self.topics() for producer in topic.producers.by_name]
        return f"; connected producers: {', '.join(names) or 'none'}"


class _OfSubscription(_OfTopic):
    """Of a subscription, over all partitions."""

    def __init__(self, cluster: Cluster, topic: str, subscription: str) -> None:
        super().__init__(cluster, topic)
        self.subscription = subscription

    def subscriptions(self) -> list[Subscription]:
        found = (topic.subscriptions.get(self.subscription) for topic in self.topics())
        return [each for each in found if each is not None]

    def missing(self) -> str:
        """What to say when there is no such subscription."""
        topics = self.topics()
        if not topics:
            return self.absent()
        names = sorted({name for topic in topics for name in topic.subscriptions})
        return f"{self.name} has no subscription {self.subscription}, but {', '.join(names) or 'none at all'}"

    def persistent(self) -> list[PersistentSubscription]:
        return [each for each in self.subscriptions() if isinstance(each, PersistentSubscription)]

    def why(self, subscription: Subscription, position: Position | None = None) -> str:
        """What becomes of a message, by default of the next one that no consumer has."""
        lab = self.cluster.lab
        assert lab is not None
        why = lab.why(str(subscription.topic.name), subscription.name, None if position is None else str(position))
        return f"{why.details['messageId']}: {why.text}" if "messageId" in why.details else why.text

    def consumers(self) -> str:
        known = [
            f"{consumer.name or consumer.consumer_id} (permits {consumer.permits}, unacknowledged {consumer.unacked})"
            for each in self.subscriptions()
            for consumer in each.consumers
        ]
        return f"consumers: {', '.join(known) or 'none'}"


class Delivered(_OfSubscription):
    """Consumers of a subscription were sent so many messages, or more."""

    def __init__(self, cluster: Cluster, topic: str, subscription: str, count: int) -> None:
        super().__init__(cluster, topic, subscription)
        self._count = count

    def count(self) -> int:
        return sum(
            each.messages_out + sum(consumer.messages_out for consumer in each.consumers)
            for each in self.subscriptions()
        )

    def decided(self) -> bool:
        return self.count() >= self._count

    def problem(self) -> str | None:
        if self.decided():
            return None
        if not self.subscriptions():
            return self.missing()
        stored = f", of {_messages(len(self.values()))} in the topic" if self.name.is_persistent else ""
        what = f"{self.subscription} of {self.name} was delivered {_messages(self.count())}, not {self._count}{stored}"
        reasons = dict.fromkeys(map(self.why, self.persistent()))  # of many partitions often the same
        return "; ".join([what, *reasons, self.consumers()])


class Acked(_OfSubscription):
    """A subscription has so many messages acknowledged, or all."""

    def __init__(self, cluster: Cluster, topic: str, subscription: str, count: int | None) -> None:
        super().__init__(cluster, topic, subscription)
        if not self.name.is_persistent:
            raise ValueError(f"{self.name} is not persistent: acknowledgements of its messages are not kept")
        self._count = count

    def count(self) -> int:
        """Messages that are acknowledged, of those that came since the subscription began."""
        return sum(self._acknowledged(each) for each in self.persistent())

    def _acknowledged(self, subscription: PersistentSubscription) -> int:
        cursor, counts = subscription.cursor, self.stored(subscription.topic).counts
        begun, mark = (bisect_right(counts, place, key=itemgetter(0)) for place in (cursor.start, cursor.mark_delete))
        whole = sum(count for _, count in counts[begun:mark])
        if not cursor.individual_acks and not cursor.batch_acks:
            return whole
        messages = dict(counts)
        individual = sum(messages.get(position, 0) for position in cursor.individual_acks)
        parts = sum(messages.get(position, 0) - cursor.batch_acks.remaining(position) for position in cursor.batch_acks)
        return whole + individual + parts

    def decided(self) -> bool:
        found = self.persistent()
        if self._count is not None:
            return self.count() >= self._count
        return bool(found) and not any(each.cursor.backlog() for each in found)

    def problem(self) -> str | None:
        if not self.persistent():
            return self.missing()
        count, total = self.count(), len(self.values())
        if (self._count is None and self.decided()) or self._count == count:
            return None
        wanted = "all" if self._count is None else self._count
        what = (
            f"{self.subscription} of {self.name} has {_messages(count)} acknowledged, not {wanted}, "
            f"of {_messages(total)} in the topic"
        )
        return "; ".join([what, *self._open(), self.consumers()])

    def _open(self) -> Iterator[str]:
        """Entries that are not acknowledged, and where they stand."""
        found = [
            (each, position)
            for each in self.persistent()
            for position, _ in self.stored(each.topic).counts
            if position > each.cursor.mark_delete and not each.cursor.is_acked(position)
        ]
        more = [f"and {len(found) - MOST_SHOWN} more"] if len(found) > MOST_SHOWN else []
        yield from (self.why(*each) for each in found[:MOST_SHOWN])
        yield from more


def _bytes(value: bytes | str) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _messages(count: int) -> str:
    return f"{count} message{'' if count == 1 else 's'}"


def _value(value: bytes) -> str:
    return repr(value if len(value) <= LONGEST_VALUE else value[:LONGEST_VALUE] + b"...")


def _shown(values: Sequence[bytes]) -> str:
    shown = [_value(value) for value in values[:MOST_SHOWN]]
    more = [f"and {len(values) - MOST_SHOWN} more"] if len(values) > MOST_SHOWN else []
    return ", ".join(shown + more) or "none"
