"""A run of an exploration: a broker or a proxy that follows a plan, with a capture that is judged afterwards."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from typing import Final, Generic, Protocol, TypeVar

import trio

from pulsarium.broker.config import ServeOptions
from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.capture import Capture
from pulsarium.broker.lab.explore.explorer import Explorer, PlannedRun
from pulsarium.broker.lab.explore.kinds import KINDS, ChoiceKind
from pulsarium.broker.lab.explore.plan import Plan
from pulsarium.broker.lab.explore.search import RunOutcome
from pulsarium.broker.proxying import ProxyOptions, RunningProxy, open_proxy
from pulsarium.broker.server import RunningCluster, open_broker
from pulsarium.broker.storage.lasting import LastingStorage
from pulsarium.capture.check.checker import tally_of
from pulsarium.capture.file import CaptureRecord
from pulsarium.capture.lint.checker import Walk
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.topic_name import TopicName

_OPENS: Final = ("PRODUCER", "SUBSCRIBE")


class HasLab(Protocol):
    """A broker or a proxy that runs, and has the lab."""

    @property
    def lab(self) -> Lab:
        """Return the lab on which an exploration acts."""
        ...


R = TypeVar("R", bound=HasLab)


class PlanRun(ABC, Generic[R]):
    """A run of a plan. Open it once, and ask for the outcome afterwards."""

    def __init__(self, plan: Plan, kinds: Iterable[ChoiceKind]) -> None:
        self._run = PlannedRun(plan)
        self._kinds = kinds
        self._records: Sequence[CaptureRecord] = ()
        self._capture: Capture | None = None

    @abstractmethod
    def _opened(self) -> AbstractAsyncContextManager[R]:
        """Serve until the block ends."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[R]:
        """Serve, and follow the plan, until the block ends."""
        async with self._opened() as running, trio.open_nursery() as nursery:
            explorer = Explorer(running.lab, self._run, self._kinds)
            with running.lab.captures.start(as_sent=True) as capture:
                self._capture = capture
                await nursery.start(explorer.run)
                try:
                    yield running
                finally:
                    explorer.end()
                    # a delayed frame of the broker belongs where the broker sent the frame
                    self._records = sorted(capture.records(), key=lambda record: record.monotonic_ns)
                    nursery.cancel_scope.cancel()

    def shared_topics(self) -> set[TopicName]:
        """Return the topics that clients have opened so far, on a broker that other runs use too."""
        return set()

    def outcome(self, failure: str, *, output: str = "", error: BaseException | None = None) -> RunOutcome:
        """Return the outcome. A broken promise of Pulsar is a failure too.

        `failure` says what the application reported, or "". `output` is the end of the output of a command, and `error`
        the exception of a test.
        """
        failure = failure or broken_promise(self._records)
        return RunOutcome(failure, tuple(self._run.made), self._run.passed, self._records, output, error)


class ExploredRun(PlanRun[RunningCluster]):
    """A run with new brokers in memory."""

    def __init__(self, options: ServeOptions, plan: Plan) -> None:
        super().__init__(plan, KINDS.values())
        self._options = replace(options, config=replace(options.config, **self._run.settings()))

    def _opened(self) -> AbstractAsyncContextManager[RunningCluster]:
        return open_broker(self._options, web_when_asked=True, storage=LastingStorage())


class ProxiedRun(PlanRun[RunningProxy]):
    """A run with a new proxy in front of a running broker. The broker remembers the runs before."""

    def __init__(self, options: ProxyOptions, plan: Plan) -> None:
        super().__init__(plan, [kind for kind in KINDS.values() if not kind.only_broker])
        self._options = options

    def _opened(self) -> AbstractAsyncContextManager[RunningProxy]:
        return open_proxy(self._options)

    def shared_topics(self) -> set[TopicName]:
        """Return the topics that clients have opened so far."""
        known = self._records or (() if self._capture is None else self._capture.records())
        return {each.partitioned_name for each in topics_of(known)}


def broken_promise(records: Sequence[CaptureRecord]) -> str:
    """Return the first promise of Pulsar that a history breaks, or ""."""
    verdicts = tally_of(enumerate(records, 1)).verdicts
    return f"a promise of Pulsar was broken: {verdicts[0]}" if verdicts else ""


def topics_of(records: Iterable[CaptureRecord]) -> Iterator[TopicName]:
    """Yield the topics of the producers and consumers that clients wanted to open."""
    walk = Walk()
    for record in records:
        frame = walk.feed(record)[1].frame
        if frame is not None and frame.topic and frame.spec is not None and frame.spec.name in _OPENS:
            with suppress(InvalidTopicName):
                yield TopicName.parse(frame.topic)
