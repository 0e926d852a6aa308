"""Read and write in bulk, as the Spark pipeline does: public, beside `pulsarium.client`, for programs of that kind.

A `TopicReader` takes what waits without a checkpoint for each message. The other names are the client's own parts: how
it takes entries apart, finds partitions and walks through the values of a schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any
from uuid import uuid4

from pulsarium.client.client import Client
from pulsarium.client.consumer.consumer import Consumer
from pulsarium.client.consumer.discovery import Matching
from pulsarium.client.consumer.inbox import Onlooker
from pulsarium.client.consumer.indexes import message_at
from pulsarium.client.consumer.options import ConsumerOptions, RegexSubscriptionMode
from pulsarium.client.consumer.reader import Place
from pulsarium.client.consumer.start import Start
from pulsarium.client.entry.decoding import Decoded, Decoder
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.options import MessageRouter
from pulsarium.client.producer.router import hash_of
from pulsarium.client.schema.nodes import EPOCH, Form, Misfit, expected
from pulsarium.client.schema.schema import BYTES, Schema
from pulsarium.client.schema.structured import read_definition
from pulsarium.client.together import together

__all__ = [
    "BYTES",
    "EPOCH",
    "Decoded",
    "Decoder",
    "Form",
    "MessageRouter",
    "Misfit",
    "Onlooker",
    "TopicReader",
    "expected",
    "hash_of",
    "last_message",
    "message_at",
    "read_definition",
    "together",
    "topics_matching",
]


@dataclass(frozen=True, kw_only=True)
class _Options(ConsumerOptions[Any]):
    own_decoder: Decoder = field(default_factory=Decoder)

    def decoder(self) -> Decoder:
        return self.own_decoder


class TopicReader:
    """Reads a topic without partitions, or one partition, from a message on; open inside its `async with`.

    It is told of everything that comes, however many chunked messages begin before others end.
    """

    def __init__(
        self,
        client: Client,
        topic: str,
        start: MessageId,
        *,
        schema: Schema[Any] = BYTES,
        receiver_queue_size: int = 1000,
        consumer_name: str = "",
        needed_from: MessageId | None = None,
        decoder: Decoder | None = None,
        onlooker: Onlooker | None = None,
    ) -> None:
        """Begin at `start`, and with chunks of later messages at `needed_from`. InvalidTopicName if `topic` is no name.

        onlooker: Hears of entries of which nothing is received.
        """
        options = _Options(
            topic,
            f"reader-{uuid4().hex[:10]}",
            schema=schema,
            consumer_name=consumer_name,
            receiver_queue_size=receiver_queue_size,
            max_pending_chunked_message=0,
            expire_time_of_incomplete_chunked_message=0,
            own_decoder=decoder or Decoder(),
        )
        self._consumer: Consumer[Any] = Consumer(client._core, options, Start(start, True, needed_from), onlooker)
        self._inbox = self._consumer._inbox
        self._place: Place
        self.take: Callable[[], Message[Any]] = self._inbox.take
        """Return the next message, which must be there, or raise what is there instead."""

    async def __aenter__(self) -> TopicReader:
        await self._consumer.__aenter__()
        self._place = Place(self._consumer._parts.all[0], 1, inclusive=False)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._consumer.aclose()

    def __bool__(self) -> bool:
        """Tell whether something can be taken at once."""
        return bool(self._inbox)

    def __len__(self) -> int:
        """Return how many can be taken, once the schema of the first is known."""
        return len(self._inbox)

    def head(self) -> Message[Any] | Exception | None:
        """Return what `take` returns or raises, None if nothing is there."""
        return self._inbox.head

    async def arrival(self) -> None:
        """Wait until something can be taken. Raises what ended the reader for good."""
        await self._inbox.arrival()

    async def has_more(self) -> bool:
        """Ask the broker whether there is more to be read now, unless something waits here."""
        return await self._place.has_more()

    def read_through(self, message_id: MessageId) -> None:
        """Let the broker count everything up to this entry as done."""
        self._consumer._parts.all[0].read_through(message_id)


async def last_message(consumer: Consumer[Any]) -> tuple[MessageId, MessageId | None]:
    """Return the last message of a consumer's only topic, and the entry up to which its subscription is done, where the
    broker says that."""
    return await consumer._parts.all[0].last_message()


async def topics_matching(client: Client, pattern: str) -> list[str]:
    """Return the persistent topics that a pattern matches, as `subscribe` has it, in order; of partitioned ones the
    partitions."""
    matching = Matching(re.compile(pattern), RegexSubscriptionMode.PersistentOnly, 60)
    return sorted(await matching.find(client._core.brokers, first=False))
