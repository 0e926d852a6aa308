"""Find the topics to read and their columns, and ask about several topics at once."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import anyio

from pulsarium.client import Client, SchemaInfo
from pulsarium.client.bulk import together, topics_matching
from pulsarium.client.errors import TopicNotFound
from pulsarium.client.topics import full_name, parse
from pulsarium.pipeline.columns.columns import Columns
from pulsarium.pipeline.options import BadOption, ConnectionOptions, Options
from pulsarium.pipeline.pulsar import Pulsar

_logger = logging.getLogger(__name__)

K = TypeVar("K")
T = TypeVar("T")

AT_ONCE = 16

_sleep = anyio.sleep  # a test has another


async def each(keys: Iterable[K], ask: Callable[[K], Awaitable[T]]) -> dict[K, T]:
    """Return the answers by key, in the order of the keys. Raise the first failure."""
    room = anyio.Semaphore(AT_ONCE)
    answers: dict[K, T] = {}

    async def one(key: K) -> None:
        async with room:
            answers[key] = await ask(key)

    wanted = list(keys)
    await together([lambda key=key: one(key) for key in wanted])  # type: ignore[misc]
    return {key: answers[key] for key in wanted}


_KINDS = ("topic", "topics", "topicsPattern")


class NoSuchTopic(LookupError):
    """A topic to read that does not exist."""


@dataclass(frozen=True)
class SourceTopics:
    """Topics by name, or by a pattern."""

    names: tuple[str, ...] = ()
    """Full names."""
    pattern: str | None = None

    @staticmethod
    def of(options: Options) -> SourceTopics:
        """Return the topics of the options.

        Raise `BadOption` unless exactly one of topic, topics and topicsPattern is given, and `InvalidTopicName`.
        """
        given = [kind for kind in _KINDS if options.text(kind)]
        if len(given) != 1:
            raise BadOption(
                f'give exactly one of the options "topic", "topics" and "topicsPattern", not {given or "none"}'
            )
        if given[0] == "topicsPattern":
            pattern = options.required("topicsPattern")
            try:
                re.compile(pattern)
            except re.error as error:
                raise BadOption(f'option "topicsPattern" is not a regular expression: {error}') from None
            return SourceTopics(pattern=pattern)
        text = options.required(given[0])
        found = [text] if given[0] == "topic" else [one.strip() for one in text.split(",") if one.strip()]
        names = tuple(dict.fromkeys(map(full_name, found)))
        for name in names:
            parsed = parse(name)
            if parsed.is_scalable:
                raise BadOption(f"{name} is scalable, and the source cannot read it: use pulsarium.client.scalable")
            if not parsed.is_persistent:
                raise BadOption(f"{name} is not persistent: the broker stores no messages to read")
        return SourceTopics(names)

    def __str__(self) -> str:
        return self.pattern if self.pattern is not None else ", ".join(self.names)

    async def find(self, client: Client) -> Sequence[str]:
        """Return full names in order, with partitions in place of partitioned topics.

        Raise `NoSuchTopic` for an unknown name.
        """
        if self.pattern is not None:
            return await topics_matching(client, self.pattern)
        found: set[str] = set()
        for name in self.names:
            found.update(await _partitions(client, name))
        return sorted(found)


async def _partitions(client: Client, name: str) -> Sequence[str]:
    """Return the partitions of a topic without creating the topic, which a reader would do."""
    try:
        found = await client.get_topic_partitions(name, metadata_auto_creation_enabled=False)
    except TopicNotFound:
        found = []
    if found == [name]:  # older brokers answer so for unknown topics, too
        topic = parse(name)
        there = await client.get_topics(str(topic.namespace_name))
        if name not in there:
            found = []
    if not found:
        raise NoSuchTopic(f"topic {name} does not exist")
    return found


def columns_of(
    connection: ConnectionOptions, topics: SourceTopics, *, bytes_only: bool, look_again: float | None = None
) -> Columns:
    """Return the columns of the schema that all topics share.

    With `look_again`, wait until the topics exist, and look for them after so many seconds. Raise `NoSuchTopic`, and
    `BadOption` when the schemas differ.
    """
    with Pulsar(connection) as pulsar:
        if look_again is not None:
            pulsar.call(_exist, pulsar.client, topics, look_again)
        return Columns.of(pulsar.call(_common, pulsar.client, topics, bytes_only))


async def _exist(client: Client, topics: SourceTopics, look_again: float) -> None:
    """Wait until the topics exist, or the first one of a pattern."""
    is_told = False
    while True:
        try:
            if await topics.find(client):
                return
            reason = f"a topic that matches {topics} does not exist"
        except NoSuchTopic as error:
            reason = str(error)
        if not is_told:
            _logger.warning("%s: waiting until it does (waitingForNonExistedTopic)", reason)
            is_told = True
        await _sleep(look_again)


async def _common(client: Client, topics: SourceTopics, bytes_only: bool) -> SchemaInfo | None:
    found_topics = await topics.find(client)
    if bytes_only:
        return None
    names: Sequence[str] = sorted({str(parse(topic).partitioned_name) for topic in found_topics})
    found = await each(names, lambda name: _schema(client, name))
    kinds: dict[tuple[int, bytes] | None, str] = {}
    for name, info in found.items():
        kinds.setdefault(None if info is None else (int(info.type), info.data), name)
    if len(kinds) > 1:
        one, other, *_ = kinds.values()
        raise BadOption(
            f"{one} and {other} have different schemas: read them separately, or as bytes with "
            '.option("allowDifferentTopicSchemas", "true")'
        )
    return next(iter(found.values()), None)


async def _schema(client: Client, topic: str) -> SchemaInfo | None:
    """Return the schema of a topic, or None for bytes."""
    try:
        return await client.get_schema(topic)
    except TopicNotFound:  # the topic has no schema
        return None
