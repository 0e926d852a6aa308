"""Messages on their way into entries: one by one, or many in a batch."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypedDict

import anyio

from pulsarium.client.entry.encoding import Encoder
from pulsarium.client.errors import InvalidMessage, PulsarError
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.proto.generated import PulsarApi_pb2 as pb


class Receipt:
    """Of one message that is being sent."""

    __slots__ = ("_error", "_event", "_message_id")

    def __init__(self) -> None:
        self._message_id: MessageId | None = None
        self._error: PulsarError | None = None
        self._event: anyio.Event | None = None  # made for those who wait

    @property
    def is_done(self) -> bool:
        """Whether `wait` returns, or raises, at once."""
        return self._message_id is not None or self._error is not None

    async def wait(self) -> MessageId:
        """Where the message stands; raises why it was not published. Any number of tasks may wait, any time."""
        while not self.is_done:
            if self._event is None:
                self._event = anyio.Event()
            await self._event.wait()
        if self._error is not None:
            raise self._error
        assert self._message_id is not None
        return self._message_id

    def settle(self, message_id: MessageId) -> None:
        """It was published."""
        self._message_id = message_id
        self._wake()

    def fail(self, error: PulsarError) -> None:
        """It was not, or nobody knows."""
        self._error = error
        self._wake()

    def _wake(self) -> None:
        if self._event is not None:
            self._event.set()


@dataclass(slots=True)
class Draft:
    """A message before it is encoded."""

    metadata: pb.SingleMessageMetadata
    content: bytes
    deliver_at: int | None  # ms since the epoch
    receipt: Receipt

    @property
    def sequence_id(self) -> int:
        return self.metadata.sequence_id

    @property
    def key(self) -> str | None:
        return self.metadata.partition_key if self.metadata.HasField("partition_key") else None

    def message(self, topic: str) -> Message[Any]:
        """What a `message_router` sees: it has no id yet, and nothing that its entry would say."""
        return Message(topic, MessageId(-1, -1), pb.MessageMetadata(), self.metadata, self.content)


class MessageOptions(TypedDict, total=False):
    """What `Producer.send` takes beside the value."""

    partition_key: str | None
    ordering_key: str | None
    properties: Mapping[str, str] | None
    event_timestamp: int | None
    """Milliseconds since the epoch, for the application."""
    sequence_id: int | None
    deliver_at: int | datetime | None
    """Milliseconds since the epoch."""
    deliver_after: float | timedelta | None
    """Seconds."""


def draft(
    content: bytes | None,
    *,
    partition_key: str | None = None,
    ordering_key: str | None = None,
    properties: Mapping[str, str] | None = None,
    event_timestamp: int | None = None,
    sequence_id: int | None = None,
    deliver_at: int | datetime | None = None,
    deliver_after: float | timedelta | None = None,
) -> Draft:
    """A message of these bytes, None: without a value. InvalidMessage if it makes no sense."""
    null_value = content is None
    content = content or b""
    metadata = pb.SingleMessageMetadata(payload_size=len(content))
    if partition_key is not None:
        metadata.partition_key = partition_key
    if ordering_key is not None:
        metadata.ordering_key = ordering_key.encode("utf-8", "surrogateescape")
    for key, value in (properties or {}).items():
        metadata.properties.add(key=key, value=value)
    if event_timestamp is not None:
        metadata.event_time = event_timestamp
    if sequence_id is not None:
        metadata.sequence_id = sequence_id
    if null_value:
        metadata.null_value = True
    return Draft(metadata, content, _deliver_at(deliver_at, deliver_after), Receipt())


def now() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def _deliver_at(at: int | datetime | None, after: float | timedelta | None) -> int | None:
    if at is not None and after is not None:
        raise InvalidMessage("deliver_at or deliver_after, not both")
    if isinstance(at, datetime):
        return int(at.timestamp() * 1000)
    if isinstance(after, timedelta):
        after = after.total_seconds()
    return at if after is None else now() + int(after * 1000)


class Batch:
    """What waits for others to go with it."""

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self.drafts: list[Draft] = []
        self._bytes = 0
        self._max_messages = max_messages
        self._max_bytes = max_bytes

    def fits(self, message: Draft) -> bool:
        """Whether it may be added; to an empty batch any message may."""
        return not self.drafts or self._bytes + len(message.content) <= self._max_bytes

    def add(self, message: Draft) -> None:
        self.drafts.append(message)
        self._bytes += len(message.content)

    @property
    def is_full(self) -> bool:
        """Whether nothing can be added."""
        return len(self.drafts) >= self._max_messages or self._bytes >= self._max_bytes

    def take(self) -> list[Draft]:
        """What is in it, once."""
        drafts, self.drafts, self._bytes = self.drafts, [], 0
        return drafts


def encode(encoder: Encoder, producer_name: str, drafts: Sequence[Draft]) -> bytes:
    """The entry of one message, or of several as a batch.

    A batch of one would only be bigger (PIP-189).
    """
    metadata = pb.MessageMetadata(producer_name=producer_name, publish_time=now(), sequence_id=drafts[0].sequence_id)
    if len(drafts) > 1:
        _copy(
            ("partition_key", "ordering_key"), drafts[0].metadata, metadata
        )  # Key_Shared goes by these, and compaction
        metadata.highest_sequence_id = drafts[-1].sequence_id
        return encoder.batch(metadata, [(message.metadata, message.content) for message in drafts])
    (message,) = drafts
    single = message.metadata
    metadata.properties.extend(single.properties)
    _copy(("partition_key", "ordering_key", "event_time", "null_value"), single, metadata)
    if message.deliver_at is not None:
        metadata.deliver_at_time = message.deliver_at
    return encoder.single(metadata, message.content)


def _copy(names: Iterable[str], single: pb.SingleMessageMetadata, metadata: pb.MessageMetadata) -> None:
    """Copy these fields, where they are set."""
    for name in names:
        if single.HasField(name):
            setattr(metadata, name, getattr(single, name))
