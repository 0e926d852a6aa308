"""Encode messages to the entry of a SEND: batch, compress and encrypt them, in that order."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence

import anyio
from anyio.abc import TaskGroup

from pulsarium.client.entry.crypto import KeyReader
from pulsarium.client.entry.encryption import ROTATION, MessageEncryptor
from pulsarium.client.errors import CryptoError, InvalidConfiguration
from pulsarium.proto import batch
from pulsarium.proto import entry as entries
from pulsarium.proto.compression import compress
from pulsarium.proto.errors import EncryptionError
from pulsarium.proto.generated import PulsarApi_pb2 as pb

RETRY = 60.0  # seconds until a key reader that failed is asked again


class Encoder:
    """Encode the messages that one producer sends. Each call takes new metadata, and completes the metadata."""

    def __init__(
        self,
        compression_type: pb.CompressionType = pb.NONE,
        encryption_keys: Collection[str] = (),
        crypto_key_reader: KeyReader | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Load the encryption keys, and raise `CryptoError` when one of them cannot be used.

        `clock` returns seconds, by which data keys are replaced. Keys that must be awaited are loaded by `open`.
        """
        self._scope: anyio.CancelScope | None = None  # of the task of `open`
        self._compression_type = compression_type
        self._clock = clock
        self._encryptor = _encryptor(encryption_keys, crypto_key_reader, clock())

    async def open(self, tasks: TaskGroup) -> None:
        """Load the keys of an asynchronous key reader, and start a task that replaces the data key.

        Raise `CryptoError` when a key cannot be used.
        """
        encryptor = self._encryptor
        if encryptor is None or not encryptor.is_async:
            return
        self._scope = scope = anyio.CancelScope()
        try:
            await encryptor.rotate()
        except EncryptionError as error:
            raise CryptoError(str(error)) from error
        tasks.start_soon(self._rotate, encryptor, scope)

    def close(self) -> None:
        """End the task of `open`."""
        if self._scope is not None:
            self._scope.cancel()

    async def _rotate(self, encryptor: MessageEncryptor, scope: anyio.CancelScope) -> None:
        pause = ROTATION
        with scope:
            while True:
                await anyio.sleep(pause)
                try:
                    await encryptor.rotate()
                    pause = ROTATION
                except EncryptionError:  # the next message raises it
                    pause = RETRY

    def single(self, metadata: pb.MessageMetadata, payload: bytes) -> bytes:
        """Return the entry of one message."""
        return self.seal(metadata, self.compress(metadata, payload))

    def batch(self, metadata: pb.MessageMetadata, messages: Sequence[tuple[pb.SingleMessageMetadata, bytes]]) -> bytes:
        """Return the entry of a batch, even of one message. `metadata` is that of the whole batch."""
        metadata.num_messages_in_batch = len(messages)
        return self.single(metadata, batch.pack(messages))

    def compress(self, metadata: pb.MessageMetadata, payload: bytes) -> bytes:
        """Compress the payload of one entry, or of a whole message that is chunked afterwards."""
        if not payload and self._encryptor is not None:
            metadata.uncompressed_size = 0  # else compaction takes the encrypted form of an empty payload for a value
        if self._compression_type == pb.NONE or not payload:  # the C++ client cannot read an empty zlib payload
            return payload
        metadata.compression = self._compression_type
        metadata.uncompressed_size = len(payload)
        return compress(self._compression_type, payload)

    def seal(self, metadata: pb.MessageMetadata, payload: bytes) -> bytes:
        """Return the entry of a compressed payload, or of one chunk of it."""
        if self._encryptor is not None:
            try:
                payload = self._encryptor.encrypt(metadata, payload, self._clock())
            except EncryptionError as error:
                raise CryptoError(str(error)) from error
        return entries.build(metadata, payload)


def _encryptor(names: Collection[str], reader: KeyReader | None, now: float) -> MessageEncryptor | None:
    if isinstance(names, str) or any(not name for name in names):
        raise InvalidConfiguration(f"encryption_keys {names!r}: give a list of names, none of them empty")
    if not names:
        return None
    if reader is None:
        raise CryptoError(f"to encrypt for {', '.join(names)} the producer needs a crypto_key_reader")
    try:
        return MessageEncryptor(tuple(names), reader.get_public_key, now)
    except EncryptionError as error:
        raise CryptoError(str(error)) from error
