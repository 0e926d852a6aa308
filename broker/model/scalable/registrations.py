"""Registered consumers of a scalable topic: who has joined each subscription, and the segments of each of them.

A registration is a consumer's name in the topic's record, so it outlives connections and brokers. A consumer whose
connection ends keeps its segments for a grace period. A segment follows the segments that it replaces only when the
subscription has drained them, if any of its consumers needs the order of keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pulsarium.broker.clock import Timeline, Timer
from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.broker.model.scalable.assignment import Range, assignable, round_robin, shared, undrained, waiting
from pulsarium.broker.model.scalable.layout import Layout, Segment
from pulsarium.broker.storage.interface import Done
from pulsarium.proto.topic_name import TopicName

FIRST_LOOK = 2.0  # seconds from a change of the layout to the first look for drained segments
LAST_LOOK = 900.0  # seconds between two looks at most
STREAM, QUEUE = "STREAM", "QUEUE"


class Placed(NamedTuple):
    """A segment that a consumer has, with the ranges of its entry buckets if it has several consumers."""

    segment: Segment
    buckets: tuple[Range, ...]


class Assignment(NamedTuple):
    """The segments of a consumer in one layout."""

    epoch: int
    placed: tuple[Placed, ...]


class Assignee(Protocol):
    """A connection with registered consumers."""

    def assigned(self, consumer_id: int, assignment: Assignment) -> None:
        """Send SCALABLE_TOPIC_ASSIGNMENT_UPDATE."""
        ...


class RegisteredTopic(Protocol):
    """The scalable topic that consumers register with."""

    made: dict[str, str]  # types of the subscriptions that were made over REST
    registered: dict[str, list[str]]  # names of the registered consumers of each subscription

    @property
    def name(self) -> TopicName:
        """Return the topic:// name."""
        ...

    @property
    def layout(self) -> Layout:
        """Return the present layout."""
        ...

    def save(self) -> None:
        """Store the record, with `made` and `registered`."""
        ...

    def is_drained(self, segment: Segment, subscription: str) -> bool:
        """Return whether a subscription has acknowledged all of a segment. A missing cursor has not."""
        ...


@dataclass(frozen=True, slots=True)
class Rules:
    """Differences between releases, and the grace period in seconds.

    as_m1: assign as 5.0.0-M1 does. A consumer that joins is told its assignment also before the answer.
    faults: a connection that ends disconnects its consumers even if others took their names. Except in 5.0.0-M1, a
    subscription that all consumers have left is remembered.
    """

    grace: float
    as_m1: bool = False
    faults: bool = False


class Keeper(Protocol):
    """The turn, which tells of commits."""

    def after_commit(self, done: Done) -> None:
        """Call `done` with the result of the commit of all changes so far."""
        ...


@dataclass(slots=True)
class RegisteredMember:
    """A registered consumer. Without a client, the consumer is disconnected and its grace period runs."""

    name: str
    client: Assignee | None = None
    consumer_id: int = 0
    grace: Timer | None = None


class InvalidRegistrationError(BrokerServiceError):
    """A registration that the metadata cannot hold."""


