"""A reader of entries as they are stored: still compressed and encrypted, batches and chunks as they are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, NamedTuple

from pulsarium.client.consumer.options import ConsumerOptions, ReaderOptions, common_to
from pulsarium.client.consumer.reader import Reader
from pulsarium.client.consumer.start import Start
from pulsarium.client.core import Core
from pulsarium.client.entry.decoding import RawDecoder
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.proto.entry import strip_broker_metadata
from pulsarium.proto.generated import PulsarApi_pb2 as pb


class RawMessage(NamedTuple):
    """An entry."""

    message_id: MessageId
    headers_and_payload: bytes
    """As its producer sent it: magic number and checksum, where it has one, metadata with its size, payload."""
    metadata: pb.MessageMetadata
    """The same as in there."""
    broker_metadata: pb.BrokerEntryMetadata | None
    """What the broker wrote in front of it (PIP-70), where it shows that."""


@dataclass(frozen=True)
class _RawConsumerOptions(ConsumerOptions[bytes]):
    def decoder(self) -> RawDecoder:
        return RawDecoder()


@dataclass(frozen=True)
class RawReaderOptions(ReaderOptions[bytes]):
    """What `create_raw_reader` takes: of a reader's options those that are about neither schemas, keys, processors nor
    chunks, for entries come as they are."""

    def start(self) -> Start:
        start = super().start()
        return start._replace(message_id=self.entry(start.message_id))

    def entry(self, message_id: MessageId) -> MessageId:
        """Of a batch the whole; of a chunked message the first chunk where it is to be delivered, else the last."""
        first = message_id.first_chunk if self.start_message_id_inclusive else None
        return MessageId(*(first or message_id).entry, message_id.partition)

    def consumer_options(self) -> ConsumerOptions[bytes]:
        plain = super().consumer_options()
        common: dict[str, Any] = common_to(plain)
        return _RawConsumerOptions(plain.topic, plain.subscription_name, consumer_name=plain.consumer_name, **common)


class RawReader:
    """Reads entries in their order; made by `Client.create_raw_reader`.

    A message of a batch stands for its entry, where reading begins; of a chunked message each chunk is an entry.
    """

    def __init__(self, core: Core, options: RawReaderOptions) -> None:
        """Nothing is sent yet. InvalidTopicName if `topic` is no name."""
        self._options = options
        self._reader = Reader(core, options)

    async def __aenter__(self) -> RawReader:
        await self._reader.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._reader.aclose()

    def __aiter__(self) -> RawReader:
        return self

    async def __anext__(self) -> RawMessage:
        return _raw(await self._reader.__anext__())

    def topic(self) -> str:
        """The topic, in full."""
        return self._reader.topic()

    async def read_next(self) -> RawMessage:
        """The next entry, as soon as there is one; raises what ended the reader for good."""
        return _raw(await self._reader.read_next())

    async def has_message_available(self) -> bool:
        """Whether `read_next` would find an entry now: see `Reader.has_message_available`."""
        return await self._reader.has_message_available()

    async def get_last_message_ids(self) -> list[MessageId]:
        """The last message of the topic: see `Consumer.get_last_message_ids`."""
        return await self._reader.get_last_message_ids()

    async def seek(self, target: MessageId | datetime | int) -> None:
        """Go on elsewhere: see `Reader.seek`."""
        await self._reader.seek(self._options.entry(target) if isinstance(target, MessageId) else target)

    async def aclose(self) -> None:
        """End it; a second call does nothing."""
        await self._reader.aclose()


def _raw(message: Message[bytes]) -> RawMessage:
    entry = strip_broker_metadata(message.data())
    return RawMessage(message.message_id(), entry, message.entry_metadata(), message.broker_metadata())
