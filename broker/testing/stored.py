"""The messages that a topic has for consumers, as a producer sent them: none of transactions that are not committed."""

from __future__ import annotations

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.ledger.position import EARLIEST, Position
from pulsarium.broker.model.subscription.persistent import SubscribedPersistentTopic
from pulsarium.broker.model.topic.base import Topic
from pulsarium.proto.batch import unpack
from pulsarium.proto.compression import decompress
from pulsarium.proto.entry import payload_of, visible_metadata
from pulsarium.proto.errors import ProtocolError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName


def topics_of(cluster: Cluster, name: TopicName) -> list[Topic]:
    """The topic, or its partitions; none where there is no such topic."""
    partitions = cluster.metadata.partitions_of(name)
    names = [name.partition(index) for index in range(partitions)] if partitions else [name]
    return [cluster.topics.find(each) for each in names if cluster.topics.exists(each)]


class Stored:
    """The messages of one persistent topic, read once each."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        """Decompressed; of encrypted messages, what is encrypted. Those of one batch that is encrypted are one."""
        self.counts: list[tuple[Position, int]] = []
        """Entries with their messages; a chunk has none, but for the last."""
        self._last = EARLIEST
        self._chunks: dict[str, list[bytes]] = {}

    def read(self, topic: SubscribedPersistentTopic) -> None:
        """Look at what came since."""
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
        values = _values(metadata, payload)
        self.counts.append((position, metadata.num_messages_in_batch))
        self.values += values


def _values(metadata: pb.MessageMetadata, payload: bytes) -> list[bytes]:
    if metadata.encryption_keys:
        return [payload] * metadata.num_messages_in_batch
    try:
        payload = decompress(metadata.compression, payload, metadata.uncompressed_size)
        if not metadata.HasField("num_messages_in_batch"):
            return [payload]
        return [value for _, value in unpack(payload, metadata.num_messages_in_batch)]
    except ProtocolError:  # the broker takes what it does not understand
        return [payload] * metadata.num_messages_in_batch
