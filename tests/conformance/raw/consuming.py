"""The raw client's consumers: queue, stream and checkpoint, over one subscription for each segment."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Any

from pulsarium.conformance.adapters.lines import Refusal
from pulsarium.proto.entry import parse_metadata, payload_of
from pulsarium.proto.generated import PulsarApi_pb2 as pb

from .topic import ATTEMPTS, Client, Watched
from .wire import Connection, Lost, T

EARLIEST, LATEST = (2**64 - 1, 2**64 - 1), (2**63 - 1, 2**63 - 1)
EXCLUSIVE, SHARED, KEY_SHARED = 0, 1, 3
Position = tuple[int, int]


class SegmentConsumer:
    def __init__(self, connection: Connection, number: int, segment: int, buckets: int) -> None:
        self.connection = connection
        self.number = number
        self.segment = segment
        self.buckets = buckets
        self.open = True


class Consumer:
    """A consumer, whose subclasses say which segments it reads and how."""

    kind = SHARED
    durable = True

    def __init__(self, client: Client, topic: str, subscription: str) -> None:
        self.client = client
        self.subscription = subscription
        self.watched = Watched(client, topic)
        self.consumers: dict[int, SegmentConsumer] = {}
        self.inbox: deque[Any] = deque()
        self.arrived = threading.Condition()
        self.delivered: dict[int, Position] = {}
        self.vectors: dict[str, dict[int, Position]] = {}
        self.closed = False
        self.reconciling = threading.RLock()
        self.reconcile()

    # segments

    def wanted(self) -> dict[int, tuple[str, list[Any]]]:
        """Return the topic and the bucket ranges of each segment to read, by id."""
        active_only = "reads-active-only" in self.client.bugs
        segments = self.watched.active() if active_only else list(self.watched.segments())
        return {each.segment_id: (self.watched.name_of(each), []) for each in segments}

    def start(self, segment: int) -> Position | None:
        return None

    def skips(self, segment: int, position: Position) -> bool:
        return False

    def reconcile(self) -> None:
        with self.reconciling:
            self._reconcile()

    def _reconcile(self) -> None:
        self.watched.refresh()
        wanted = self.wanted()
        for number, consumer in list(self.consumers.items()):
            if consumer.connection.lost or not consumer.open:
                del self.consumers[number]
            elif number not in wanted or len(wanted[number][1]) != consumer.buckets:
                consumer.connection.ask(T.CLOSE_CONSUMER, consumer_id=consumer.number)
                del self.consumers[number]
        for number, (topic, buckets) in wanted.items():
            if number not in self.consumers:
                self._attach(number, topic, buckets)

    def _attach(self, segment: int, topic: str, buckets: list[Any]) -> None:
        """Subscribe, and wait for the consumer that has to leave the segment first."""
        for _ in range(ATTEMPTS):
            try:
                self._subscribe(segment, topic, buckets)
            except Refusal as error:
                if error.kind != "ConsumerBusy" or segment not in (wanted := self.wanted()):
                    raise
                buckets = wanted[segment][1]
                time.sleep(0.1)
            else:
                return

    def _subscribe(self, segment: int, topic: str, buckets: list[Any]) -> None:
        connection = self.watched.owner_of(topic)
        consumer = SegmentConsumer(connection, next(self.client.ids), segment, len(buckets))
        self.client.listeners[connection, "consumer_id", consumer.number] = lambda said, entry: self._hear(
            consumer, said, entry
        )
        fields: dict[str, Any] = {"subType": KEY_SHARED if buckets else self.kind, "durable": self.durable}
        if buckets:
            fields["keySharedMeta"] = pb.KeySharedMeta(
                keySharedMode=pb.STICKY, hashRanges=buckets, entryBucketDispatch=True
            )
        start = self.start(segment)
        if start is not None:
            fields["start_message_id"] = pb.MessageIdData(ledgerId=start[0], entryId=start[1])
        connection.ask(
            T.SUBSCRIBE,
            topic=topic,
            subscription=self.subscription,
            consumer_id=consumer.number,
            consumer_name=f"raw-{consumer.number}",
            initialPosition=int(self.durable),
            metadata=[pb.KeyValue(key="__pulsar.v5.managed", value="true")],
            **fields,
        )
        self.consumers[segment] = consumer
        connection.say(T.FLOW, consumer_id=consumer.number, messagePermits=100_000)

    def _hear(self, consumer: SegmentConsumer, said: Any, entry: bytes) -> None:
        name: str
        body: Any
        name, body = said or ("", None)
        with self.arrived:
            if name == "MESSAGE":
                metadata = parse_metadata(entry)
                position = (body.message_id.ledgerId, body.message_id.entryId)
                if self.skips(consumer.segment, position):
                    return
                number = f"{consumer.segment}:{position[0]}:{position[1]}"
                message = {"value": payload_of(entry).decode(), "id": number}
                if metadata.HasField("partition_key"):
                    message["key"] = metadata.partition_key
                self.inbox.append((consumer.segment, position, message))
            elif name in ("", "CLOSE_CONSUMER"):
                consumer.open = False
            self.arrived.notify_all()

    # operations

    def receive(self, count: int, seconds: float) -> list[Any]:
        if self.closed:
            raise Refusal("AlreadyClosed", "the consumer is closed")
        got: list[Any] = []
        end = time.monotonic() + seconds
        while True:
            with self.arrived:
                while self.inbox and len(got) < count:
                    segment, position, message = self.inbox.popleft()
                    self.delivered[segment] = max(position, self.delivered.get(segment, position))
                    self.vectors[message["id"]] = dict(self.delivered)
                    got.append(message)
            if len(got) >= count or time.monotonic() >= end:
                return got
            with suppress(Lost, Refusal):  # the next turn tries again
                self.reconcile()
            with self.arrived:
                if not self.inbox:
                    self.arrived.wait(min(0.1, max(0.0, end - time.monotonic())))

    def ack(self, segment: int, *positions: Position, cumulative: bool = False) -> None:
        consumer = self.consumers.get(segment)
        if consumer is None or consumer.connection.lost or not consumer.open:
            self.reconcile()
            consumer = self.consumers.get(segment)
        if consumer is None:
            return
        ids = [pb.MessageIdData(ledgerId=ledger, entryId=entry) for ledger, entry in positions]
        kind = pb.CommandAck.Cumulative if cumulative else pb.CommandAck.Individual
        consumer.connection.ask(T.ACK, consumer_id=consumer.number, ack_type=kind, message_id=ids)

    def close(self) -> None:
        if self.closed:
            return
        with self.reconciling:
            self.closed = True
            for each in self.consumers.values():
                if each.open and not each.connection.lost:
                    each.connection.ask(T.CLOSE_CONSUMER, consumer_id=each.number)
        self.watched.close()


class QueueConsumer(Consumer):
    def acknowledge(self, number: str) -> None:
        segment, ledger, entry = map(int, number.split(":"))
        if "acks-across-split" in self.client.bugs:
            segment = max(self.consumers)
        self.ack(segment, (ledger, entry))

    def nack(self, number: str) -> None:
        segment, ledger, entry = map(int, number.split(":"))
        consumer = self.consumers[segment]
        ids = [pb.MessageIdData(ledgerId=ledger, entryId=entry)]
        consumer.connection.say(T.REDELIVER_UNACKNOWLEDGED_MESSAGES, consumer_id=consumer.number, message_ids=ids)


class Registered(Consumer):
    """A consumer that the controller assigns its segments."""

    type = 0
    name = ""

    def __init__(self, client: Client, topic: str, subscription: str, name: str) -> None:
        self.name = name
        self._registration: tuple[Connection, int] | None = None
        self._assignment: Any = None
        super().__init__(client, topic, subscription)

    def wanted(self) -> dict[int, tuple[str, list[Any]]]:
        if self._registration is None or self._registration[0].lost:
            self._register()
        return {each.segment_id: (each.segment_topic, list(each.bucket_ranges)) for each in self._assignment.segments}

    def _register(self) -> None:
        connection, number = self.watched.controller(), next(self.client.ids)
        self.client.listeners[connection, "consumer_id", number] = self._assigned
        self._registration = (connection, number)
        answer = connection.ask(
            T.SCALABLE_TOPIC_SUBSCRIBE,
            topic=self.watched.topic,
            subscription=self.subscription,
            consumer_name=self.name,
            consumer_id=number,
            consumer_type=self.type,
        )
        self._assignment = answer.assignment

    def _assigned(self, said: Any, entry: bytes) -> None:
        if said is not None and said[0] == "SCALABLE_TOPIC_ASSIGNMENT_UPDATE":
            with self.arrived:
                if self._assignment is None or said[1].assignment.layout_epoch >= self._assignment.layout_epoch:
                    self._assignment = said[1].assignment
                self.arrived.notify_all()
            threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        with suppress(Lost, Refusal):
            if not self.closed:
                self.reconcile()

    def close(self) -> None:
        if not self.closed and self._registration is not None and "stays-registered" not in self.client.bugs:
            connection, number = self._registration
            if not connection.lost and not self.client.is_m1:
                super().close()
                connection.ask(T.SCALABLE_TOPIC_UNSUBSCRIBE, consumer_id=number)
                return
        super().close()


class StreamConsumer(Registered):
    kind = EXCLUSIVE

    def acknowledge(self, number: str) -> None:
        bugs = self.client.bugs
        vector = self.vectors[number]
        if "acks-one-segment" in bugs:
            segment, ledger, entry = map(int, number.split(":"))
            vector = {segment: (ledger, entry)}
        elif "acks-too-much" in bugs:
            vector = dict(self.delivered)
        for segment, position in vector.items():
            consumer = self.consumers.get(segment)
            if consumer is not None and consumer.buckets:
                ids = [tuple(map(int, each.split(":"))) for each in self.vectors]
                known = [(ledger, entry) for of, ledger, entry in ids if of == segment]
                self.ack(segment, *[each for each in known if each <= position])
            else:
                self.ack(segment, position, cumulative=True)


class Positions:
    """Keep the start and the position of a checkpoint consumer."""

    def __init__(self, start: str, segments: list[int]) -> None:
        if start == "earliest":
            self.at: dict[int, Position] = {}
        elif start == "latest":
            self.at = dict.fromkeys(segments, LATEST)
        else:
            saved = json.loads(base64.b64decode(start))
            self.at = {int(number): (position[0], position[1]) for number, position in saved.items()}


class Positioned(Consumer):
    """A consumer that begins at a checkpoint."""

    kind = EXCLUSIVE
    durable = False
    positions: Positions

    def start(self, segment: int) -> Position:
        return self.delivered.get(segment) or self.positions.at.get(segment, EARLIEST)

    def skips(self, segment: int, position: Position) -> bool:
        return position <= self.positions.at.get(segment, (-1, -1)) != LATEST

    def checkpoint(self) -> str:
        at = {**self.positions.at, **self.delivered}
        if "partial-checkpoint" in self.client.bugs:
            at = dict(list(at.items())[-1:])
        return base64.b64encode(json.dumps(at).encode()).decode()


def positions_of(client: Client, topic: str, start: str) -> Positions:
    watched = Watched(client, topic)
    watched.close()
    return Positions(start, [each.segment_id for each in watched.segments()])


class Reader(Positioned):
    def __init__(self, client: Client, topic: str, start: str) -> None:
        self.positions = positions_of(client, topic, start)
        self.durable = "durable-reader" in client.bugs
        super().__init__(client, topic, f"reader-{time.monotonic_ns():x}")


class GroupReader(Positioned, Registered):
    type = 1

    def __init__(self, client: Client, topic: str, start: str, group: str, name: str) -> None:
        self.positions = positions_of(client, topic, start)
        super().__init__(client, topic, group, name)
