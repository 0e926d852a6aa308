"""Decode the entry of a MESSAGE: check, decrypt, decompress, and split it into its messages.

The order is fixed, because producers compress payloads before they encrypt them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from pulsarium.client.entry.crypto import ConsumerCryptoFailureAction, KeyReader
from pulsarium.client.entry.encryption import KeyAwaited, MessageDecryptor
from pulsarium.client.errors import CryptoError, FixError
from pulsarium.client.message_id import MOST_IN_BATCH
from pulsarium.proto import batch
from pulsarium.proto import entry as entries
from pulsarium.proto.compression import DEFAULT_LIMIT, decompress
from pulsarium.proto.errors import BatchError, CompressionError, EncryptionError, EntryError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of

# The index in the batch (-1 without a batch), the message's own metadata in a batch, its payload.
Single: TypeAlias = tuple[int, pb.SingleMessageMetadata | None, bytes]

_NO_BATCH = -1


class UnreadableEntry(FixError):
    """An entry that cannot be read, or is to be discarded.

    The consumer acknowledges the entry with `validation_error`.
    """

    def __init__(self, text: str, validation_error: pb.CommandAck.ValidationError) -> None:
        super().__init__(text)
        self.validation_error = validation_error


class Decoded(NamedTuple):
    """An entry whose payload is decrypted and, unless the entry is a chunk, decompressed."""

    metadata: pb.MessageMetadata
    payload: bytes
    broker_metadata: pb.BrokerEntryMetadata | None = None
    still_encrypted: bool = False
    """The payload is one message in its stored form, for CONSUME or a raw reader."""

    @property
    def is_chunk(self) -> bool:
        """Return whether the entry is one chunk of a message (PIP-37), to be joined with the other chunks by `join`."""
        return self.metadata.num_chunks_from_msg > 1 and not self.still_encrypted


class MessagePayloadProcessor(Protocol):
    """Find the messages of an entry whose payload is not in Pulsar's format (PIP-96)."""

    def process(
        self, metadata: pb.MessageMetadata, payload: bytes
    ) -> Iterable[tuple[int, pb.SingleMessageMetadata | None, bytes]]:
        """Return the messages of a payload, each as batch index (-1 without a batch), metadata and value.

        A message whose metadata is None has the entry's. A message that the processor leaves out is not delivered, and
        is acknowledged with the rest of its entry. `receive` raises an exception of the processor, and the entry stays
        unacknowledged.

        Args:
            metadata: The entry's metadata.
            payload: The entry's payload, decrypted and decompressed.
        """
        ...


class Decoder:
    """Decode the entries that one consumer receives."""

    def __init__(
        self,
        crypto_key_reader: KeyReader | None = None,
        *,
        crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL,
    ) -> None:
        self._decryptor = None if crypto_key_reader is None else MessageDecryptor(crypto_key_reader.get_private_key)
        self._failure_action = crypto_failure_action

    def decode(self, entry: bytes) -> Decoded:
        """Decode an entry, with or without checksum and broker metadata.

        Raise `UnreadableEntry` when the entry is damaged. When the entry cannot be decrypted, raise `CryptoError`
        (FAIL) or `UnreadableEntry` (DISCARD). Raise `KeyAwaited` for a key to be passed to `fetch`, after which the
        call is repeated.
        """
        try:
            broker_metadata, metadata, payload = entries.read(entry)
        except EntryError as error:
            raise UnreadableEntry(str(error), pb.CommandAck.ChecksumMismatch) from error
        if metadata.encryption_keys:
            try:
                payload = self._decrypt(metadata, payload)
            except CryptoError as error:
                return self._after_failure(Decoded(metadata, payload, broker_metadata, still_encrypted=True), error)
        decoded = Decoded(metadata, payload, broker_metadata)
        return decoded if not metadata.compression or decoded.is_chunk else _decompressed(decoded)

    async def fetch(self, awaited: KeyAwaited) -> None:
        """Await a key for the next call of `decode`."""
        assert self._decryptor is not None
        await self._decryptor.fetch(awaited)

    def _decrypt(self, metadata: pb.MessageMetadata, payload: bytes) -> bytes:
        if self._decryptor is None:
            names = ", ".join(text_of(key.key) for key in metadata.encryption_keys)
            raise CryptoError(f"the message is encrypted for {names}: give the consumer or reader a crypto_key_reader")
        try:
            return self._decryptor.decrypt(metadata, payload)
        except EncryptionError as error:
            raise CryptoError(str(error)) from error

    def _after_failure(self, encrypted: Decoded, error: CryptoError) -> Decoded:
        if self._failure_action is ConsumerCryptoFailureAction.CONSUME:
            return encrypted
        if self._failure_action is ConsumerCryptoFailureAction.DISCARD:
            raise UnreadableEntry(str(error), pb.CommandAck.DecryptionError) from error
        raise error


class RawDecoder(Decoder):
    """Deliver each entry in its stored form, as one message."""

    def decode(self, entry: bytes) -> Decoded:
        try:
            metadata = entries.parse_metadata(entry)
            return Decoded(metadata, entry, entries.parse_broker_metadata(entry), still_encrypted=True)
        except EntryError as error:
            raise UnreadableEntry(str(error), pb.CommandAck.ChecksumMismatch) from error


def join(chunks: Sequence[Decoded]) -> Decoded:
    """Join all chunks of a message, in their order. Raise `UnreadableEntry` when the payload cannot be decompressed."""
    payload = b"".join(chunk.payload for chunk in chunks)
    return _decompressed(chunks[-1]._replace(payload=payload), limit=max(DEFAULT_LIMIT, 64 * len(payload)))


def messages(
    decoded: Decoded, ack_set: Sequence[int] = (), processor: MessagePayloadProcessor | None = None
) -> list[Single]:
    """Return the messages of an entry that are still to be delivered.

    Messages that compaction removed are left out, and those that `ack_set` of the MESSAGE says are acknowledged.
    `ack_set` has 64-bit words, whose set bits are the unacknowledged batch indexes. An empty one means that none is
    acknowledged. Raise `UnreadableEntry` when a batch cannot be split, and any exception of `processor`.
    """
    metadata = decoded.metadata
    if decoded.still_encrypted or (processor is None and not metadata.HasField("num_messages_in_batch")):
        return [(_NO_BATCH, None, decoded.payload)]
    try:
        found = (processor or _Batches()).process(metadata, decoded.payload)
        return [single for single in found if _is_due(single, ack_set)]
    except BatchError as error:
        raise UnreadableEntry(str(error), pb.CommandAck.BatchDeSerializeError) from error


class _Batches:
    """The built-in `MessagePayloadProcessor`, for batches."""

    def process(self, metadata: pb.MessageMetadata, payload: bytes) -> list[Single]:
        singles = batch.unpack(payload, metadata.num_messages_in_batch, MOST_IN_BATCH)
        return [(index, single, message) for index, (single, message) in enumerate(singles)]


def _is_due(message: Single, ack_set: Sequence[int]) -> bool:
    index, single, _ = message
    if single is not None and single.compacted_out:
        return False
    if index < 0 or not ack_set:
        return True
    word, bit = divmod(index, 64)
    return word < len(ack_set) and bool(ack_set[word] >> bit & 1)


def _decompressed(decoded: Decoded, limit: int = DEFAULT_LIMIT) -> Decoded:
    metadata, payload = decoded.metadata, decoded.payload
    try:
        return decoded._replace(
            payload=decompress(metadata.compression, payload, metadata.uncompressed_size, limit=limit)
        )
    except CompressionError as error:
        raise UnreadableEntry(str(error), pb.CommandAck.DecompressionError) from error
