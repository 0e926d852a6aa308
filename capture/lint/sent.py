"""What a SEND carries, read once however many rules look at it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from pulsarium.capture.lint.frames import Frame
from pulsarium.proto.batch import unpack
from pulsarium.proto.compression import decompress
from pulsarium.proto.entry import parse_metadata, payload_of
from pulsarium.proto.errors import BatchError, CompressionError, EntryError
from pulsarium.proto.generated.PulsarApi_pb2 import MessageMetadata

_MOST_OPENED = 16 << 20
"""Bytes of a decompressed payload; larger ones are not looked into."""


class Sent:
    """An entry; parts that cannot be read are absent, and `wrong_*` says why."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame

    @cached_property
    def metadata(self) -> MessageMetadata | None:
        try:
            return parse_metadata(self.frame.entry) if self.frame.whole else None
        except EntryError:
            return None

    @cached_property
    def payload(self) -> bytes:
        """As it was sent."""
        return b"" if self.metadata is None else payload_of(self.frame.entry)

    @property
    def chunked(self) -> bool:
        metadata = self.metadata
        return metadata is not None and metadata.num_chunks_from_msg > 1

    @property
    def batched(self) -> bool:
        return self.metadata is not None and self.metadata.HasField("num_messages_in_batch")

    @cached_property
    def _opened(self) -> bytes | CompressionError | None:
        """The payload as the application gave it; None where nobody can say: encrypted, a part of a message, huge."""
        metadata = self.metadata
        if metadata is None or metadata.encryption_keys or self.chunked or metadata.uncompressed_size > _MOST_OPENED:
            return None
        try:
            return decompress(metadata.compression, self.payload, metadata.uncompressed_size)
        except CompressionError as error:
            return error

    @property
    def wrong_compression(self) -> str:
        opened = self._opened
        return str(opened) if isinstance(opened, CompressionError) else ""

    @property
    def plain_payload(self) -> bytes | None:
        """Decompressed, where it can be."""
        return self._opened if isinstance(self._opened, bytes) else None

    @cached_property
    def _messages(self) -> list[tuple[Any, bytes]] | BatchError:
        if self.metadata is None or not self.batched or self.plain_payload is None:
            return []
        try:
            return unpack(self.plain_payload, self.metadata.num_messages_in_batch)
        except BatchError as error:
            return error

    @property
    def wrong_batch(self) -> str:
        return str(self._messages) if isinstance(self._messages, BatchError) else ""

    @property
    def messages(self) -> list[tuple[Any, bytes]]:
        """Of a batch that can be read: their metadata and payloads. A message alone: the entry's own."""
        if self.metadata is None or isinstance(self._messages, BatchError):
            return []
        if self.batched or self.plain_payload is None:
            return self._messages
        return [(self.metadata, self.plain_payload)]