class Registrations:
    """The subscriptions of a scalable topic that the metadata has, and their registered consumers."""

    def __init__(self, topic: RegisteredTopic, clock: Timeline, keeper: Keeper, rules: Rules) -> None:
        self.topic = topic
        self.clock = clock
        self.keeper = keeper
        self.rules = rules
        self._groups: dict[str, SubscriptionGroup] = {}
        self.listeners: list[Callable[[], None]] = []  # called when the number of consumers has changed
        for subscription, names in topic.registered.items():
            self._group(subscription).restore(names)

    def _group(self, subscription: str) -> SubscriptionGroup:
        return self._groups.setdefault(subscription, SubscriptionGroup(self, subscription))

    def _tell(self) -> None:
        for told in self.listeners:
            told()

    # subscriptions

    def create(self, subscription: str, kind: str) -> None:
        """Add a subscription. An existing one keeps its type."""
        if subscription not in self.topic.made:
            self.topic.made[subscription] = kind
            self.topic.save()

    def delete(self, subscription: str) -> None:
        """Delete a subscription with its registrations. Their clients are not told."""
        made = self.topic.made.pop(subscription, None)
        registered = self.topic.registered.pop(subscription, None)
        if made is not None or registered is not None:
            self.topic.save()
        group = self._groups.pop(subscription, None)
        if group is not None:
            group.close()
            self._tell()

    def assigned(self, subscription: str) -> list[tuple[str, bool, list[int]]]:
        """Return each registered consumer: its name, whether it is connected, and the ids of its segments."""
        group = self._groups.get(subscription)
        if group is None:
            return []
        return [
            (name, group.members[name].client is not None, [each.segment.id for each in assignment.placed])
            for name, assignment in group.assignments().items()
        ]

    def blocked(self, subscription: str) -> set[int]:
        """Return the segments that wait until a subscription has drained others."""
        group = self._groups.get(subscription)
        if group is None or not group.ordered or group.checkpoints:
            return set()
        return waiting(self.topic.layout.segments, group.drained) - group.drained

    def is_of_checkpoints(self, subscription: str) -> bool:
        """Return whether a subscription has had consumers that keep a checkpoint, and so no cursors."""
        group = self._groups.get(subscription)
        return group is not None and group.checkpoints

    def counts(self) -> dict[str, int]:
        """Return how many consumers each subscription has registered."""
        return {name: len(group.members) for name, group in self._groups.items()}

    def undrained(self, subscription: str) -> list[int]:
        """Return the sealed segments that a subscription must drain before consumers get those that replace them."""
        group = self._groups.get(subscription)
        return [] if group is None else group.waits_for

    def assignment(self, subscription: str, name: str) -> Assignment:
        """Return the present assignment of a registered consumer."""
        return self._groups[subscription].assignments()[name]

    # consumers

    def join(self, subscription: str, name: str, client: Assignee, consumer_id: int, *, ordered: bool) -> Assignment:
        """Register a consumer, or connect a registered one, and return its assignment.

        The other consumers that the registration concerns are told after its commit. Raise `InvalidRegistrationError`
        for a consumer without a name.
        """
        if not name:
            topic = self.topic.name
            path = f"/topics/{topic.namespace_name}/{topic.local_name}/subscriptions/{subscription}/consumers/"
            raise InvalidRegistrationError(f"Path({path}) is invalid")
        return self._group(subscription).join(name, client, consumer_id, ordered=ordered)

    def leave(self, subscription: str, name: str) -> None:
        """Remove the registration of a consumer at once."""
        if subscription in self._groups:
            self._groups[subscription].remove(name)

    def disconnected(self, subscription: str, name: str, client: Assignee) -> None:
        """Let the grace period of a consumer begin, because its connection has ended."""
        group = self._groups.get(subscription)
        member = None if group is None else group.members.get(name)
        if group is None or member is None or member.client is None:
            return
        if member.client is client or self.rules.faults:
            group.disconnect(member)

    def layout_changed(self) -> None:
        """Assign the segments of a new layout, and tell all consumers."""
        for group in self._groups.values():
            group.layout_changed()

    def moved(self) -> None:
        """Disconnect all consumers, because another broker has become the controller. They register there again."""
        for group in self._groups.values():
            for member in group.members.values():
                if member.client is not None:
                    group.disconnect(member)

    def close(self) -> None:
        """Stop all timers, because the topic is deleted or its state is replaced."""
        for group in self._groups.values():
            group.close()
        self._groups.clear()

    # what a group needs

    def keep(self, group: SubscriptionGroup) -> None:
        """Store the registrations of a group, and forget a group that has none, except in 5.0.1."""
        if group.members:
            self.topic.registered[group.subscription] = list(group.members)
        elif self._groups.get(group.subscription) is group:
            if self.rules.as_m1 or not self.rules.faults:
                del self._groups[group.subscription]
            self.topic.registered.pop(group.subscription, None)
        self.topic.save()
        self._tell()


