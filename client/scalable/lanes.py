"""The producers of segments, and the messages that wait for one of them. Without tasks and sockets."""

from __future__ import annotations

import enum
from bisect import insort
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

import anyio

from pulsarium.client.errors import PulsarError
from pulsarium.client.producer.draft import Draft
from pulsarium.client.producer.receipt import Receipt
from pulsarium.client.scalable.layout import Layout, Segment

if TYPE_CHECKING:
    from pulsarium.client.producer.topic_producer import TopicProducer
    from pulsarium.client.transaction.transaction import Transaction


class LaneState(enum.Enum):
    """State of a lane."""

    OPENING = "opening"
    OPEN = "open"
    SEALED = "sealed"  # takes no more messages, and waits until those that it has sent are published or have failed
    DRAINED = "drained"  # has no messages, and waits for a layout in which its segment is not active
    ENDED = "ended"


class LaneEvent(enum.Enum):
    """Event that changes the state of a lane."""

    OPENED = "opened"
    SEAL = "seal"  # a layout says that the segment is sealed, or the broker that its topic is terminated
    DRAIN = "drain"  # no message is without an outcome
    END = "end"  # the segment is not active, or its producer has failed


_IN_ANY_CASE = {LaneEvent.END: LaneState.ENDED}

# The next state for each state and event.
_NEXT: Mapping[LaneState, Mapping[LaneEvent, LaneState]] = MappingProxyType(
    {
        LaneState.OPENING: {LaneEvent.OPENED: LaneState.OPEN, LaneEvent.SEAL: LaneState.SEALED} | _IN_ANY_CASE,
        LaneState.OPEN: {LaneEvent.SEAL: LaneState.SEALED} | _IN_ANY_CASE,
        LaneState.SEALED: {
            LaneEvent.OPENED: LaneState.SEALED,
            LaneEvent.SEAL: LaneState.SEALED,
            LaneEvent.DRAIN: LaneState.DRAINED,
        }
        | _IN_ANY_CASE,
        LaneState.DRAINED: dict.fromkeys((LaneEvent.OPENED, LaneEvent.SEAL, LaneEvent.DRAIN), LaneState.DRAINED)
        | _IN_ANY_CASE,
        LaneState.ENDED: dict.fromkeys(LaneEvent, LaneState.ENDED),
    }
)

LEAVING = frozenset({LaneState.SEALED, LaneState.DRAINED})


@dataclass(slots=True, eq=False)
class Sending:
    """A message between the application's call and its outcome."""

    number: int
    """The place of the message among all messages of the producer."""
    draft: Draft
    receipt: Receipt
    """The application's receipt. `draft` has a receipt for each attempt."""
    txn: Transaction | None
    has_own_sequence_id: bool
    segment: int | None = None
    """The segment that was chosen for a message without a key."""

    def again(self) -> Draft:
        """Return the message for another attempt, with a new receipt and without a sequence id of a segment."""
        draft = self.draft
        if not self.has_own_sequence_id:
            draft.metadata.ClearField("sequence_id")
        self.draft = Draft(draft.metadata, draft.content, draft.deliver_at, Receipt(), draft.txn)
        return self.draft


@dataclass(slots=True, eq=False)
class Lane:
    """The producer of one segment, and its messages without an outcome."""

    segment: Segment
    state: LaneState = LaneState.OPENING
    producer: TopicProducer | None = None
    """The open producer."""
    sends: dict[int, Sending] = field(default_factory=dict)
    """The messages without an outcome, by their numbers."""
    error: PulsarError | None = None
    """The error with which the broker refused the segment."""
    is_retiring: bool = False
    """True while the producer of the sealed segment is being closed."""
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    """Around the task that opens the producer."""

    def step(self, event: LaneEvent) -> None:
        """Change the state."""
        self.state = _NEXT[self.state][event]
        if self.state is LaneState.SEALED and not self.sends:
            self.state = _NEXT[self.state][LaneEvent.DRAIN]


