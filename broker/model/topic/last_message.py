"""Find the last message for GET_LAST_MESSAGE_ID, in the topic or in its compacted ledger."""

from __future__ import annotations

from typing import NamedTuple

from pulsarium.broker.model.errors import MetadataError
from pulsarium.broker.model.ledger.interceptors import is_marker
from pulsarium.broker.model.ledger.position import EARLIEST, Position
from pulsarium.broker.model.subscription.persistent import SubscribedPersistentTopic
from pulsarium.broker.storage.interface import StorageError
from pulsarium.proto.entry import parse_metadata, payload_of
from pulsarium.proto.errors import EntryError, ProtocolError
from pulsarium.proto.last_entry import buffer_of, last_batch_index


class LastMessage(NamedTuple):
    """The id of a last message.

    `batch_index` is -1 for an entry that is no batch. It is None when the client searches the entry in `buffer` itself
    (PIP-429).
    """

    position: Position
    batch_index: int | None = -1
    buffer: bytes = b""


def last_message(
    topic: SubscribedPersistentTopic, *, read_compacted: bool = False, as_buffer: bool = False
) -> LastMessage:
    """Return the last message, for a consumer with or without read_compacted.

    With `as_buffer`, return the bytes of a compacted entry instead of its batch index. Raise `MetadataError` if the
    entry cannot be read.
    """
    try:
        found = _last_retained(topic, as_buffer) if read_compacted else None
    except (ProtocolError, StorageError) as error:
        raise MetadataError(f"Failed to read last entry of the compacted Ledger {error}") from None
    try:
        return found or _last_of_all(topic)
    except (EntryError, StorageError) as error:
        raise MetadataError(f"Failed to get batch size for entry {error}") from None


def _last_of_all(topic: SubscribedPersistentTopic) -> LastMessage:
    """Return the last message of the topic, or -1:-1 if the topic is empty."""
    last = _last_dispatchable(topic)  # EARLIEST of a topic that is new, or was trimmed
    known, index = topic.last_batch_index
    if last != known and last != EARLIEST:
        metadata = parse_metadata(topic.ledger.read_now(last))
        index = metadata.num_messages_in_batch - 1 if metadata.HasField("num_messages_in_batch") else -1
        topic.last_batch_index = last, index
    return LastMessage(last, index if last != EARLIEST else -1)


def _last_dispatchable(topic: SubscribedPersistentTopic) -> Position:
    """Return the last entry that is no marker and in no open or aborted transaction, or EARLIEST.

    The topic remembers the last result and how far it goes, so that no entry is read twice.
    """
    ledger = topic.ledger
    through, found = topic.last_dispatchable
    position = newest = ledger.max_read
    while position > through and ledger.is_valid(position):
        entry = ledger.read_now(position)
        if not (is_marker(entry) or ledger.transactions.hides(position, entry)):
            found = position
            break
        position = ledger.previous(position)
    topic.last_dispatchable = newest, found
    return found if ledger.is_valid(found) else EARLIEST


def _last_retained(topic: SubscribedPersistentTopic, as_buffer: bool) -> LastMessage | None:
    """Return the last message that compaction kept, or None if the topic has newer ones or was never compacted.

    If compaction kept nothing, return -1:-1 with batch index 0, as Pulsar does.
    """
    compacted = topic.compaction.compacted
    if compacted.horizon is None or _last_dispatchable(topic) > compacted.horizon:
        return None
    found = compacted.last_entry()
    if found is None:
        return LastMessage(EARLIEST, 0)
    position, entry = found
    if as_buffer:
        return LastMessage(position, None, buffer_of(entry))
    return LastMessage(position, last_batch_index(parse_metadata(entry), payload_of(entry)))
