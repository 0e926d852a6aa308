"""Which topics a consumer is subscribed to: named ones with all their partitions, or those that a pattern matches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pulsarium.client.consumer.options import ConsumerOptions, RegexSubscriptionMode
from pulsarium.client.errors import InvalidConfiguration, InvalidTopicName
from pulsarium.client.topics import full_name, parse, partitions_of

if TYPE_CHECKING:
    from pulsarium.client.client import Client


class Discovery(Protocol):
    """Finds the topics, again and again."""

    text: str
    """What was asked for."""
    forgets: bool
    """Whether topics that are not found any more are left."""

    @property
    def interval(self) -> float | None:
        """Seconds until there may be others; None: never."""
        ...

    async def find(self, client: Client, *, first: bool) -> list[str]:
        """Full names of topics without partitions, and of partitions; `first`: topics may be created by it."""
        ...


def discovery(options: ConsumerOptions[Any]) -> Discovery:
    """Of what `subscribe` is given."""
    topic = options.topic
    if isinstance(topic, re.Pattern):
        return Matching(topic, options.regex_subscription_mode, options.pattern_auto_discovery_period)
    return Named([topic] if isinstance(topic, str) else topic, options.auto_update_partitions_interval)


class Named:
    """One topic or several, with the partitions they have now."""

    forgets = False

    def __init__(self, topics: Sequence[str], interval: float) -> None:
        """InvalidTopicName, or InvalidConfiguration if there is none."""
        self._interval = interval
        self._topics = list(dict.fromkeys(full_name(topic) for topic in topics))
        if not self._topics:
            raise InvalidConfiguration("no topic")
        self._plain: set[str] = set()  # that have no partitions, and get none
        self.text = ", ".join(self._topics)

    async def find(self, client: Client, *, first: bool) -> list[str]:
        found = []
        for topic in self._topics:
            count = 0 if topic in self._plain else await client.partitions(topic, create=first)
            if count == 0:
                self._plain.add(topic)
            found += partitions_of(topic, count)
        return found

    @property
    def interval(self) -> float | None:
        return self._interval if len(self._plain) < len(self._topics) else None


class Matching:
    """Those of a namespace whose names match, `persistent://tenant/namespace/` in front of the pattern or left out."""

    forgets = True

    def __init__(self, pattern: re.Pattern[str], mode: RegexSubscriptionMode, interval: float) -> None:
        """InvalidTopicName if there is no telling which namespace is meant."""
        self.interval: float | None = interval
        self.text = pattern.pattern
        scheme, mark, rest = self.text.partition("://")
        tenant, namespace, local = _parts(rest if mark else self.text)
        self._namespace = f"{tenant}/{namespace}"
        # of the whole name; what belongs to a partition matches as its partitioned topic does
        self._pattern = re.compile(local, pattern.flags)
        if mark:
            mode = RegexSubscriptionMode.of_domain(scheme)
        self._mode = mode

    async def find(self, client: Client, *, first: bool) -> list[str]:
        names = [parse(topic) for topic in await client.topics(self._namespace, self._mode.value)]
        return sorted(str(name) for name in names if self._pattern.fullmatch(name.partitioned_name.local_name))


def _parts(pattern: str) -> tuple[str, str, str]:
    parts = pattern.split("/", 2)
    if len(parts) == 3:
        return parts[0], parts[1], parts[2]
    if len(parts) == 1:
        return "public", "default", pattern
    raise InvalidTopicName(f"{pattern}: a pattern is tenant/namespace/pattern, or for public/default the pattern alone")
