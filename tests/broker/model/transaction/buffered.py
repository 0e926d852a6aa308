"""A topic with a transaction buffer, without wire, that can be unloaded, restarted and killed."""

from __future__ import annotations

from typing import Any, cast

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.config import PIP, Config, Profile
from pulsarium.broker.model.ledger.managed_ledger import Pending
from pulsarium.broker.model.ledger.position import EARLIEST, Position
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.model.topic.producers import Producer
from pulsarium.broker.model.transaction.buffer import TransactionBuffer
from pulsarium.proto.entry import payload_of, visible_metadata
from pulsarium.proto.message_id import TxnId
from pulsarium.proto.topic_name import TopicName
from tests.broker.model.stores import Publisher
from tests.broker.subscription_disk import Disk
from tests.broker.wire import TOPIC, batch_of, plain

NAME = TopicName.parse(TOPIC)
NO_LOW_WATERMARK = -1


def txn(least: int, most: int = 0) -> TxnId:
    return TxnId(most, least)


def in_txn(of: TxnId) -> dict[str, Any]:
    """The fields of an entry's metadata."""
    return {"txnid_most_bits": of.most, "txnid_least_bits": of.least}


class Buffered:
    """Entries are told apart by their payloads."""

    def __init__(
        self, disk: Disk | None = None, profile: Profile = PIP, *, enabled: bool = True, **config: Any
    ) -> None:
        self.disk = disk or Disk()
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

    # what clients do

    def publish(self, *payloads: bytes, of: TxnId | None = None, **metadata: Any) -> None:
        """One entry, a batch where there are several payloads, as part of the turn."""
        fields = metadata if of is None else metadata | in_txn(of)
        entry = plain(payloads[0], **fields) if len(payloads) == 1 else batch_of(*payloads, **fields)
        pending = Pending(self.publisher, entry, messages=len(payloads), txn=of)
        self.topic.publish(cast(Producer, self.publisher), pending)

    def sent(self, *payloads: bytes, of: TxnId | None = None, **metadata: Any) -> Position:
        """The same in a turn of its own; where it stands."""
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

    # what becomes of the broker

    def reload(self) -> None:
        self.finish()
        self.cluster.topics.unload(self.topic.name)
        self.finish()

    def kill(self) -> None:
        """Another broker goes on with what is on disk; whoever waited never hears."""
        self.disk = self.disk.left_behind()
        self.cluster = Cluster(self._config, self._profile, self.disk)

    # what consumers see

    def visible(self) -> list[bytes]:
        """What a new reader is given, from the first entry on."""
        ledger = self.topic.ledger
        cursor = self.topic.log.reader_cursor("reader", ledger.previous(ledger.first_position()))
        cursor.reset(EARLIEST)
        found = []
        while (entries := cursor.read(2, lambda: None)) != []:
            for position, entry in entries or ():  # None: it was read from disk, and is there now
                if visible_metadata(entry) is not None and not ledger.transactions.hides(position, entry):
                    found.append(payload_of(entry))
        return found

    def stored(self) -> dict[str, str]:
        """What the store has of the topic's transactions."""
        folder = "/transactions/buffers/public/default/persistent/t/"
        metadata = self.disk.metadata
        return {path[len(folder) :]: metadata[path].decode() for path in metadata if path.startswith(folder)}
