"""Publish a consumer's messages to retry letter topics and dead letter topics (PIP-22)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, Unpack

import anyio
from anyio.abc import TaskGroup

from pulsarium.client.connection.waiting import Backoff
from pulsarium.client.consumer.delayed import Entry
from pulsarium.client.consumer.options import ConsumerOptions
from pulsarium.client.consumer.policies import ConsumerDeadLetterPolicy
from pulsarium.client.core import Core
from pulsarium.client.errors import AlreadyClosed, InvalidMessage, PulsarError
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.draft import MessageOptions
from pulsarium.client.producer.options import ProducerOptions
from pulsarium.client.producer.producer import Producer
from pulsarium.client.schema.schema import Schema, SchemaInfo
from pulsarium.client.together import together
from pulsarium.client.topics import full_name, parse
from pulsarium.proto.special_names import DEAD_LETTERS, RETRY_LETTERS


class Encoded(Schema[bytes]):
    """A schema for bytes that are encoded already."""

    def __init__(self, info: SchemaInfo | None) -> None:
        self.info = info

    def encode(self, value: bytes) -> bytes:
        return value

    def decode(self, data: bytes, writer: SchemaInfo | None = None) -> bytes:
        return data


class LetterProducer(Protocol):
    """The producer of a topic of letters."""

    async def __aenter__(self) -> LetterProducer: ...
    async def send(self, content: bytes | None, /, **options: Unpack[MessageOptions]) -> MessageId: ...
    async def aclose(self) -> None: ...
    def abandon(self) -> None: ...


class Letters:
    """Publish messages to other topics.

    Each topic has a producer, from the first message until the consumer is closed.
    """

    def __init__(self, core: Core, subscription: str, schema: Schema[Any]) -> None:
        """Publish with `schema`, which is that of the consumed messages."""
        self._core = core
        self._subscription = subscription
        self._schema = Encoded(schema.info)
        self._producers: dict[str, LetterProducer] = {}
        self._opening = anyio.Lock()
        self._closed = False

    async def send(
        self,
        topic: str,
        message: Message[Any],
        properties: Mapping[str, str],
        *,
        deliver_after: float | None = None,
        initial_subscription_name: str | None = None,
    ) -> None:
        """Publish the content of a message, with other properties. Raise the producer's errors."""
        producer = self._producers.get(topic) or await self._open(topic, initial_subscription_name)
        await producer.send(
            None if message.has_null_value() else message.data(),
            partition_key=_key(message),
            ordering_key=message.ordering_key() or None,
            properties=properties,
            event_timestamp=message.event_timestamp() or None,
            deliver_after=deliver_after,
        )

    def properties_of(self, message: Message[Any], topic: str) -> dict[str, str]:
        """Return a message's properties, and add its original topic and id.

        `topic` is the original one unless they name another.
        """
        origin = _text(message.message_id())
        return {
            "REAL_TOPIC": topic,
            "REAL_SUBSCRIPTION": self._subscription,
            "ORIGIN_MESSAGE_ID": origin,
            "ORIGIN_MESSAGE_IDY_TIME": origin,  # this name is Java's old misspelling
            **message.properties(),
        }

    async def aclose(self) -> None:
        """Close the producers."""
        self._closed = True
        try:
            await together([producer.aclose for producer in self._producers.values()])
        finally:
            for producer in self._producers.values():
                producer.abandon()

    async def _open(self, topic: str, initial_subscription_name: str | None) -> LetterProducer:
        async with self._opening:
            self._check(topic)
            if topic not in self._producers:
                options = ProducerOptions(
                    topic,
                    schema=self._schema,
                    batching_enabled=False,
                    chunking_enabled=True,
                    initial_subscription_name=initial_subscription_name,
                )
                producer = await self._producer(options).__aenter__()
                try:
                    self._check(topic)
                except AlreadyClosed:  # closed while the producer was opened
                    producer.abandon()
                    raise
                self._producers[topic] = producer
            return self._producers[topic]

    def _producer(self, options: ProducerOptions[bytes]) -> LetterProducer:
        """Make the producer of a topic of letters."""
        return Producer(self._core, options)

    def _check(self, topic: str) -> None:
        if self._closed:
            raise AlreadyClosed(f"{topic}: the consumer was closed")


def _key(message: Message[Any]) -> str | bytes | None:
    if message.has_base64_encoded_key():
        return message.key_bytes()
    return message.partition_key() if message.has_partition_key() else None


def _text(message_id: MessageId) -> str:
    """Return a message id in Java's notation."""
    parts = [*message_id.entry, message_id.partition]
    if message_id.batch_index >= 0:
        parts.append(message_id.batch_index)
    return ":".join(map(str, parts))


MAX_RECONSUME_TIMES = 16


def with_topics(options: ConsumerOptions[Any]) -> ConsumerOptions[Any]:
    """Return options that name the topics of letters, and subscribe to the retry letter topic.

    The topics stay None where each topic has its own.

    Raise `InvalidTopicName` when a topic of the policy is no topic name.
    """
    policy = options.dead_letter_policy
    if policy is not None:
        dead = policy.dead_letter_topic and full_name(policy.dead_letter_topic)
        retry = policy.retry_letter_topic and full_name(policy.retry_letter_topic)
        policy = replace(policy, dead_letter_topic=dead, retry_letter_topic=retry)
        options = replace(options, dead_letter_policy=policy)
    topic = options.topic
    if not options.retry_enable:
        return options
    policy = policy or ConsumerDeadLetterPolicy(MAX_RECONSUME_TIMES)
    if not isinstance(topic, str | list | tuple):
        return replace(options, dead_letter_policy=policy)  # each topic has its own
    topics = [full_name(one) for one in ([topic] if isinstance(topic, str) else topic)]
    policy = of_topic(policy, min(topics), options.subscription_name)
    return replace(options, dead_letter_policy=policy, topic=[*topics, policy.retry_letter_topic or ""])


