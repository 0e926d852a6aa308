"""The raw client's producer: rounds of SENDs, until every message has its receipt."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

from pulsarium.conformance.adapters.lines import Refusal
from pulsarium.proto.entry import build
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.routing import m1_segment_hash, segment_hash

from .topic import Client, Watched
from .wire import SECONDS, Connection, Lost, T, refusal

ACCESS = {"shared": 0, "exclusive": 1, "wait-for-exclusive": 2, "exclusive-with-fencing": 3}
RETRIED = {"TopicTerminated", "NotFound", "Timeout", "Other", "Connect"}


class SegmentProducer:
    def __init__(self, connection: Connection, number: int, segment: int) -> None:
        self.connection = connection
        self.number = number
        self.segment = segment
        self.open = True


class Producer:
    def __init__(self, client: Client, topic: str, name: str, access: str) -> None:
        self._client = client
        self._name = name
        self._access = ACCESS[access]
        self._producers: dict[int, SegmentProducer] = {}
        self._failed: set[int] = set()
        self._turn = 0
        self._sequence = -1
        self._confirmed: dict[int, str] = {}
        self._changed = threading.Condition()
        self.closed = False
        self.fenced = False
        self._met_sealed = False
        self.watched = Watched(client, topic)
        if self._access and "lazy-exclusive" not in client.bugs:
            for each in self.watched.active():
                self._open(each)

    @property
    def last_sequence(self) -> int:
        return max(self._confirmed, default=-1)

    def send(self, messages: Sequence[Any]) -> list[str]:
        if self.closed:
            raise Refusal("AlreadyClosed", "the producer is closed")
        left = []
        for each in messages:
            if len(each["value"]) > 5 << 20:
                raise Refusal("InvalidConfiguration", "the message is over maxMessageSize")
            self._sequence += 1
            left.append((self._sequence, each))
        numbers = [number for number, _ in left]
        end = time.monotonic() + SECONDS  # less than the kit waits, however long a round takes
        while time.monotonic() < end:
            left = self._round(left)
            if not left:
                return [self._confirmed.get(number, "") for number in numbers]
            if self.fenced:
                raise Refusal("Fenced", "another producer has exclusive access")
            self.watched.wait()
            try:
                self.watched.refresh()
            except Lost:
                time.sleep(0.1)
        raise Refusal("Timeout", f"{len(left)} messages were not stored")

    def _round(self, left: list[Any]) -> list[Any]:
        """Send messages to the segments of the present layout, and return those without a receipt.

        The segments stay the same for the whole round. Else a message could overtake one before it, which is on its way
        to a segment that is sealed meanwhile.
        """
        used = []
        active = self.watched.active()
        known = {each.segment_id for each in active}
        sealed = any(not each.open or each.segment not in known for each in self._producers.values())
        self._met_sealed |= sealed
        # Bugs last from then on, so that the kit sees them in each run.
        if self._met_sealed and "drops-unconfirmed" in self._client.bugs:
            return []
        if self._met_sealed and "overtakes" in self._client.bugs:
            left = sorted(left, key=lambda each: each[0], reverse=True)
        try:
            for number, message in left:
                producer = self._open(self._segment(message, active))
                used.append((number, message, producer))
                metadata = pb.MessageMetadata(
                    producer_name=f"{self._name}-seg-{producer.segment}",
                    sequence_id=number,
                    publish_time=time.time_ns() // 1_000_000,
                )
                if "key" in message:
                    metadata.partition_key = message["key"]
                entry = build(metadata, message["value"].encode())
                producer.connection.say(T.SEND, entry, producer_id=producer.number, sequence_id=number)
        except Lost:
            pass
        except Refusal as error:
            if error.kind not in RETRIED:
                raise
        with self._changed:
            self._changed.wait_for(
                lambda: all(number in self._confirmed or not producer.open for number, _, producer in used), 15
            )
            lost = [each for each in left if each[0] not in self._confirmed]
        for _, _, producer in used:
            if not producer.open:
                self._producers.pop(producer.segment, None)
        self._met_sealed |= bool(lost)
        return lost

    def _segment(self, message: Any, active: list[Any]) -> Any:
        bugs = self._client.bugs
        key = message.get("key")
        if key is None:
            self._turn += 1
            return active[0 if "sticky-keyless" in bugs else self._turn % len(active)]
        if all(each.legacy_topic_name for each in active):
            raise Refusal("Other", "legacy segments are not built")
        if "misroute" in bugs:
            return active[len(key) % len(active)]
        low = self._client.is_m1 or "low-bits" in bugs
        found = m1_segment_hash(key) if low else segment_hash(key)
        return next(each for each in active if each.hash_start <= found <= each.hash_end)

    def _open(self, segment: Any) -> SegmentProducer:
        known = self._producers.get(segment.segment_id)
        if known is not None and known.open and not known.connection.lost:
            return known
        again = segment.segment_id in self._failed
        name = self.watched.name_of(segment)
        connection = self.watched.owner_of(name) if again else self.watched.broker_of(segment)
        self._failed.add(segment.segment_id)
        producer = SegmentProducer(connection, next(self._client.ids), segment.segment_id)
        self._client.listeners[connection, "producer_id", producer.number] = lambda said, _: self._hear(producer, said)
        connection.ask(
            T.PRODUCER,
            topic=name,
            producer_id=producer.number,
            producer_name=f"{self._name}-seg-{segment.segment_id}",
            user_provided_producer_name=True,
            producer_access_mode=self._access,
            metadata=[pb.KeyValue(key="__pulsar.v5.managed", value="true")],
        )
        self._failed.discard(segment.segment_id)
        self._producers[segment.segment_id] = producer
        return producer

    def _hear(self, producer: SegmentProducer, said: Any) -> None:
        with self._changed:
            name: str
            body: Any
            name, body = said or ("", None)
            if name == "SEND_RECEIPT":
                self._confirmed[body.sequence_id] = (
                    f"{producer.segment}:{body.message_id.ledgerId}:{body.message_id.entryId}"
                )
            elif name == "SEND_ERROR":
                self.fenced = self.fenced or refusal(body).kind == "Fenced"
                producer.open = False
            else:
                producer.open = False
            self._changed.notify_all()

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        for each in self._producers.values():
            if each.open and not each.connection.lost:
                each.connection.ask(T.CLOSE_PRODUCER, producer_id=each.number)
        self.watched.close()
