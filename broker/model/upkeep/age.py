"""How old entries are: by the broker's stamp where there is one, else by publish_time (B-34)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pulsarium.broker.model.ledger.position import Position, signed
from pulsarium.broker.model.ledger.sequence import LedgerSequence
from pulsarium.broker.storage.errors import DamagedEntriesError
from pulsarium.proto.entry import parse_broker_metadata, parse_metadata
from pulsarium.proto.errors import EntryError

if TYPE_CHECKING:
    from pulsarium.broker.model.subscription.persistent import SubscribedPersistentTopic


def published_before(time_ms: int) -> Callable[[bytes], bool]:
    """Whether an entry is older than that."""

    def matches(entry: bytes) -> bool:
        stamp = parse_broker_metadata(entry)
        if stamp is not None and stamp.HasField("broker_timestamp"):
            return signed(stamp.broker_timestamp) < time_ms
        try:
            return signed(parse_metadata(entry).publish_time) < time_ms
        except EntryError:  # as in Pulsar
            return False

    return matches


def last_published_before(topic: SubscribedPersistentTopic, time_ms: int) -> Position | None:
    """The last entry that is older than that. Raises StorageError when what it looks at is damaged, unless
    autoSkipNonRecoverableData lets it look elsewhere."""
    skips = topic.stores.config.autoSkipNonRecoverableData
    return topic.ledger.find_last(published_before(time_ms), skips_damaged=skips)


def is_older(ledger: LedgerSequence, position: Position, seconds: int, now_ms: int) -> bool:
    """Whether the entry there is older than so many seconds, or damaged, as in Pulsar; 0: nothing is."""
    if not seconds or not ledger.is_valid(position):
        return False
    try:
        return published_before(now_ms - seconds * 1000)(ledger.read_now(position))
    except DamagedEntriesError:
        return True
