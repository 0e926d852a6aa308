"""PIP-429: the last message's id, computed from the last compacted entry that a v22 broker sends behind its answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pulsarium.client.entry.crypto import KeyReader
from pulsarium.client.entry.decoding import Decoder
from pulsarium.client.errors import CryptoError, InvalidMessage, PulsarError
from pulsarium.client.message_id import MessageId
from pulsarium.proto.entry import split
from pulsarium.proto.errors import BatchError, EntryError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.last_entry import known_batch_index, last_kept


@dataclass(frozen=True, slots=True)
class LastEntry:
    """The last entry of a compacted topic (S429-22)."""

    ledger_id: int
    entry_id: int
    partition_index: int
    """-1: the topic is no partition."""
    metadata_buffer: bytes
    """A serialized MessageMetadata, as it was stored."""
    payload_buffer: bytes
    """The payload, decrypted and decompressed; as it was stored where there is no key for its encryption_keys."""


class PayloadToMessageIdConverter(Protocol):
    """Says which message of the last entry is the last, for a compaction service with a format of its own."""

    def convert(self, last_entry: LastEntry) -> MessageId:
        """The id of the last message that the consumer will get.

        What it raises is raised by `get_last_message_ids` and `has_message_available` (S429-24).
        """
        ...


class DefaultPayloadToMessageIdConverter:
    """Understands what Pulsar's own compaction writes, with `compacted_batch_indexes` (field 31) and without."""

    def convert(self, last_entry: LastEntry) -> MessageId:
        """The last message that is not compacted out; InvalidMessage if there is none, or the entry is broken.

        Looks where the broker does, in its order (S429-16), but reads what is encrypted. Without a key all of it
        counts, because Pulsar's compaction leaves it whole (S429-17).
        """
        metadata = pb.MessageMetadata.FromString(last_entry.metadata_buffer)
        index = known_batch_index(metadata)
        if index is None or (metadata.encryption_keys and not metadata.compacted_batch_indexes and index >= 0):
            try:
                index = last_kept(last_entry.payload_buffer, metadata.num_messages_in_batch)
            except BatchError as error:
                if index is None:
                    raise InvalidMessage(f"last entry: {error}") from error
        size = metadata.num_messages_in_batch if index >= 0 else 0
        return MessageId(last_entry.ledger_id, last_entry.entry_id, last_entry.partition_index, index, size)


class LastMessageIds:
    """Reads the answers to GET_LAST_MESSAGE_ID of one consumer."""

    def __init__(
        self, crypto_key_reader: KeyReader | None = None, converter: PayloadToMessageIdConverter | None = None
    ) -> None:
        """Read entries with these keys; whatever the consumer does with what it cannot decrypt."""
        self._decoder = Decoder(crypto_key_reader)
        self._converter = converter or DefaultPayloadToMessageIdConverter()

    def read(self, response: pb.CommandGetLastMessageIdResponse, buffer: bytes) -> MessageId:
        """The last message's id: the answer's own where no entry follows it (S429-08), else what the converter says.

        InvalidMessage if the entry is broken. One that cannot be decrypted is for the converter to judge.
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