def of_topic(policy: ConsumerDeadLetterPolicy, topic: str, subscription: str) -> ConsumerDeadLetterPolicy:
    """Return the policy, with topics named after `topic` where the policy names none."""
    return replace(
        policy,
        dead_letter_topic=policy.dead_letter_topic or f"{topic}-{subscription}{DEAD_LETTERS}",
        retry_letter_topic=policy.retry_letter_topic or f"{topic}-{subscription}{RETRY_LETTERS}",
    )


async def send_back(
    letters: Letters,
    policy: ConsumerDeadLetterPolicy,
    message: Message[Any],
    delay: float,
    properties: Mapping[str, str],
) -> None:
    """Publish a message to the retry letter topic, with a delay in seconds.

    After `max_redeliver_count` attempts, publish it to the dead letter topic.

    Raise the producer's errors.
    """
    assert policy.dead_letter_topic is not None
    assert policy.retry_letter_topic is not None
    origin = str(parse(message.topic_name()).partitioned_name)
    all_properties = letters.properties_of(message, origin) | dict(properties)
    before = all_properties.get("RECONSUMETIMES", "0")
    if not before.isdecimal():
        raise InvalidMessage(f"{message.message_id()}: the property RECONSUMETIMES is {before!r}, which is no number")
    times = int(before) + 1
    all_properties["RECONSUMETIMES"] = str(times)
    all_properties["DELAY_TIME"] = str(int(max(0.0, delay) * 1000))
    if times > policy.max_redeliver_count:
        name = policy.initial_subscription_name
        await letters.send(policy.dead_letter_topic, message, all_properties, initial_subscription_name=name)
    else:
        after = delay if delay > 0 else None
        await letters.send(policy.retry_letter_topic, message, all_properties, deliver_after=after)


logger: logging.Logger = logging.getLogger(__name__)


class DeadLetters:
    """The dead letters of one topic.

    An entry on its last delivery stays here until it is acknowledged, or moved to the dead letter topic.
    """

    def __init__(
        self,
        tasks: TaskGroup,
        topic: str,
        policy: ConsumerDeadLetterPolicy,
        letters: Letters,
        acknowledge: Callable[[MessageId], Awaitable[None]],
        again: Callable[[Entry, float], None],
    ) -> None:
        """Move dead letters of `topic`, a full name, and acknowledge them.

        When an entry cannot be moved, `again` is called with the entry and a delay in seconds, after which the caller
        calls `move` with the entry. `again` must not wait.
        """
        assert policy.dead_letter_topic is not None
        self._tasks = tasks
        self._origin = topic
        self._topic = policy.dead_letter_topic
        self._policy = policy
        self._letters = letters
        self._acknowledge = acknowledge
        self._again = again
        self._backoff = Backoff()
        self._last: dict[Entry, list[Message[Any]]] = {}
        self._moving: dict[Entry, list[Message[Any]]] = {}
        self._scope: anyio.CancelScope | None = None

    def __len__(self) -> int:
        """Return the number of entries on their last delivery."""
        return len(self._last)

    def arrived(self, entry: Entry, messages: list[Message[Any]], redelivery_count: int) -> bool:
        """Note the redelivery count of an entry. Return True when the entry is moved, and is not to be delivered."""
        if redelivery_count < self._policy.max_redeliver_count:
            return False
        self._last[entry] = messages
        if redelivery_count > self._policy.max_redeliver_count:
            self.move({entry})
            return True
        return False

    def move(self, entries: set[Entry]) -> set[Entry]:
        """Move the entries that must not be delivered again, and return the others."""
        rest = set(entries)
        for entry in self._last.keys() & entries:
            self._moving[entry] = self._last.pop(entry)
            rest.difference_update(self._moving[entry][0].message_id().entries)
        if self._moving and self._scope is None:
            self._scope = anyio.CancelScope()
            self._tasks.start_soon(self._run, self._scope)
        return rest

    def forget(self, entry: Entry) -> None:
        """Forget an acknowledged entry."""
        self._last.pop(entry, None)

    def clear(self) -> None:
        """Forget all entries, because the broker redelivers them."""
        self._last.clear()

    def close(self) -> None:
        """Stop moving messages."""
        self._last.clear()
        self._moving.clear()
        if self._scope is not None:
            self._scope.cancel()

    async def _run(self, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                while self._moving:
                    moving, self._moving = self._moving, {}
                    await together([partial(self._move, *one) for one in moving.items()])
        finally:
            self._scope = None

    async def _move(self, entry: Entry, messages: list[Message[Any]]) -> None:
        try:
            for message in messages:
                properties = self._letters.properties_of(message, self._origin)
                name = self._policy.initial_subscription_name
                await self._letters.send(self._topic, message, properties, initial_subscription_name=name)
            for message in messages:
                await self._acknowledge(message.message_id())
        except PulsarError as error:
            logger.warning(
                "%s: %s is moved to this dead letter topic later: %s", self._topic, messages[0].message_id(), error
            )
            self._last[entry] = messages
            self._again(entry, self._backoff.next())
        else:
            self._backoff = Backoff()
