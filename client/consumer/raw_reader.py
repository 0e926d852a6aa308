"""A reader of entries in their stored form: compressed and encrypted, with whole batches and single chunks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from pulsarium.client.blocks import Closing
from pulsarium.client.consumer.options import ConsumerOptions, ReaderOptions, common_to
from pulsarium.client.consumer.reader import Reader
from pulsarium.client.consumer.start import Start
from pulsarium.client.core import Core
from pulsarium.client.entry.decoding import RawDecoder
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.proto.entry import payload_of, strip_broker_metadata
from pulsarium.proto.generated import PulsarApi_pb2 as pb


class RawMessage(NamedTuple):
    """An entry of a topic."""

    message_id: MessageId
    headers_and_payload: bytes
    """The entry as its producer sent it: magic number and checksum (if present), metadata with its size, payload."""
    metadata: pb.MessageMetadata
    """The metadata in `headers_and_payload`, parsed."""
    broker_metadata: pb.BrokerEntryMetadata | None
    """The broker's metadata of the entry (PIP-70), where the broker sends it."""

    def data(self) -> bytes:
        """Return the payload as the producer compressed and encrypted it: a message, a whole batch, or a chunk."""
        return payload_of(self.headers_and_payload)


@dataclass(frozen=True)
class _RawConsumerOptions(ConsumerOptions[bytes]):
    def decoder(self) -> RawDecoder:
        return RawDecoder()


@dataclass(frozen=True)
class RawReaderOptions(ReaderOptions[bytes]):
    """Options of `Client.create_raw_reader`: those of a reader, without schemas, keys, processors and chunks."""

    def start(self) -> Start:
        start = super().start()
        return start._replace(message_id=self.entry(start.message_id))

    def entry(self, message_id: MessageId) -> MessageId:
        """Return the id of the message's entry.

        For a chunked message, this is the first chunk when the start is inclusive, and otherwise the last one.
        """
        first = message_id.first_chunk if self.start_message_id_inclusive else None
        return MessageId(*(first or message_id).entry, message_id.partition)

    def consumer_options(self) -> ConsumerOptions[bytes]:
        plain = super().consumer_options()
        common: dict[str, Any] = common_to(plain)
        return _RawConsumerOptions(plain.topic, plain.subscription_name, consumer_name=plain.consumer_name, **common)


class RawReader(Closing):
    """Read the entries of a topic in order. Made by `Client.create_raw_reader`.

    A position in a batch means the whole batch. Each chunk of a chunked message is an entry.
    """

    def __init__(self, core: Core, options: RawReaderOptions) -> None:
        """Make a reader, without sending anything. Raise `InvalidTopicName` when `topic` is no topic name."""
        self._options = options
        self._reader = Reader(core, options)

    async def __aenter__(self) -> RawReader:
        await self._reader.__aenter__()
        return self

    def __aiter__(self) -> RawReader:
        return self

    async def __anext__(self) -> RawMessage:
        return _raw(await self._reader.__anext__())

    def __repr__(self) -> str:
        return f"<RawReader of {self.topic()}>"

    def topic(self) -> str:
        """Return the full name of the topic."""
        return self._reader.topic()

    async def read_next(self) -> RawMessage:
        """Return the next entry, and wait for one if necessary.

        Raises:
            AlreadyClosed: The reader was closed.
            PulsarError: The reader failed for good.
        """
        return _raw(await self._reader.read_next())

    async def has_message_available(self) -> bool:
        """Return whether `read_next` returns an entry at once, as `Reader.has_message_available` does."""
        return await self._reader.has_message_available()

    async def get_last_message_ids(self) -> list[MessageId]:
        """Return the id of the last message of each partition, as `Consumer.get_last_message_ids` does."""
        return await self._reader.get_last_message_ids()

    async def seek(self, target: MessageId | datetime | int) -> None:
        """Move the reader to another position, as `Reader.seek` does.

        Args:
            target: A message id, a datetime, or milliseconds since the epoch.

        Raises:
            PulsarError: The broker refused the seek.
        """
        await self._reader.seek(self._options.entry(target) if isinstance(target, MessageId) else target)

    async def aclose(self) -> None:
        """Close the reader. A second call does nothing."""
        await self._reader.aclose()


def _raw(message: Message[bytes]) -> RawMessage:
    entry = strip_broker_metadata(message.data())
    return RawMessage(message.message_id(), entry, message.entry_metadata(), message.broker_metadata())
