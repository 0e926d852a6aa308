"""Find the topics of a consumer: named topics with all their partitions, or topics that match a pattern."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from typing import Any, Protocol, TypeAlias

import anyio

from pulsarium.client.connection.brokers import Brokers
from pulsarium.client.connection.connection import Connection
from pulsarium.client.connection.waiting import shortened
from pulsarium.client.consumer.options import ConsumerOptions, RegexSubscriptionMode
from pulsarium.client.errors import TRANSIENT, InvalidConfiguration, InvalidTopicName, PulsarError
from pulsarium.client.topics import MOST_TOPICS, bounded, full_name, parse, partitions_of
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of

logger: logging.Logger = logging.getLogger(__name__)

_SUPPORTED = "supports_topic_watchers"
_LONGEST = 50  # the default of subscriptionPatternMaxLength in broker.conf
_COMMON = re.compile(r"(?:[\w/:-]|\.[*+]?)*", re.ASCII)  # re, RE2 and Java read these patterns alike


class Listener(Protocol):
    """Handle changes of persistent topics, which may include topics that do not match. No method may wait."""

    def on_all(self, topics: Iterable[str]) -> None:
        """Take the names of all topics."""
        ...

    def on_change(self, new: Iterable[str], deleted: Iterable[str]) -> None:
        """Take the changes since the last call."""
        ...


class TopicWatch:
    """A watcher of topics, at any broker."""

    def __init__(self, brokers: Brokers, namespace: str, pattern: str, flags: int, listener: Listener) -> None:
        """Watch the topics of a namespace whose local names match `pattern`.

        The pattern is in Python's syntax, and was compiled with `flags`.
        """
        self._brokers = brokers
        self._namespace = namespace
        self._pattern = broker_pattern(namespace, pattern, flags)
        self._listener = listener
        self._id = brokers.next_watcher_id()
        self._hash: str | None = None  # of the topics that the listener knows
        self._lost = anyio.Event()

    async def run(self) -> None:
        """Watch until the task is canceled, or return when the brokers do not offer watchers."""
        backoff = self._brokers.new_backoff()
        while True:
            try:
                connection = await self._brokers.connect_to_any()
                if _SUPPORTED not in connection.feature_flags:
                    return
                await self._watch(connection)
                backoff.reset()
            except TRANSIENT as error:
                logger.info("the watcher of topics in %s is opened again later: %s", self._namespace, shortened(error))
            except PulsarError as error:  # enableBrokerTopicListWatcher is off, or the service URL is HTTP
                logger.info("no watcher of topics in %s, so they are polled: %s", self._namespace, shortened(error))
                return
            await anyio.sleep(backoff.next())

    def on_success(self, success: pb.CommandWatchTopicListSuccess) -> None:
        known, self._hash = self._hash, text_of(success.topics_hash)
        if self._hash != known:
            self._listener.on_all(map(text_of, success.topic))

    def on_update(self, update: pb.CommandWatchTopicUpdate) -> None:
        self._hash = text_of(update.topics_hash)
        self._listener.on_change(map(text_of, update.new_topics), map(text_of, update.deleted_topics))

    def on_lost(self, error: PulsarError) -> None:
        self._lost.set()

    async def _watch(self, connection: Connection) -> None:
        """Watch on a connection until the connection is lost."""
        self._lost = anyio.Event()
        watch = pb.CommandWatchTopicList(
            request_id=connection.next_request_id(),
            watcher_id=self._id,
            namespace=self._namespace,
            topics_pattern=self._pattern,
            topics_hash=self._hash,
        )
        connection.attach_watcher(self._id, self)
        try:
            await connection.request(pb.BaseCommand(type=pb.BaseCommand.WATCH_TOPIC_LIST, watchTopicList=watch))
            await self._lost.wait()
        finally:
            connection.detach_watcher(self._id)
            if not connection.is_lost:
                close = pb.CommandWatchTopicListClose(request_id=connection.next_request_id(), watcher_id=self._id)
                connection.send_nowait(
                    pb.BaseCommand(type=pb.BaseCommand.WATCH_TOPIC_LIST_CLOSE, watchTopicListClose=close)
                )


def broker_pattern(namespace: str, pattern: str, flags: int) -> str:
    """Return a pattern for brokers that matches at least the same topics.

    Return the pattern itself where brokers read it alike, and otherwise one for all topics.
    """
    text = f"{namespace}/{pattern}"
    plain = _COMMON.fullmatch(pattern) and flags in (0, re.UNICODE.value) and len(text) <= _LONGEST
    return text if plain else ".*"


Changed: TypeAlias = Callable[[], Awaitable[None]]


class Discovery(Protocol):
    """Find the topics of a consumer, repeatedly."""

    text: str
    """The full names of the topics, or the pattern."""
    forgets: bool
    """True where the consumer leaves topics that are not found any more."""

    @property
    def interval(self) -> float | None:
        """Return the seconds between two searches, or None when the topics never change."""
        ...

    async def find(self, brokers: Brokers, *, first: bool) -> list[str]:
        """Return the full names of all partitions, and of topics without partitions.

        With `first`, create missing topics.

        Raise `OperationNotSupported` for more topics than a client can open.
        """
        ...

    def watching(self, brokers: Brokers) -> AbstractAsyncContextManager[Changed]:
        """Return a context with a function that waits until the topics may have changed, at most `interval` seconds."""
        ...


def discovery(options: ConsumerOptions[Any]) -> Discovery:
    """Return the discovery for the topics in these options."""
    topic = options.topic
    if isinstance(topic, re.Pattern):
        return Matching(topic, options.regex_subscription_mode, options.pattern_auto_discovery_period)
    return Named([topic] if isinstance(topic, str) else topic, options.auto_update_partitions_interval)


class Named:
    """Named topics, with their current partitions."""

    forgets = False

    def __init__(self, topics: Sequence[str], interval: float) -> None:
        """Take the topics. Raise `InvalidTopicName` for a wrong name, or `InvalidConfiguration` without a topic."""
        self._interval = interval
        self._topics = list(dict.fromkeys(full_name(topic) for topic in topics))
        if not self._topics:
            raise InvalidConfiguration("a consumer needs a topic: the list is empty")
        self._plain: set[str] = set()  # topics without partitions, which never get any
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
    """The topics of a namespace that match a pattern, which may begin with `persistent://tenant/namespace/`."""

    forgets = True

    def __init__(self, pattern: re.Pattern[str], mode: RegexSubscriptionMode, interval: float) -> None:
        """Parse the pattern. Raise `InvalidTopicName` when the pattern does not tell its namespace."""
        self.interval: float | None = interval
        self.text: str = pattern.pattern
        scheme, mark, rest = self.text.partition("://")
        tenant, namespace, local = _parts(rest if mark else self.text)
        self._namespace = f"{tenant}/{namespace}"
        # matches the local name; a partition matches when its partitioned topic does
        self._pattern = re.compile(local, pattern.flags)
        if mark:
            mode = RegexSubscriptionMode.of_domain(scheme)
        self._mode = mode
        self._flags = pattern.flags
        self._known: set[str] = set()
        self._told = anyio.Event()  # set when a watcher changes `_known`

    async def find(self, brokers: Brokers, *, first: bool) -> list[str]:
        if self._told.is_set():
            self._told = anyio.Event()
        else:
            topics = await brokers.topics(self._namespace, self._mode.value)
            if not self._told.is_set():  # otherwise the watcher's answer is newer
                self._known = set(self._matching(topics))
        bounded(len(self._known), self.text)
        return sorted(self._known)

    @asynccontextmanager
    async def watching(self, brokers: Brokers) -> AsyncIterator[Changed]:
        async with anyio.create_task_group() as tasks:
            if self._mode is not RegexSubscriptionMode.NonPersistentOnly:  # brokers do not watch non-persistent topics
                watch = TopicWatch(brokers, self._namespace, self._pattern.pattern, self._flags, self)
                tasks.start_soon(watch.run)
            yield self._changed
            tasks.cancel_scope.cancel()

    def on_all(self, topics: Iterable[str]) -> None:
        """Replace the known persistent topics by those of a watcher."""
        others = {name for name in self._known if not parse(name).is_persistent}
        self._tell(others.union(self._matching(topics)))

    def on_change(self, new: Iterable[str], deleted: Iterable[str]) -> None:
        """Apply the changes that a watcher reports."""
        self._tell(self._known.union(self._matching(new)).difference(deleted))

    async def _changed(self) -> None:
        with anyio.move_on_after(self.interval):
            await self._told.wait()

    def _tell(self, known: set[str]) -> None:
        if known != self._known and len(known) <= MOST_TOPICS:
            self._known = known
            self._told.set()

    def _matching(self, topics: Iterable[str]) -> Iterable[str]:
        """Yield the full names of matching topics. Brokers may send others."""
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
    raise InvalidTopicName(f"{pattern}: give the pattern as tenant/namespace/pattern, or alone for public/default")
