"""Which topics a consumer is subscribed to: named ones with all their partitions, or those that a pattern matches."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from typing import Any, Protocol, TypeAlias

import anyio

from pulsarium.client.connection.brokers import Brokers
from pulsarium.client.consumer.options import ConsumerOptions, RegexSubscriptionMode
from pulsarium.client.consumer.topic_watch import TopicWatch
from pulsarium.client.errors import InvalidConfiguration, InvalidTopicName
from pulsarium.client.topics import MOST_TOPICS, bounded, full_name, parse, partitions_of

Changed: TypeAlias = Callable[[], Awaitable[None]]


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

    async def find(self, brokers: Brokers, *, first: bool) -> list[str]:
        """Full names of topics without partitions, and of partitions; `first`: topics may be created by it.

        OperationNotSupported if there are more than can be open.
        """
        ...

    def watching(self, brokers: Brokers) -> AbstractAsyncContextManager[Changed]:
        """Gives what returns when there may be others, which is every `interval` seconds or sooner."""
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
        self.text: str = ", ".join(self._topics)

    async def find(self, brokers: Brokers, *, first: bool) -> list[str]:
        found: list[str] = []
        for topic in self._topics:
            count = 0 if topic in self._plain else await brokers.partitions(topic, create=first)
            if count == 0:
                self._plain.add(topic)
            bounded(len(found) + count, self.text)
            found += partitions_of(topic, count)
        return found

    @asynccontextmanager
    async def watching(self, brokers: Brokers) -> AsyncIterator[Changed]:
        yield partial(anyio.sleep, self._interval)

    @property
    def interval(self) -> float | None:
        return self._interval if len(self._plain) < len(self._topics) else None


class Matching:
    """Those of a namespace whose names match, `persistent://tenant/namespace/` in front of the pattern or left out."""

    forgets = True

    def __init__(self, pattern: re.Pattern[str], mode: RegexSubscriptionMode, interval: float) -> None:
        """InvalidTopicName if there is no telling which namespace is meant."""
        self.interval: float | None = interval
        self.text: str = pattern.pattern
        scheme, mark, rest = self.text.partition("://")
        tenant, namespace, local = _parts(rest if mark else self.text)
        self._namespace = f"{tenant}/{namespace}"
        # of the whole name; what belongs to a partition matches as its partitioned topic does
        self._pattern = re.compile(local, pattern.flags)
        if mark:
            mode = RegexSubscriptionMode.of_domain(scheme)
        self._mode = mode
        self._flags = pattern.flags
        self._known: set[str] = set()
        self._told = anyio.Event()  # a broker said what is known now

    async def find(self, brokers: Brokers, *, first: bool) -> list[str]:
        if self._told.is_set():
            self._told = anyio.Event()
        else:
            topics = await brokers.topics(self._namespace, self._mode.value)
            if not self._told.is_set():  # or else that is newer
                self._known = set(self._matching(topics))
        bounded(len(self._known), self.text)
        return sorted(self._known)

    @asynccontextmanager
    async def watching(self, brokers: Brokers) -> AsyncIterator[Changed]:
        async with anyio.create_task_group() as tasks:
            if self._mode is not RegexSubscriptionMode.NonPersistentOnly:  # of which brokers do not tell
                watch = TopicWatch(brokers, self._namespace, self._pattern.pattern, self._flags, self)
                tasks.start_soon(watch.run)
            yield self._changed
            tasks.cancel_scope.cancel()

    def on_all(self, topics: Iterable[str]) -> None:
        """From a watcher: these are there of the persistent ones."""
        others = {name for name in self._known if not parse(name).is_persistent}
        self._tell(others.union(self._matching(topics)))

    def on_change(self, new: Iterable[str], deleted: Iterable[str]) -> None:
        """From a watcher: what changed since."""
        self._tell(self._known.union(self._matching(new)).difference(deleted))

    async def _changed(self) -> None:
        with anyio.move_on_after(self.interval):
            await self._told.wait()

    def _tell(self, known: set[str]) -> None:
        if known != self._known and len(known) <= MOST_TOPICS:
            self._known = known
            self._told.set()

    def _matching(self, topics: Iterable[str]) -> Iterable[str]:
        """Full names of those that match; brokers may send others."""
        for topic in topics:
            with suppress(InvalidTopicName):
                name = parse(topic)
                in_it = str(name.namespace_name) == self._namespace
                if in_it and self._pattern.fullmatch(name.partitioned_name.local_name):
                    yield str(name)


def _parts(pattern: str) -> tuple[str, str, str]:
    parts = pattern.split("/", 2)
    if len(parts) == 3:
        return parts[0], parts[1], parts[2]
    if len(parts) == 1:
        return "public", "default", pattern
    raise InvalidTopicName(f"{pattern}: a pattern is tenant/namespace/pattern, or for public/default the pattern alone")
