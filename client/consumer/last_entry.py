"""Find the id of the last message in the last compacted entry, which a v22 broker sends with its answer (PIP-429)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pulsarium.client.entry.crypto import KeyReader
from pulsarium.client.entry.decoding import Decoder
from pulsarium.client.entry.encryption import KeyAwaited
from pulsarium.client.errors import CryptoError, InvalidMessage, PulsarError
from pulsarium.client.message_id import MOST_IN_BATCH, MessageId
from pulsarium.proto.entry import split
from pulsarium.proto.errors import BatchError, EntryError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.last_entry import known_batch_index, last_kept


@dataclass(frozen=True, slots=True)
class LastEntry:
    """The last entry of a compacted topic."""

    ledger_id: int
    entry_id: int
    partition_index: int
    """The partition, or -1 for a topic without partitions."""
    metadata_buffer: bytes
    """The stored MessageMetadata, serialized."""
    payload_buffer: bytes
    """The payload, decrypted and decompressed. Without a key for `encryption_keys`, it is the stored one."""


class PayloadToMessageIdConverter(Protocol):
    """Find the last message of an entry, for a compaction service with a format of its own."""

    def convert(self, last_entry: LastEntry) -> MessageId:
        """Return the id of the last message that the consumer receives.

        `get_last_message_ids` and `has_message_available` raise the converter's exceptions.

        Args:
            last_entry: The last entry of the compacted topic.
        """
        ...


class DefaultPayloadToMessageIdConverter:
    """Find the last message of an entry that Pulsar's own compaction wrote.

    The entry may have `compacted_batch_indexes` (field 31).
    """

    def convert(self, last_entry: LastEntry) -> MessageId:
        """Return the last message that compaction has not removed.

        The search follows the broker's order, but includes encrypted batches. Without a key, all messages of
        such a batch count, because Pulsar's compaction keeps it whole.

        Args:
            last_entry: The last entry of the compacted topic.

        Raises:
            InvalidMessage: The entry is damaged, or compaction has removed all its messages.
        """
        metadata = pb.MessageMetadata.FromString(last_entry.metadata_buffer)
        index = known_batch_index(metadata)
        if index is None or (metadata.encryption_keys and not metadata.compacted_batch_indexes and index >= 0):
            try:
                index = last_kept(last_entry.payload_buffer, metadata.num_messages_in_batch, MOST_IN_BATCH)
            except BatchError as error:
                if index is None:
                    raise InvalidMessage(f"last entry: {error}") from error
        size = metadata.num_messages_in_batch if index >= 0 else 0
        return MessageId(last_entry.ledger_id, last_entry.entry_id, last_entry.partition_index, index, size)


class LastMessageIds:
    """Read the answers to GET_LAST_MESSAGE_ID for one consumer."""

    def __init__(
        self, crypto_key_reader: KeyReader | None = None, converter: PayloadToMessageIdConverter | None = None
    ) -> None:
        """Read entries with these keys, whatever the consumer's `crypto_failure_action` is."""
        self._decoder = Decoder(crypto_key_reader)
        self._converter = converter or DefaultPayloadToMessageIdConverter()

    async def read_with_keys(self, response: pb.CommandGetLastMessageIdResponse, buffer: bytes) -> MessageId:
        """Return the last message's id as `read` does, and await the keys that it needs."""
        while True:
            try:
                return self.read(response, buffer)
            except KeyAwaited as awaited:
                await self._decoder.fetch(awaited)

    def read(self, response: pb.CommandGetLastMessageIdResponse, buffer: bytes) -> MessageId:
        """Return the last message's id: that of the answer without an entry, and otherwise the converter's.

        Raise `InvalidMessage` when the entry is damaged. The converter gets an entry that cannot be decrypted in its
        stored form.
        """
        answered = MessageId.from_data(response.last_message_id)
        if not buffer:
            return answered
        where = answered.ledger_id, answered.entry_id, answered.partition
        try:
            stored = split(buffer)
        except EntryError as error:
            raise InvalidMessage(f"last entry: {error}") from error
        try:
            payload = self._decoder.decode(buffer).payload
        except CryptoError:
            payload = stored.payload
        except PulsarError as error:
            raise InvalidMessage(f"last entry: {error}") from error
        return self._converter.convert(LastEntry(*where, stored.metadata_bytes, payload))
