"""The consumers of segments, behind one consumer of a scalable topic."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio

from pulsarium.client.connection.waiting import shortened
from pulsarium.client.consumer.inbox import Inbox
from pulsarium.client.consumer.intercepting import Interceptors
from pulsarium.client.consumer.letters import Letters
from pulsarium.client.consumer.options import ConsumerOptions
from pulsarium.client.consumer.receiver import Receiver
from pulsarium.client.consumer.start import Start
from pulsarium.client.consumer.topic_consumer import TopicConsumer
from pulsarium.client.core import Core
from pulsarium.client.errors import FATAL, AlreadyClosed, PulsarError, SubscriptionNotFound, TopicNotFound, copy_of
from pulsarium.client.schema.versions import Versions
from pulsarium.client.statistics import ConsumerStatistics, ReceivedCounts
from pulsarium.client.together import together

logger: logging.Logger = logging.getLogger(__name__)

_GONE = (TopicNotFound, SubscriptionNotFound)


@dataclass(frozen=True)
class WantedSegment:
    """A segment that a consumer shall read."""

    id: int
    topic: str
    options: ConsumerOptions[Any]
    """The options of the consumer of this segment."""
    start: Start | None = None
    """The start of a reader, or None with a durable subscription."""

    @property
    def mode(self) -> tuple[object, ...]:
        """Return what the consumer of the segment cannot change while it is open."""
        return self.topic, self.options.consumer_type, self.options.key_shared_policy


@dataclass(eq=False)
class SegmentReader:
    """The consumer of one segment."""

    wanted: WantedSegment
    consumer: TopicConsumer | None = None
    """The open consumer."""
    opening: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    leaving: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    tried: anyio.Event = field(default_factory=anyio.Event)
    """Set after the first attempt to open."""
    is_leaving: bool = False
    left: anyio.Event = field(default_factory=anyio.Event)
    """Set when the consumer is closed."""


class SegmentInbox(Inbox):
    """The messages of all segments. A segment that is gone does not fail the others."""

    def __init__(self, on_end: Callable[[], None], versions: Versions | None = None) -> None:
        """Call `on_end` when a segment may have been read to its end."""
        super().__init__(versions=versions)
        self._on_end = on_end

    def wake(self, receiver: Receiver) -> None:
        super().wake(receiver)
        if receiver.end_of_topic:
            self._on_end()

    def _check(self) -> None:
        if self._error is not None:
            raise copy_of(self._error)
        for receiver in self._receivers:
            if receiver.error is not None and not isinstance(receiver.error, _GONE):
                raise copy_of(receiver.error)


class Segments:
    """Open and close the consumers of segments, as the layout or the controller demands."""

    def __init__(
        self,
        core: Core,
        options: ConsumerOptions[Any],
        letters: Letters,
        interceptors: Interceptors,
        on_end: Callable[[], None],
    ) -> None:
        """Make no consumer yet. `on_end` is called when a segment may have been read to its end. It must not block."""
        self._core = core
        self._letters = letters
        self._interceptors = interceptors
        self._counts = ReceivedCounts()
        self._parts: dict[str, SegmentReader] = {}  # by topic
        self._is_closed = False
        versions = core.schemas if options.schema.reads_by_writer else None
        self.inbox: SegmentInbox = SegmentInbox(on_end, versions)
        """The queues of all segments."""

    def find(self, topic: str) -> SegmentReader | None:
        """Return the part of a segment, by the name of its topic."""
        return self._parts.get(topic)

    @property
    def all(self) -> tuple[SegmentReader, ...]:
        """Return all parts."""
        return tuple(self._parts.values())

    def statistics(self) -> ConsumerStatistics:
        """Return the statistics of all segments together."""
        consumers = [part.consumer for part in self.all if part.consumer is not None]
        pending = sum(consumer.pending_acknowledgements for consumer in consumers)
        return self._counts.picture(len(self.inbox), self.inbox.size(), pending)

    def add(self, wanted: WantedSegment) -> SegmentReader:
        """Open the consumer of a segment in a task, unless it is there already."""
        part = self._parts.get(wanted.topic)
        if part is None:
            if self._is_closed:
                raise AlreadyClosed("the consumer was closed")
            part = self._parts[wanted.topic] = SegmentReader(wanted)
            self._core.brokers.task_group.start_soon(self._open, part)
        return part

    async def added(self, wanted: Iterable[WantedSegment]) -> None:
        """Open the consumers of segments, and wait for the first attempt of each. Raise the first fatal error."""
        for part in [self.add(one) for one in wanted]:
            await part.tried.wait()
        self.inbox._check()

    def remove_nowait(self, part: SegmentReader, ready: Callable[[], Awaitable[None]] | None = None) -> None:
        """Close the consumer of a segment in a task, after `ready` if it is given."""
        if not part.is_leaving:
            part.is_leaving = True
            self._core.brokers.task_group.start_soon(self._remove, part, ready)

    async def aclose(self) -> None:
        """Close all consumers."""
        self._is_closed = True
        self.inbox.fail(AlreadyClosed("the consumer was closed"))
        await together([partial(self._close, part) for part in self.all])
        self._parts.clear()

    # ---- its own

    async def _remove(self, part: SegmentReader, ready: Callable[[], Awaitable[None]] | None) -> None:
        with part.leaving:
            if part.consumer is not None:
                self.inbox.remove(part.consumer.receiver)  # delivers no more
            if ready is not None:
                await ready()
        if self._parts.get(part.wanted.topic) is part:
            await self._close(part)
            self._parts.pop(part.wanted.topic, None)
        part.left.set()

    async def _close(self, part: SegmentReader) -> None:
        part.opening.cancel()
        part.leaving.cancel()
        if part.consumer is not None:
            await part.consumer.aclose()

    async def _open(self, part: SegmentReader) -> None:
        backoff = self._core.brokers.new_backoff()
        try:
            with part.opening:
                while not await self._try(part):
                    part.tried.set()
                    await anyio.sleep(backoff.next())
        finally:
            part.tried.set()

    async def _try(self, part: SegmentReader) -> bool:
        """Try to open a consumer. Return False to try again."""
        wanted, core = part.wanted, self._core
        consumer = TopicConsumer(
            core.brokers,
            wanted.topic,
            wanted.options,
            self.inbox,
            wanted.start,
            letters=self._letters,
            interceptors=self._interceptors,
            counts=self._counts,
        )
        try:
            await consumer.open()
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await consumer.aclose()
            if not isinstance(error, PulsarError):
                raise
            if isinstance(error, _GONE):
                logger.info("%s: gone: %s", wanted.topic, shortened(error))
                self._parts.pop(wanted.topic, None)
                return True
            if isinstance(error, FATAL):
                self.inbox.fail(error)
                return True
            core.brokers.waiting.tell(error)
            return False
        part.consumer = consumer
        return True


def by_topic(wanted: Iterable[WantedSegment]) -> Mapping[str, WantedSegment]:
    """Return segments by the names of their topics."""
    return {one.topic: one for one in wanted}
