"""Which topics are read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pulsarium.client import Client
from pulsarium.client.bulk import topics_matching
from pulsarium.client.errors import TopicNotFound
from pulsarium.client.topics import full_name, parse
from pulsarium.pipeline.options import BadOption, Options

_KINDS = ("topic", "topics", "topicsPattern")


class NoSuchTopic(LookupError):
    """A topic that is to be read is not there."""


@dataclass(frozen=True)
class Topics:
    """One, several, or those that match a pattern."""

    names: tuple[str, ...] = ()
    """In full."""
    pattern: str | None = None

    @staticmethod
    def of(options: Options) -> Topics:
        """BadOption unless exactly one of topic, topics and topicsPattern is given; InvalidTopicName."""
        given = [kind for kind in _KINDS if options.text(kind)]
        if len(given) != 1:
            raise BadOption(f'one of the options "topic", "topics" and "topicsPattern", not {given or "none"}')
        if given[0] == "topicsPattern":
            pattern = options.required("topicsPattern")
            try:
                re.compile(pattern)
            except re.error as error:
                raise BadOption(f'option "topicsPattern" is no regular expression: {error}') from None
            return Topics(pattern=pattern)
        text = options.required(given[0])
        found = [text] if given[0] == "topic" else [one.strip() for one in text.split(",") if one.strip()]
        names = tuple(dict.fromkeys(map(full_name, found)))
        for name in names:
            if not parse(name).is_persistent:
                raise BadOption(f"{name} is not persistent: it keeps nothing that could be read")
        return Topics(names)

    def __str__(self) -> str:
        return self.pattern if self.pattern is not None else ", ".join(self.names)

    async def find(self, client: Client) -> Sequence[str]:
        """Full names, in order: of partitioned topics the partitions. NoSuchTopic for a name that is none."""
        if self.pattern is not None:
            return await topics_matching(client, self.pattern)
        found: set[str] = set()
        for name in self.names:
            found.update(await _partitions(client, name))
        return sorted(found)


async def _partitions(client: Client, name: str) -> Sequence[str]:
    """Without creating it, which a reader would do."""
    try:
        found = await client.get_topic_partitions(name, metadata_auto_creation_enabled=False)
    except TopicNotFound:
        found = []
    if found == [name]:  # older brokers say so of topics that are not there, too
        topic = parse(name)
        there = await client.get_topics(str(topic.namespace_name))
        if name not in there:
            found = []
    if not found:
        raise NoSuchTopic(f"there is no topic {name}")
    return found
