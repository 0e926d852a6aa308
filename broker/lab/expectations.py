"""Expectations of topics and subscriptions: produced, delivered and acknowledged messages."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, repeat
from operator import itemgetter
from typing import Protocol

import trio

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.lab.why import explain
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.ledger.position import EARLIEST, Position
from pulsarium.broker.model.subscription.base import SubscribedTopic, Subscription
from pulsarium.broker.model.subscription.mark_moves import CUMULATIVE
from pulsarium.broker.model.subscription.persistent import PersistentSubscription, SubscribedPersistentTopic
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.turn import Turn
from pulsarium.proto.batch import unpack
from pulsarium.proto.compression import decompress
from pulsarium.proto.entry import payload_of, visible_metadata
from pulsarium.proto.errors import ProtocolError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName


class Expectation(Protocol):
    """A statement about the broker that a test makes."""

    def decided(self) -> bool:
        """Return whether waiting longer cannot change the result."""
        ...

    def problem(self) -> str | None:
        """Return how the broker differs from the expectation, or None."""
        ...


class Changes:
    """Wake the waiting tasks at the end of each turn, when anything may have changed."""

    def __init__(self, turn: Turn) -> None:
        self._changed: trio.Event | None = None
        turn.every_turn(self._turn_ended)

    def _turn_ended(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until `reached` returns true."""
        while not reached():
            if self._changed is None:
                self._changed = trio.Event()
            await self._changed.wait()

    async def problem(self, expectation: Expectation, patience: float) -> str | None:
        """Return the problem that is left after `patience` seconds, or None as soon as the expectation is met."""
        with trio.move_on_after(patience):
            await self.until(expectation.decided)
        return expectation.problem()


def topics_of(cluster: Cluster, name: TopicName) -> list[Topic]:
    """Return the topic, or its partitions; an empty list when the topic does not exist."""
    partitions = cluster.metadata.partitions_of(name)
    names = [name.partition(index) for index in range(partitions)] if partitions else [name]
    return [cluster.topics.find(each) for each in names if cluster.topics.exists(each)]


class StoredExpectation:
    """The messages of one persistent topic, each read once."""

    def __init__(self) -> None:
        self._payloads: list[tuple[pb.MessageMetadata, bytes]] = []
        self.total = 0
        """The number of messages."""
        self.counts: list[tuple[Position, int]] = []
        """Entries with their number of messages. Only the last chunk of a message counts."""
        self._last = EARLIEST
        self._chunks: dict[str, list[bytes]] = {}

    def read(self, topic: SubscribedPersistentTopic) -> None:
        """Read the entries that are new since the last call."""
        ledger = topic.ledger
        position = self._first(ledger)
        while position <= ledger.max_read:
            self._last = position
            entry = ledger.read_now(position)
            if not ledger.transactions.hides(position, entry):
                self._add(position, entry)
            position = ledger.next(position)

    def _first(self, ledger: ManagedLedger) -> Position:
        return ledger.next(max(self._last, ledger.first_position()))

    def _add(self, position: Position, entry: bytes) -> None:
        metadata = visible_metadata(entry)
        if metadata is None:  # a marker
            return
        payload = payload_of(entry)
        if metadata.num_chunks_from_msg > 1:
            chunks = self._chunks.setdefault(metadata.uuid, [])
            chunks.append(payload)
            if metadata.chunk_id < metadata.num_chunks_from_msg - 1:
                self.counts.append((position, 0))
                return
            payload = b"".join(self._chunks.pop(metadata.uuid))
        self.counts.append((position, metadata.num_messages_in_batch))
        self.total += max(0, metadata.num_messages_in_batch)
        self._payloads.append((metadata, payload))

    def values(self) -> Iterator[bytes]:
        """Yield the decompressed values. An encrypted batch has its encrypted payload once for each message."""
        for metadata, payload in self._payloads:
            yield from _values(metadata, payload)


def _values(metadata: pb.MessageMetadata, payload: bytes) -> Iterator[bytes]:
    count = metadata.num_messages_in_batch
    if metadata.encryption_keys:
        return repeat(payload, count)
    try:
        payload = decompress(metadata.compression, payload, metadata.uncompressed_size)
        if not metadata.HasField("num_messages_in_batch"):
            return iter((payload,))
        return iter([value for _, value in unpack(payload, count)])
    except ProtocolError:  # the broker stores payloads that it cannot parse
        return repeat(payload, count)