class Lanes:
    """Decide which message is sent next, and to which segment.

    Messages of a key keep their order: a segment takes none while the messages of a segment before it have no outcome.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout: Layout = layout
        """The newest layout."""
        self._lanes: dict[int, Lane] = {}
        self._waiting: list[Sending] = []  # in the order of their numbers
        self._stopped: set[int] = set()  # segments that did not take their next message at the last search
        self._turn = 0

    @property
    def all(self) -> tuple[Lane, ...]:
        """Return all lanes."""
        return tuple(self._lanes.values())

    @property
    def waiting(self) -> tuple[Sending, ...]:
        """Return the messages that no segment has taken."""
        return tuple(self._waiting)

    def __contains__(self, segment_id: int) -> bool:
        return segment_id in self._lanes

    def add(self, lane: Lane) -> None:
        """Add a lane of an active segment."""
        self._lanes[lane.segment.id] = lane

    def end(self, lane: Lane) -> None:
        """Remove a lane."""
        lane.step(LaneEvent.END)
        if self._lanes.get(lane.segment.id) is lane:
            del self._lanes[lane.segment.id]

    def put(self, sending: Sending) -> bool:
        """Add a message, new or returned by a segment. Return False if it has to wait for others of its segment."""
        insort(self._waiting, sending, key=_number)
        return self.target(sending) not in self._stopped

    def apply(self, layout: Layout) -> list[Lane]:
        """Apply a newer layout. Return the lanes that end. Others of sealed segments wait for their messages."""
        self.layout = layout
        active = {one.id for one in layout.active}
        for lane in self.all:
            if lane.segment.id not in active:
                lane.step(LaneEvent.SEAL)
        for sending in self._waiting:
            if sending.segment not in active:
                sending.segment = None
        return self.over()

    def over(self) -> list[Lane]:
        """Remove and return the lanes that are drained and whose segments are not active."""
        active = {one.id for one in self.layout.active}
        over = [lane for lane in self.all if lane.state is LaneState.DRAINED and lane.segment.id not in active]
        for lane in over:
            self.end(lane)
        return over

    def settled(self, lane: Lane, sending: Sending) -> None:
        """Note the outcome of a message of this lane."""
        del lane.sends[sending.number]
        if lane.state is LaneState.SEALED and not lane.sends:
            lane.step(LaneEvent.DRAIN)

    def target(self, sending: Sending) -> int:
        """Return the segment of a message. Messages without a key take turns."""
        key = sending.draft.key
        if key is not None:
            return self.layout.segment_of(key).id
        if sending.segment is None:
            self._turn += 1
            sending.segment = self.layout.active[self._turn % len(self.layout.active)].id
        return sending.segment

    def missing(self) -> list[Segment]:
        """Return the segments that messages wait for and that have no lane."""
        wanted = {self.target(sending) for sending in self._waiting}
        return [self.layout.segments[one] for one in sorted(wanted) if one not in self._lanes]

    def ready(self, is_allowed: Callable[[Lane, Sending], bool]) -> Iterator[tuple[Lane, Sending]]:
        """Yield and remove the messages that can be sent now, in order. `is_allowed` may stop a segment."""
        self._stopped = set()
        waiting, self._waiting = self._waiting, []
        for index, sending in enumerate(waiting):
            target = self.target(sending)
            lane = self._lanes.get(target)
            if target in self._stopped or lane is None or not self._is_free(lane) or not is_allowed(lane, sending):
                self._stopped.add(target)
                insort(self._waiting, sending, key=_number)
                continue
            lane.sends[sending.number] = sending
            try:
                yield lane, sending
            except GeneratorExit:
                for rest in waiting[index + 1 :]:
                    insort(self._waiting, rest, key=_number)
                raise

    def take_of(self, segment_id: int) -> list[Sending]:
        """Remove and return the messages that wait for this segment."""
        taken = [sending for sending in self._waiting if self.target(sending) == segment_id]
        self._waiting = [sending for sending in self._waiting if sending not in taken]
        return taken

    def remove(self, sending: Sending) -> bool:
        """Remove a message that waits. Return False if it does not wait any more."""
        if sending not in self._waiting:
            return False
        self._waiting.remove(sending)
        return True

    def take_all(self) -> list[Sending]:
        """Remove and return all messages that wait."""
        taken, self._waiting = self._waiting, []
        return taken

    def _is_free(self, lane: Lane) -> bool:
        """Return whether a lane is open, and no message of a segment before its segment is without an outcome."""
        if lane.state is not LaneState.OPEN:
            return False
        return not any(other.state in LEAVING and other.segment.overlaps(lane.segment) for other in self.all)


def _number(sending: Sending) -> int:
    return sending.number
