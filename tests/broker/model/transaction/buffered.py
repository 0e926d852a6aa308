"""A topic with a transaction buffer, without connections, whose broker can be restarted and killed."""

from __future__ import annotations

from typing import Any, cast

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.config import PIP, Config, Profile
from pulsarium.broker.model.ledger.managed_ledger import PendingPublish
from pulsarium.broker.model.ledger.position import EARLIEST, Position
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.model.topic.producers import Producer
from pulsarium.broker.model.transaction.buffer import TransactionBuffer
from pulsarium.proto.entry import payload_of, visible_metadata
from pulsarium.proto.message_id import TxnId
from pulsarium.proto.topic_name import TopicName
from tests.broker.held import HeldStorage
from tests.broker.model.stores import Publisher
from tests.broker.wire import TOPIC, batch_of, plain

NAME = TopicName.parse(TOPIC)
NO_LOW_WATERMARK = -1


def txn(least: int, most: int = 0) -> TxnId:
    return TxnId(most, least)


def in_txn(of: TxnId) -> dict[str, Any]:
    """Return the metadata fields of an entry in this transaction."""
    return {"txnid_most_bits": of.most, "txnid_least_bits": of.least}


class Buffered:
    """A broker with one topic, whose entries are identified by their payloads."""

    def __init__(
        self, disk: HeldStorage | None = None, profile: Profile = PIP, *, enabled: bool = True, **config: Any
    ) -> None:
        self.disk = disk or HeldStorage()
        self._profile = profile
        self._config = Config(transactionCoordinatorEnabled=enabled, **config)
        self.publisher = Publisher()
        self.cluster = Cluster(self._config, profile, self.disk)

    @property
    def topic(self) -> PersistentTopic:
        topic = self.cluster.topics.create(NAME)
        assert isinstance(topic, PersistentTopic)
        return topic

    @property
    def buffer(self) -> TransactionBuffer:
        buffer = self.topic.transactions
        assert buffer is not None
        return buffer

    # actions of clients

    def publish(self, *payloads: bytes, of: TxnId | None = None, **metadata: Any) -> None:
        """Publish one entry in the current turn, as a batch when there are several payloads."""
        fields = metadata if of is None else metadata | in_txn(of)
        entry = plain(payloads[0], **fields) if len(payloads) == 1 else batch_of(*payloads, **fields)
        pending = PendingPublish(self.publisher, entry, messages=len(payloads), txn=of)
        self.topic.publish(cast(Producer, self.publisher), pending)

    def sent(self, *payloads: bytes, of: TxnId | None = None, **metadata: Any) -> Position:
        """Publish one entry in a turn of its own, and return its position."""
        self.publish(*payloads, of=of, **metadata)
        self.finish()
        return self.publisher.kept[-1]

    def end(self, of: TxnId, *, commit: bool, low_watermark: int = NO_LOW_WATERMARK) -> None:
        self.buffer.end(of, commit=commit, low_watermark=low_watermark)

    def ended(self, of: TxnId, *, commit: bool, low_watermark: int = NO_LOW_WATERMARK) -> None:
        self.end(of, commit=commit, low_watermark=low_watermark)
        self.finish()

    def finish(self) -> None:
        self.cluster.turn.finish()

    # unloading and kills

    def reload(self) -> None:
        self.finish()
        self.cluster.topics.unload(self.topic.name)
        self.finish()

    def kill(self) -> None:
        """Kill the broker, and start another one on the same disk. Pending requests are never answered."""
        self.disk = self.disk.left_behind()
        self.cluster = Cluster(self._config, self._profile, self.disk)

    # reads

    def visible(self) -> list[bytes]:
        """Return the payloads that a new reader receives, from the first entry on."""
        ledger = self.topic.ledger
        cursor = self.topic.log.reader_cursor("reader", ledger.previous(ledger.first_position()))
        cursor.reset(EARLIEST)
        found = []
        while (entries := cursor.read(2, lambda: None)) != []:
            for position, entry in entries or ():  # None means that the next read finds them in memory
                if visible_metadata(entry) is not None and not ledger.transactions.hides(position, entry):
                    found.append(payload_of(entry))
        return found

    def stored(self) -> dict[str, str]:
        """Return what the store has of the topic's transactions, by name."""
        folder = "/transactions/buffers/public/default/persistent/t/"
        metadata = self.disk.metadata
        return {path[len(folder) :]: metadata[path].decode() for path in metadata if path.startswith(folder)}