class SubscriptionGroup:
    """The consumers of one subscription."""

    def __init__(self, registrations: Registrations, subscription: str) -> None:
        self.subscription = subscription
        self.members: dict[str, RegisteredMember] = {}  # in the order in which they joined
        self.ordered = False  # a consumer needs the order of keys; not known of restored ones until they are back
        self.checkpoints = False  # a consumer has kept a checkpoint
        self.drained: set[int] = set()
        self._all = registrations
        self._delay = FIRST_LOOK
        self._look: Timer | None = None

    # joining and leaving

    def restore(self, names: Sequence[str]) -> None:
        """Load registrations from the metadata. Their consumers have the whole grace period to come back."""
        for name in names:
            self.disconnect(self.members.setdefault(name, RegisteredMember(name)))

    def join(self, name: str, client: Assignee, consumer_id: int, *, ordered: bool) -> Assignment:
        """Add a consumer, or connect a known one, and return its assignment."""
        self.checkpoints = self.checkpoints or not ordered
        if ordered and not self.ordered:
            self.ordered = True
            self._tell_all()
            self._look_soon()
        member = self.members.get(name)
        if member is not None:
            self._stop(member)
            member.client, member.consumer_id = client, consumer_id
            assignment = self.assignments()[name]
            if self._all.rules.as_m1:
                self._tell(member, assignment)
            return assignment
        member = self.members[name] = RegisteredMember(name, client, consumer_id)
        self._all.keep(self)
        self._all.keeper.after_commit(lambda error: None if error is None else self._not_kept(member))
        assignments = self._tell_all(None if self._all.rules.as_m1 else member)
        self._look_soon()
        return assignments[name]

    def _not_kept(self, member: RegisteredMember) -> None:
        if self.members.get(member.name) is member:
            self.remove(member.name)

    def disconnect(self, member: RegisteredMember) -> None:
        """Begin the grace period of a consumer."""
        self._stop(member)
        member.client = None
        member.grace = self._all.clock.call_later(self._all.rules.grace, lambda: self.remove(member.name))

    def remove(self, name: str) -> None:
        """Remove a consumer, and give its segments to the others."""
        member = self.members.pop(name, None)
        if member is None:
            return
        self._stop(member)
        self._all.keep(self)
        if self.members:
            self._tell_all()
        else:
            self.close()

    @staticmethod
    def _stop(member: RegisteredMember) -> None:
        if member.grace is not None:
            member.grace.cancel()
            member.grace = None

    def close(self) -> None:
        """Stop all timers."""
        for member in self.members.values():
            self._stop(member)
        if self._look is not None:
            self._look.cancel()
            self._look = None

    # assignments

    def assignments(self) -> dict[str, Assignment]:
        """Return the assignment of each consumer in the present layout."""
        layout, as_m1 = self._all.topic.layout, self._all.rules.as_m1
        segments = assignable(layout.segments, self.drained, ordered=self.ordered, ancestors=not as_m1)
        shares = (round_robin if as_m1 or self.checkpoints else shared)(segments, self.members)
        return {
            name: Assignment(
                layout.epoch, tuple(Placed(layout.segments[each.segment_id], each.buckets) for each in mine)
            )
            for name, mine in shares.items()
        }

    def _tell_all(self, but: RegisteredMember | None = None) -> dict[str, Assignment]:
        assignments = self.assignments()
        for member in self.members.values():
            if member is not but:
                self._tell(member, assignments[member.name])
        return assignments

    def _tell(self, member: RegisteredMember, assignment: Assignment) -> None:
        client, consumer_id = member.client, member.consumer_id
        if client is not None:
            self._all.keeper.after_commit(
                lambda error: client.assigned(consumer_id, assignment) if error is None else None
            )

    def layout_changed(self) -> None:
        """Tell all consumers their segments in a new layout."""
        self.drained &= self._all.topic.layout.segments.keys()
        self._tell_all()
        self._look_soon()

    # drained segments

    @property
    def waits_for(self) -> list[int]:
        """Return the sealed segments that are not drained, in order; none if no consumer needs the order of keys."""
        return undrained(self._all.topic.layout.segments, self.drained) if self.ordered else []

    def _look_soon(self) -> None:
        self._delay = FIRST_LOOK
        if self._look is not None:
            self._look.cancel()
        self._look = self._all.clock.call_later(self._delay, self._look_for_drained) if self.waits_for else None

    def _look_for_drained(self) -> None:
        segments = self._all.topic.layout.segments
        found = {each for each in self.waits_for if self._all.topic.is_drained(segments[each], self.subscription)}
        if found:
            self.drained |= found
            self._tell_all()
            self._look_soon()
            return
        self._delay = min(2 * self._delay, LAST_LOOK)
        self._look = self._all.clock.call_later(self._delay, self._look_for_drained) if self.waits_for else None