MOST_SHOWN = 10
LONGEST_VALUE = 60


class OfTopic:
    """An expectation of a topic with all its partitions."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.cluster = cluster
        self.name = TopicName.parse(topic)
        self._stored: dict[str, StoredExpectation] = {}

    def topics(self) -> list[Topic]:
        return topics_of(self.cluster, self.name)

    def stored(self, topic: SubscribedTopic) -> StoredExpectation:
        """Return the messages that the topic has now."""
        stored = self._stored.setdefault(str(topic.name), StoredExpectation())
        if isinstance(topic, PersistentTopic):
            stored.read(topic)
        return stored

    def values(self) -> Iterator[bytes]:
        return (value for topic in self.topics() for value in self.stored(topic).values())

    def total(self) -> int:
        """Return the number of messages in the topic."""
        return sum(self.stored(topic).total for topic in self.topics())

    def absent(self) -> str:
        """Return the error text for a topic that does not exist."""
        names = self.cluster.topics.names(str(self.name.namespace_name), non_persistent=True)
        return f"there is no topic {self.name}; its namespace has {', '.join(names) or 'none'}"


class Produced(OfTopic):
    """Expect exactly these messages, or this number of messages, in a topic."""

    def __init__(self, cluster: Cluster, topic: str, expected: int | Sequence[bytes | str]) -> None:
        super().__init__(cluster, topic)
        texts = () if isinstance(expected, int) else expected
        self._count = expected if isinstance(expected, int) else len(expected)
        self._expected = None if isinstance(expected, int) else [_bytes(each) for each in texts]
        if self._expected and not self.name.is_persistent:
            raise ValueError(f"{self.name} is not persistent: only the number of its messages is known; pass a number")

    def count(self) -> int:
        """Return the number of published messages."""
        return self.total() if self.name.is_persistent else sum(topic.messages_in for topic in self.topics())

    def decided(self) -> bool:
        """Return whether enough messages are published."""
        return self.count() >= self._count

    def problem(self) -> str | None:
        """Return the error text, or None for exactly the expected messages."""
        count = self.count()
        if count != self._count:
            if not self.topics():
                return self.absent()
            shown = _shown(self.values(), self.total())
            return f"{self.name} has {_messages(count)}, not {self._count}: {shown}{self._producers()}"
        if self._expected is None:
            return None
        values = list(self.values())  # as many as are expected
        if self.cluster.metadata.partitions_of(self.name):  # messages of different partitions have no order
            values, expected = sorted(values), sorted(self._expected)
        else:
            expected = self._expected
        if values == expected:
            return None
        index = next(index for index in range(count) if values[index] != expected[index])
        return (
            f"message {index} of {self.name} is {_value(values[index])}, not {_value(expected[index])}; "
            f"it has {_shown(values, count)}"
        )

    def _producers(self) -> str:
        names = [producer for topic in self.topics() for producer in topic.producers.by_name]
        return f"; connected producers: {', '.join(names) or 'none'}"


class OfSubscription(OfTopic):
    """An expectation of a subscription, over all partitions."""

    def __init__(self, cluster: Cluster, topic: str, subscription: str) -> None:
        super().__init__(cluster, topic)
        self.subscription = subscription

    def subscriptions(self) -> list[Subscription]:
        found = (topic.subscriptions.get(self.subscription) for topic in self.topics())
        return [each for each in found if each is not None]

    def missing(self) -> str:
        """Return the error text for a subscription that does not exist."""
        topics = self.topics()
        if not topics:
            return self.absent()
        names = sorted({name for topic in topics for name in topic.subscriptions})
        return f"{self.name} has no subscription {self.subscription}, but {', '.join(names) or 'none at all'}"

    def persistent(self) -> list[PersistentSubscription]:
        return [each for each in self.subscriptions() if isinstance(each, PersistentSubscription)]

    def why(self, subscription: Subscription, position: Position | None = None) -> str:
        """Explain the state of a message, by default of the next one that no consumer has."""
        place = None if position is None else str(position)
        why = explain(self.cluster, str(subscription.topic.name), subscription.name, place)
        return f"{why.details['messageId']}: {why.text}" if "messageId" in why.details else why.text

    def consumers(self) -> str:
        known = [
            f"{consumer.name or consumer.consumer_id} (permits {consumer.permits}, unacknowledged {consumer.unacked})"
            for each in self.subscriptions()
            for consumer in each.consumers
        ]
        return f"consumers: {', '.join(known) or 'none'}"


class DeliveredExpectation(OfSubscription):
    """Expect at least this number of messages to be sent to consumers of a subscription."""

    def __init__(self, cluster: Cluster, topic: str, subscription: str, count: int) -> None:
        super().__init__(cluster, topic, subscription)
        self._count = count

    def count(self) -> int:
        """Return the number of messages that were sent to consumers."""
        return sum(
            each.messages_out + sum(consumer.messages_out for consumer in each.consumers)
            for each in self.subscriptions()
        )

    def decided(self) -> bool:
        """Return whether enough messages were sent."""
        return self.count() >= self._count

    def problem(self) -> str | None:
        """Return the error text, or None when enough messages were sent."""
        if self.decided():
            return None
        if not self.subscriptions():
            return self.missing()
        stored = f", of {_messages(self.total())} in the topic" if self.name.is_persistent else ""
        what = f"{self.subscription} of {self.name} was delivered {_messages(self.count())}, not {self._count}{stored}"
        reasons = dict.fromkeys(map(self.why, self.persistent()))  # partitions often have the same reason
        return "; ".join([what, *reasons, self.consumers()])


class AckedExpectation(OfSubscription):
    """Expect this number of messages, or all, to be acknowledged on a subscription."""

    def __init__(self, cluster: Cluster, topic: str, subscription: str, count: int | None) -> None:
        super().__init__(cluster, topic, subscription)
        if not self.name.is_persistent:
            raise ValueError(f"{self.name} is not persistent: acknowledgements of its messages are not stored")
        self._count = count

    def count(self) -> int:
        """Return how many of the messages since the start of the subscription are acknowledged.

        Messages that a seek, TTL or a request passed do not count.
        """
        return sum(self._acknowledged(each) for each in self.persistent())

    def _acknowledged(self, subscription: PersistentSubscription) -> int:
        cursor, counts = subscription.cursor, self.stored(subscription.topic).counts
        begun, mark = (bisect_right(counts, place, key=itemgetter(0)) for place in (cursor.start, cursor.mark_delete))
        whole = sum(count for _, count in counts[begun:mark]) - sum(count for _, count in self._passed(subscription))
        if not cursor.individual_acks and not cursor.batch_acks:
            return whole
        messages = dict(counts)
        individual = sum(messages.get(position, 0) for position in cursor.individual_acks)
        parts = sum(messages.get(position, 0) - cursor.batch_acks.remaining(position) for position in cursor.batch_acks)
        return whole + individual + parts

    def _passed(self, subscription: PersistentSubscription) -> list[tuple[Position, int]]:
        """Return the entries, with their messages, that the subscription passed without an acknowledgement.

        A move past some acknowledged entries does not count, because the broker does not remember which those were.
        """
        counts = self.stored(subscription.topic).counts
        begun = bisect_right(counts, subscription.cursor.start, key=itemgetter(0))
        moves = [each for each in subscription.mark_moves.known if each.by is not CUMULATIVE and not each.some_acked]
        if not moves:
            return []
        return [each for each in counts[begun:] if any(move.after < each[0] <= move.through for move in moves)]

    def decided(self) -> bool:
        """Return whether enough messages are acknowledged, or all when no number is expected."""
        found = self.persistent()
        if self._count is not None:
            return self.count() >= self._count
        return bool(found) and not any(each.cursor.backlog() for each in found)

    def problem(self) -> str | None:
        """Return the error text, or None when enough messages are acknowledged."""
        if not self.persistent():
            return self.missing()
        count, total = self.count(), self.total()
        if (self._count is None and self.decided()) or self._count == count:
            return None
        wanted = "all" if self._count is None else self._count
        what = (
            f"{self.subscription} of {self.name} has {_messages(count)} acknowledged, not {wanted}, "
            f"of {_messages(total)} in the topic"
        )
        return "; ".join([what, *self._open(), self.consumers()])

    def _open(self) -> Iterator[str]:
        """Yield the explanations of unacknowledged entries."""
        passed = [(each, position) for each in self.persistent() for position, _ in self._passed(each)]
        found = passed + [
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


def _shown(values: Iterable[bytes], count: int) -> str:
    shown = [_value(value) for value in islice(values, MOST_SHOWN)]
    more = [f"and {count - MOST_SHOWN} more"] if count > MOST_SHOWN else []
    return ", ".join(shown + more) or "none"
