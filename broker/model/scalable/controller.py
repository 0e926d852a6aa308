"""The controllers of scalable topics: each has its topic's registrations, measures its segments, and scales it.

One broker leads a topic, from the first use of the controller on until the broker stops. As in Pulsar, an unload moves
segments and not the leadership, because clients notice another leader only when their connection ends. The next use
makes another controller, which restores the registrations from the topic's record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from pulsarium.broker.clock import Clock, Timeline, Timer
from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.context import Context
from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.broker.model.namespace.metadata import Metadata
from pulsarium.broker.model.namespace.ownership import Ownership
from pulsarium.broker.model.scalable.auto_scale import (
    MERGE_COOLDOWN,
    NOTHING,
    REBUCKET_COOLDOWN,
    SPLIT_COOLDOWN,
    AutoScalePolicy,
    Decision,
    Merge,
    Nothing,
    PolicyError,
    Rebucket,
    SegmentLoad,
    Situation,
    SplitDecision,
    Times,
    decide,
    effective,
)
from pulsarium.broker.model.scalable.collection import collectable
from pulsarium.broker.model.scalable.layout import Layout, Segment
from pulsarium.broker.model.scalable.measuring import Meter
from pulsarium.broker.model.scalable.registrations import Registrations, Rules
from pulsarium.broker.model.scalable.topics import ScalableTopic, ScalableTopics
from pulsarium.proto.topic_name import TopicName

log = PartLog("scalable")

COLLECTION: Final = 60.0  # seconds between two looks for sealed segments that nobody needs
POLICY: Final = "scalableTopicAutoScalePolicy"  # in the policies of a namespace
BY_HAND, BY_ITSELF = "manual", "auto"


class NotLeaderError(BrokerServiceError):
    """A request to a broker that does not lead the topic."""


@dataclass(frozen=True, slots=True)
class Operation:
    """The last change of a topic's segments, or the last attempt: `error` is "" after a success.

    `java_text` is the error as the stats of Pulsar show it.
    """

    kind: str
    trigger: str
    segments: tuple[int, ...]
    at_ms: int
    error: str = ""
    java_text: str = ""


class Controller:
    """The controller of one topic."""

    def __init__(
        self,
        topic: ScalableTopic,
        stores: Context,
        metadata: Metadata,
        ownership: Ownership[Any],
        retention_ms: Callable[[ScalableTopic, Segment], int],
    ) -> None:
        self.topic = topic
        self.times = _times(topic.layout)
        self.last: Operation | None = None
        self.pruned: Operation | None = None  # the last removal of sealed segments, which says nothing about auto scale
        self.decision: Decision = NOTHING
        self.meter = Meter(topic, stores.config.scalableTopicLoadReportRateChangeThreshold)
        self._stores = stores
        self._metadata = metadata
        self._ownership = ownership
        self._layout = topic.layout
        self._again: Timer | None = None
        self._trigger = BY_HAND
        self._evaluating = False
        rules = Rules(
            stores.config.scalableTopicConsumerSessionGracePeriodSeconds,
            as_m1=stores.profile.scalable_as_m1,
            faults=stores.profile.scalable_faults,
        )
        self.registrations = Registrations(topic, stores.clock, stores.turn, rules)
        self.registrations.listeners.append(self.evaluate_soon)
        topic.observers[self._changed] = None
        self._retention_ms = retention_ms
        # from now on, and not for all topics at once: a segment that was sealed just now stays for a while
        self._collection = stores.clock.every(COLLECTION, self._collect)

    def follows(self, line: Timeline) -> bool:
        """Return whether the topic has the time of `line`."""
        return self._stores.clock.follows(line)

    def close(self) -> None:
        """Stop all timers, because the topic is deleted or its broker leads it no more."""
        self.topic.observers.pop(self._changed, None)
        self.registrations.close()
        self.registrations.listeners.clear()
        self._stop_waiting()
        self._collection.cancel()

    def _collect(self) -> None:
        if ids := collectable(self.topic, self._stores.clock.now_ms(), self._retention_ms):
            log.info("pruning drained segments", topic=self.topic.name, segments=ids)
            self.topic.prune(ids)

    def _changed(self, topic: ScalableTopic) -> None:
        """Note an operation, by hand or not, and assign the new segments."""
        before, self._layout = self._layout, topic.layout
        if topic.layout.epoch == before.epoch:
            return
        self._note(before, topic.layout)
        self.registrations.layout_changed()

    def _note(self, before: Layout, layout: Layout) -> None:
        added = [each for each in layout.segments.values() if each.created_epoch == layout.epoch]
        if not added:
            gone = tuple(sorted(before.segments.keys() - layout.segments.keys()))
            self.pruned = Operation("prune", BY_ITSELF, gone, self._now_ms())
            return
        kind = _kind(layout, added[0])
        self.times = replace(self.times, **{kind: added[0].created_ms})
        self.last = Operation(kind, self._trigger, added[0].parents, self._now_ms())

    @contextmanager
    def by_hand(self, kind: str, *segments: int) -> Iterator[None]:
        """Note a change that somebody asks for and that fails. Changes that succeed are noted with their commit."""
        try:
            yield
        except BrokerServiceError as error:
            self._failed(kind, BY_HAND, segments, error)
            raise

    def _failed(self, kind: str, trigger: str, segments: tuple[int, ...], error: BrokerServiceError) -> None:
        self.last = Operation(kind, trigger, segments, self._now_ms(), error.text, error.java_text)

    def owner_of(self, segment: Segment) -> Any | None:
        """Return the broker that serves a segment, or None."""
        return self._ownership.owner(self.topic.segment_topic(segment))

    # auto scale

    @property
    def policy(self) -> AutoScalePolicy:
        """Return the effective policy."""
        namespace = self._metadata.namespaces.get(str(self.topic.name.namespace_name), {})
        buckets = self._stores.profile.entry_buckets
        return effective(self._stores.config, namespace.get(POLICY), self.topic.policy, entry_buckets=buckets)

    def load_of(self, segment: Segment) -> tuple[SegmentLoad, int] | None:
        """Return the load of a segment and its age in milliseconds, or None before the load is known."""
        load = self.meter.loads.get(segment.id)
        return None if load is None else (load, max(0, self._now_ms() - load.since_ms))

    def _now_ms(self) -> int:
        return self._stores.clock.now_ms()

    def situation(self) -> Situation:
        """Return all that a decision depends on."""
        consumers = max(self.registrations.counts().values(), default=0)
        return Situation(self.topic.layout, self.meter.loads, consumers, self.policy, self._now_ms(), self.times)

    def evaluate_soon(self) -> None:
        """Decide in a turn of its own, after the present work."""
        if not self._evaluating:
            self._evaluating = True
            self._stores.turn.later(self._evaluate_now)

    def _evaluate_now(self) -> None:
        self._evaluating = False
        self.evaluate()

    def evaluate(self) -> None:
        """Scale the topic if its load or its consumers ask for it. A cool-down is followed by another look."""
        if not self.topic.exists or self._changed not in self.topic.observers:
            return
        try:
            now = self.situation()
        except PolicyError as error:  # a change of broker.conf can contradict an older override
            log.error("the auto scale policy is contradictory", topic=self.topic.name, reason=error)
            return
        self.decision = decision = decide(now)
        if isinstance(decision, Nothing):
            self._wait_for_cool_down(decision, now)
            return
        log.info("scaling", topic=self.topic.name, decision=decision)
        kind, segments = _described(decision)
        self._trigger = decision.reason
        try:
            self._apply(decision)
        except BrokerServiceError as error:
            self._failed(kind, decision.reason, segments, error)
            log.error("scaling failed", topic=self.topic.name, decision=decision, reason=error.text)
        self._stores.turn.after_commit(self._applied)

    def _applied(self, error: Exception | None) -> None:
        self._trigger = BY_HAND
        if error is None:
            self.evaluate_soon()

    def _apply(self, decision: SplitDecision | Merge | Rebucket) -> None:
        if isinstance(decision, SplitDecision):
            self.topic.split(decision.segment)
        elif isinstance(decision, Merge):
            self.topic.merge(decision.first, decision.second)
        else:
            for segment in decision.segments:
                self.topic.rebucket(segment, decision.buckets)

    def _wait_for_cool_down(self, decision: Nothing, now: Situation) -> None:
        self._stop_waiting()
        cool_downs = {
            SPLIT_COOLDOWN: (now.times.split, now.policy.split_cooldown),
            MERGE_COOLDOWN: (now.times.merge, now.policy.merge_cooldown),
            REBUCKET_COOLDOWN: (now.times.rebucket, now.policy.rebucket_cooldown),
        }
        last_ms, seconds = cool_downs.get(decision.blocked, (None, 0))
        if last_ms is not None:
            end_ms = max(last_ms + seconds * 1000, now.now_ms + 1)
            self._again = self._stores.clock.call_at(end_ms, self.evaluate)

    def _stop_waiting(self) -> None:
        if self._again is not None:
            self._again.cancel()
            self._again = None


def _times(layout: Layout) -> Times:
    """Return when the last operations of each kind gave a layout its segments."""
    times = Times()
    for segment in sorted(layout.segments.values(), key=lambda each: each.created_ms):
        if segment.parents:
            times = replace(times, **{_kind(layout, segment): segment.created_ms})
    return times


def _kind(layout: Layout, segment: Segment) -> str:
    """Return the kind of operation that created a segment with parents."""
    if len(segment.parents) > 1:
        return "merge"
    parent = layout.segments.get(segment.parents[0])
    return "rebucket" if parent is not None and (parent.start, parent.end) == (segment.start, segment.end) else "split"


def _described(decision: SplitDecision | Merge | Rebucket) -> tuple[str, tuple[int, ...]]:
    if isinstance(decision, SplitDecision):
        return "split", (decision.segment,)
    if isinstance(decision, Merge):
        return "merge", (decision.first, decision.second)
    return "rebucket", decision.segments


class Controllers:
    """The controllers of a cluster's topics, and their periodic work."""

    def __init__(
        self, stores: Context, clock: Clock, metadata: Metadata, topics: ScalableTopics, ownership: Ownership[Any]
    ) -> None:
        self._stores = stores
        self._metadata = metadata
        self._topics = topics
        self._ownership = ownership
        self._controllers: dict[ScalableTopic, Controller] = {}
        topics.observers[self._topic_changed] = None
        config = stores.config
        clock.check_every(config.scalableTopicLoadReportIntervalSeconds, lambda line: partial(self._measure, line))
        clock.check_every(config.scalableTopicAutoScaleIntervalSeconds, lambda line: partial(self._evaluate, line))

    def find(self, topic: ScalableTopic) -> Controller | None:
        """Return the controller of a topic, or None before its first use."""
        return self._controllers.get(topic)

    def lead(self, topic: ScalableTopic, broker: Any) -> Controller:
        """Return the controller of a topic. `broker` leads the topic if no broker does.

        Raise `NotLeaderError` when another broker leads the topic.
        """
        leader = topic.controller
        if leader is not None and not leader.alive:
            self.release(topic)
            leader = None
        if leader is not None and leader is not broker:
            raise NotLeaderError(f"This broker is not the leader for topic: {topic.name}")
        controller = self._controllers.get(topic)
        if controller is None:
            topic.lead(broker)
            controller = self._controllers[topic] = Controller(
                topic,
                self._stores.of(topic.name),
                self._metadata,
                self._ownership,
                self._retention_ms,
            )
        return controller

    def release(self, topic: ScalableTopic) -> None:
        """End the controller of a topic. The next use makes another."""
        controller = self._controllers.pop(topic, None)
        if controller is not None:
            controller.close()
            topic.lead(None)

    def release_all_of(self, broker: Any) -> None:
        """End the controllers that a broker leads, because the broker stops."""
        for topic in list(self._controllers):
            if topic.controller is broker:
                self.release(topic)

    def forget_all(self) -> None:
        """End all controllers, because another state replaces the current one."""
        for controller in self._controllers.values():
            controller.close()
        self._controllers.clear()

    def disconnected(self, name: TopicName, subscription: str, consumer: str, client: Any) -> None:
        """Let the grace period of a registered consumer begin, because its connection has ended."""
        topic = self._topics.find(name)
        controller = None if topic is None else self._controllers.get(topic)
        if controller is not None:
            controller.registrations.disconnected(subscription, consumer, client)

    def _topic_changed(self, topic: ScalableTopic, exists: bool) -> None:
        if not exists and topic in self._controllers:
            self._controllers.pop(topic).close()

    # periodic work

    def _measure(self, line: Timeline) -> None:
        now_ms = line.now_ms()
        for controller in self._of(line):
            controller.meter.measure(now_ms)

    def _evaluate(self, line: Timeline) -> None:
        for controller in self._of(line):
            controller.evaluate()

    def _of(self, line: Timeline) -> list[Controller]:
        return [each for each in self._controllers.values() if each.follows(line)]

    def _retention_ms(self, topic: ScalableTopic, segment: Segment) -> int:
        """Return how long a sealed segment is kept in milliseconds; negative is forever."""
        policies = self._topics.topics.policies_of(topic.segment_topic(segment))
        return policies.retention.minutes * 60_000
