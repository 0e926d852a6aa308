"""Records of one connection, written by tests. The records are one millisecond apart."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from pulsarium.capture.file import CaptureRecord, EventKind
from pulsarium.proto.batch import pack
from pulsarium.proto.commands import COMMANDS, Direction
from pulsarium.proto.entry import build
from pulsarium.proto.framing import frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, MessageMetadata, SingleMessageMetadata

CLIENT, BROKER = Direction.CLIENT, Direction.BROKER
TOPIC = "persistent://public/default/t"
MS = 1_000_000


def entry(messages: int = 1, sequence: int = 0) -> bytes:
    metadata = MessageMetadata(producer_name="p", sequence_id=sequence, publish_time=1_700_000_000_000)
    if messages == 1:
        return build(metadata, b"payload")
    metadata.num_messages_in_batch = messages
    return build(metadata, pack((SingleMessageMetadata(), b"payload") for _ in range(messages)))


def encoded(name: str, trailing: bytes = b"", **fields: Any) -> bytes:
    """Return the frame of a command. `message_id` is a pair such as (1, 2), or a list of pairs for ACK."""
    command = BaseCommand(type=name)
    body: Any = getattr(command, COMMANDS[command.type].field)
    body.SetInParent()
    for key, value in fields.items():
        if key == "message_id":
            for ledger, position in value if isinstance(value, list) else [value]:
                there = body.message_id.add() if isinstance(value, list) else body.message_id
                there.ledgerId, there.entryId = ledger, position
        elif key == "feature_flags":
            for flag in value:
                setattr(body.feature_flags, flag, True)
        elif isinstance(value, Message):
            getattr(body, key).CopyFrom(value)
        elif isinstance(value, list):
            getattr(body, key).extend(value)
        else:
            setattr(body, key, value)
    return frame(command.SerializePartialToString(), trailing)


class Talk:
    """The records of one connection."""

    def __init__(self, connection: int = 0, *, topic: str = TOPIC, opened: bool = True) -> None:
        self.connection = connection
        self.topic = topic
        self.records: list[CaptureRecord] = []
        self.now = 0
        if opened:
            self._add(EventKind.OPENED, CLIENT)

    def client(self, name: str, trailing: bytes = b"", **fields: Any) -> None:
        self.raw(CLIENT, encoded(name, trailing, **fields))

    def broker(self, name: str, trailing: bytes = b"", **fields: Any) -> None:
        self.raw(BROKER, encoded(name, trailing, **fields))

    def raw(self, sender: Direction, data: bytes, size: int | None = None) -> None:
        self._add(EventKind.FRAME, sender, data, len(data) if size is None else size)

    def close(self, sender: Direction = CLIENT, after_ms: int = 1, **note: Any) -> None:
        self.now += (after_ms - 1) * MS
        self._add(EventKind.CLOSED, sender, note=note)

    def _add(self, kind: EventKind, sender: Direction, data: bytes = b"", size: int = 0, note: Any = None) -> None:
        self.now += MS
        self.records.append(CaptureRecord(kind, self.connection, sender, self.now, self.now, data, size, note or {}))

    def greet(self, version: int = 21, broker_version: int = 21) -> None:
        self.client("CONNECT", client_version="Pulsar-Test-v1.2.3", protocol_version=version)
        self.broker("CONNECTED", server_version="b", protocol_version=min(version, broker_version))

    def produce(self, producer: int = 1, request: int = 100, **fields: Any) -> None:
        self.client("PRODUCER", topic=self.topic, producer_id=producer, request_id=request, **fields)
        self.broker("PRODUCER_SUCCESS", request_id=request, producer_name="p")

    def subscribe(self, consumer: int = 1, request: int = 200, kind: int = 1, permits: int = 10) -> None:
        """Subscribe, and grant permits. `kind` is a CommandSubscribe.SubType, and 1 is Shared."""
        self.client(
            "SUBSCRIBE",
            topic=self.topic,
            subscription="s",
            subType=kind,
            consumer_id=consumer,
            request_id=request,
            consumer_name="c",
        )
        self.broker("SUCCESS", request_id=request)
        self.client("FLOW", consumer_id=consumer, messagePermits=permits)

    def send(self, sequence: int, producer: int = 1, receipt: bool = True) -> None:
        self.client("SEND", entry(sequence=sequence), producer_id=producer, sequence_id=sequence)
        if receipt:
            self.receipt(sequence, producer)

    def receipt(self, sequence: int, producer: int = 1) -> None:
        self.broker("SEND_RECEIPT", producer_id=producer, sequence_id=sequence, message_id=(1, sequence))

    def deliver(self, position: int, consumer: int = 1, messages: int = 1) -> None:
        self.broker("MESSAGE", entry(messages), consumer_id=consumer, message_id=(1, position))

    def ack(self, *positions: int, consumer: int = 1, cumulative: bool = False) -> None:
        ids = [(1, position) for position in positions]
        self.client("ACK", consumer_id=consumer, ack_type=int(cumulative), message_id=ids)
