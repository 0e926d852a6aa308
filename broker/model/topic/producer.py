"""A producer: one client's way into a topic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pulsarium.broker.model.client import Assigned, Client
from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.broker.model.ledger.position import signed, unsigned
from pulsarium.broker.model.ledger.publication import Pending
from pulsarium.broker.model.rate.publish import Publisher
from pulsarium.proto.entry import checksum_matches
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.broker.model.topic.base import Topic
    from pulsarium.proto.message_id import TxnId


class ProducerClient(Client, Publisher, Protocol):
    """One client connection, seen from producers."""

    unstored: int  # messages for non-persistent topics that it sent in this turn

    @property
    def supports_partial_producer(self) -> bool: ...

    def send_receipts(self, producer_id: int, entries: Sequence[Pending]) -> None:
        """Send SEND_RECEIPT for each of `entries`."""
        ...

    def send_error(self, producer_id: int, sequence_id: int, code: int, text: str) -> None: ...

    def producer_ready(self, producer: Producer) -> None:
        """It is a waiting producer's turn (WaitForExclusive)."""
        ...

    def error(self, request_id: int, code: int, text: str) -> None: ...

    def close_producer(self, producer_id: int, assigned: Assigned | None = None) -> None:
        """Tell the client that the broker closed its producer, and forget it (cmd 15)."""
        ...

    def forget_producer(self, producer_id: int) -> None:
        """Drop the producer without a word (ExclusiveWithFencing)."""
        ...

    def publish_finished(self, count: int) -> None:
        """Publishes of this connection were answered (maxPendingPublishRequestsPerConnection)."""
        ...


@dataclass(slots=True)
class ProducerOptions:
    """What PRODUCER says of a producer."""

    producer_id: int
    request_id: int
    name: str
    encrypted: bool = False
    access_mode: int = pb.Shared
    topic_epoch: int | None = None
    schema_version: bytes = b""
    metadata: dict[str, str] = field(default_factory=dict)


class Producer:
    """Takes SEND, answers with receipts when entries are committed."""

    __slots__ = (
        "access_mode",
        "bytes_in",
        "client",
        "closed",
        "connected_ms",
        "dropped",
        "encrypted",
        "messages_in",
        "metadata",
        "name",
        "producer_id",
        "request_id",
        "schema_version",
        "topic",
        "topic_epoch",
    )

    def __init__(self, client: ProducerClient, topic: Topic, options: ProducerOptions, now_ms: int) -> None:
        self.client = client
        self.topic = topic
        self.producer_id = options.producer_id
        self.request_id = options.request_id
        self.name = options.name
        self.encrypted = options.encrypted
        self.access_mode = options.access_mode
        self.topic_epoch = options.topic_epoch
        self.schema_version = options.schema_version
        self.metadata = options.metadata
        self.connected_ms = now_ms
        self.messages_in = 0
        self.bytes_in = 0
        self.dropped = 0  # messages that came too fast for a non-persistent topic
        self.closed = False

    @property
    def last_sequence_id(self) -> int:
        """What PRODUCER_SUCCESS says that the topic has already."""
        return self.topic.last_sequence_id(self.name)

    def publish(
        self,
        sequence_id: int,
        highest_sequence_id: int,
        messages: int,
        entry: bytes,
        is_chunk: bool = False,
        txn: TxnId | None = None,
    ) -> None:
        """SEND: check the entry and hand it to the topic."""
        if checksum_matches(entry) is False:
            self.refuse(pb.ChecksumError, "Checksum failed on the broker", sequence_id, highest_sequence_id)
            return
        topic = self.topic
        checks, size = topic.checks, len(entry)
        try:
            if checks is not None:
                checks.check_encryption(entry)
            self.messages_in += messages
            self.bytes_in += size
            topic.messages_in += messages
            topic.bytes_in += size
            if checks is not None:
                checks.count(self.client, messages, size)
                checks.check_limits(entry, is_chunk)
            topic.publish(self, sequence_id, highest_sequence_id, messages, entry, is_chunk, txn)
        except BrokerServiceError as error:
            self.refuse(error.code, error.text, sequence_id, highest_sequence_id)

    def refuse(self, code: int, text: str, sequence_id: int, highest_sequence_id: int) -> None:
        """Answer a SEND with SEND_ERROR."""
        answered = max(signed(sequence_id), signed(highest_sequence_id))  # no highest one is -1
        self.client.send_error(self.producer_id, unsigned(answered), code, text)
        self.client.publish_finished(1)

    def persisted(self, entries: Sequence[Pending]) -> None:
        """The entries are committed."""
        self.client.send_receipts(self.producer_id, entries)
        self.client.publish_finished(len(entries))

    def forgotten(self, entries: Sequence[Pending]) -> None:
        """The topic was deleted meanwhile."""
        self.client.publish_finished(len(entries))

    def failed(self, entries: Sequence[Pending], error: Exception) -> None:
        """The entries could not be committed: clients re-create their producer on this (cmd 8)."""
        for entry in entries:
            self.refuse(pb.PersistenceError, str(error), entry.sequence_id, entry.highest_sequence_id)
