"""Connections of clients of scalable topics, written down by tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pulsarium.proto.entry import build
from pulsarium.proto.generated import PulsarApi_pb2 as pb

from .talk import MS, Talk

PARENT = "topic://public/default/x"
WHOLE, LOW, HIGH = (f"segment://public/default/x/{each}" for each in ("0000-ffff-0", "0000-7fff-1", "8000-ffff-2"))
LOW_KEY, HIGH_KEY = "a", "key"
NOW = 1_700_000_000_000  # milliseconds since the epoch
STREAM, CHECKPOINT = 0, 1
EXCLUSIVE, SHARED, KEY_SHARED = 0, 1, 3


class Scalable(Talk):
    """A connection of a client of scalable topics. One second passes after each layout."""

    def __init__(self) -> None:
        super().__init__(topic=WHOLE)
        self.client("CONNECT", client_version="Test-v1.0", protocol_version=21)
        flags = ["supports_scalable_topics"]
        self.broker("CONNECTED", server_version="Pulsar Server5.0.1", protocol_version=21, feature_flags=flags)
        self._requests = 500
        self._names: dict[int, str] = {}

    def pause(self) -> None:
        self.now += 1000 * MS

    def look_up(self, session: int = 1) -> None:
        self.client("SCALABLE_TOPIC_LOOKUP", session_id=session, topic=PARENT)

    def layout(self, *segments: tuple[int, int, int, bool], epoch: int = 0, session: int = 1) -> None:
        dag = pb.ScalableTopicDAG(epoch=epoch)
        for number, start, end, active in segments:
            state = pb.ACTIVE if active else pb.SEALED
            fields: dict[str, Any] = {"created_at_epoch": 0, "created_at_ms": 0, "state": state}
            dag.segments.add(segment_id=number, hash_start=start, hash_end=end, **fields)
        self.broker("SCALABLE_TOPIC_UPDATE", session_id=session, dag=dag, resolved_topic_name=PARENT)
        self.pause()

    def whole(self) -> None:
        self.look_up()
        self.layout((0, 0, 0xFFFF, True))

    def split(self) -> None:
        self.layout((0, 0, 0xFFFF, False), (1, 0, 0x7FFF, True), (2, 0x8000, 0xFFFF, True), epoch=1)

    def halves(self) -> None:
        self.whole()
        self.split()

    def open(self, topic: str, producer: int = 1, name: str = "", **fields: Any) -> None:
        self._requests += 1
        name = name or f"p-seg-{topic[-1]}"
        self._names[producer] = name
        said: dict[str, Any] = {
            "topic": topic,
            "producer_id": producer,
            "request_id": self._requests,
            "producer_name": name,
        }
        self.client("PRODUCER", **said, **fields)
        self.broker("PRODUCER_SUCCESS", request_id=self._requests, producer_name=name)

    def put(self, key: str, producer: int = 1, sequence: int = 0, *, receipt: bool = True) -> None:
        metadata = pb.MessageMetadata(
            producer_name=self._names[producer], sequence_id=sequence, publish_time=NOW, partition_key=key
        )
        self.client("SEND", build(metadata, b"x"), producer_id=producer, sequence_id=sequence)
        if receipt:
            self.broker("SEND_RECEIPT", producer_id=producer, sequence_id=sequence, message_id=(producer, sequence))

    def attach(self, topic: str, consumer: int = 1, type: int = EXCLUSIVE, **fields: Any) -> None:
        self._requests += 1
        said: dict[str, Any] = {"topic": topic, "subscription": "s", "subType": type, "consumer_id": consumer}
        self.client("SUBSCRIBE", **said, request_id=self._requests, consumer_name="c", **fields)
        self.broker("SUCCESS", request_id=self._requests)
        self.client("FLOW", consumer_id=consumer, messagePermits=10)

    def register(self, *topics: str, type: int = STREAM, consumer: int = 9, name: str = "c", buckets: int = 0) -> None:
        self._requests += 1
        said: dict[str, Any] = {"topic": PARENT, "subscription": "s", "consumer_name": name, "consumer_type": type}
        self.client("SCALABLE_TOPIC_SUBSCRIBE", **said, consumer_id=consumer, request_id=self._requests)
        assignment = _assignment(topics, buckets)
        self.broker("SCALABLE_TOPIC_SUBSCRIBE_RESPONSE", request_id=self._requests, assignment=assignment)
        self.pause()

    def assign(self, *topics: str, consumer: int = 9) -> None:
        self.broker("SCALABLE_TOPIC_ASSIGNMENT_UPDATE", consumer_id=consumer, assignment=_assignment(topics))
        self.pause()


def _assignment(topics: Iterable[str], buckets: int = 0) -> pb.ScalableConsumerAssignment:
    assignment = pb.ScalableConsumerAssignment(layout_epoch=1)
    for topic in topics:
        segment = assignment.segments.add(segment_id=int(topic[-1]), hash_start=0, hash_end=0, segment_topic=topic)
        for number in range(buckets):
            segment.bucket_ranges.add(start=number, end=number)
    return assignment
