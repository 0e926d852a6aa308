"""Samples over time, from which the console draws: of the cluster, of each topic and of each subscription.

    a frame a second for 10 minutes        |..|.||....|||||.|
    a frame each ten seconds for 2 hours   |.|.|..||

A frame holds only what moved since the frame before: counters and gauges by topic, or by topic and subscription. What
leaves the oldest frame is the base, from which the rest follows. Counters are kept, and a reader computes the rates.

Topics note themselves when they move (`Moves`). The first note sets a timer, which takes all notes in the middle of a
second and makes the frame of that second. So a broker at rest has no timer, and topics at rest cost nothing. A page
that looks in between takes the notes too, but makes no frame. When very many topics move, a frame spans some seconds,
which share what it has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from operator import add, lt, sub
from struct import Struct
from typing import Final, NamedTuple, cast
from weakref import ref

from pulsarium.broker.clock import Timer
from pulsarium.broker.cluster import Cluster
from pulsarium.broker.model.subscription.base import Subscription
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.net.slices import Slice

STEPS: Final = {1: 600, 10: 720}
"""The seconds of a frame, and how many such frames are kept."""
MOST_ENTRIES: Final = 400_000  # in all frames; over it, the oldest frames go first
READS: Final = 3000  # of topics and subscriptions a second, about 2 % of a core; after more, the next frame is later
LONGEST: Final = 10  # seconds of such a frame
HALF_LIFE: Final = 20  # seconds after which half of a move does not count among the busiest topics
MINUTE: Final = 60
LOOKED_UP: Final = 500  # keys of a frame that are looked up in one step

Key = str | tuple[str, str]
ALL: Final = ""
"""The key of the whole cluster."""


class Sample(NamedTuple):
    """Counters since the broker started, and gauges. Of a subscription, `acked` counts entries."""

    messages_in: int = 0
    bytes_in: int = 0
    messages_out: int = 0
    bytes_out: int = 0
    redelivered: int = 0
    acked: int = 0
    backlog: int = 0
    unacked: int = 0
    storage: int = 0


NOTHING: Final = Sample()
COUNTERS: Final = Sample._fields.index("backlog")


class Rates(NamedTuple):
    """The counters of a sample, a second."""

    messages_in: float = 0
    bytes_in: float = 0
    messages_out: float = 0
    bytes_out: float = 0
    redelivered: float = 0
    acked: float = 0


AT_REST: Final = Rates()
_packing: Final = Struct(f"<{len(Sample._fields)}q")


EMPTY: Final = _packing.pack(*NOTHING)


def _unpacked(packed: bytes | None) -> Sample:
    return Sample._make(_packing.unpack(packed)) if packed else NOTHING


def _rates(new: Sample, old: Sample, seconds: int) -> Rates:
    counted = map(_counted_from, old, new[:COUNTERS])
    return Rates._make(count if seconds == 1 else round(count / seconds, 1) for count in counted)


Frame = dict[Key, bytes | None]  # None: the topic or subscription was deleted


class Ring:
    """Frames of one length, and what was before them."""

    def __init__(self, most: int, most_entries: int, since: int) -> None:
        # by slot, the time in units of a frame's length, with the number of slots that a frame is about
        self.frames: deque[tuple[int, int, Frame]] = deque()
        self.base: dict[Key, bytes] = {}
        self.entries = 0
        self.since = since  # the first slot of which everything is known
        self._most = most
        self._most_entries = most_entries

    def add(self, slot: int, frame: Frame, span: int = 1) -> None:
        """Add what moved in the `span` slots up to one that is the last one or a later one."""
        if self.frames and self.frames[-1][0] == slot:
            kept = self.frames[-1][2]
            self.entries -= len(kept)
            kept.update(frame)
            frame = kept
        else:
            self.frames.append((slot, span, frame.copy()))
        self.entries += len(frame)
        while self.frames[0][0] <= slot - self._most or (self.entries > self._most_entries and len(self.frames) > 1):
            self._fold()

    def _fold(self) -> None:
        slot, _, frame = self.frames.popleft()
        self.entries -= len(frame)
        self.since = slot + 1
        for key, packed in frame.items():
            if packed is None:
                self.base.pop(key, None)
            else:
                self.base[key] = packed

    def begin_again(self, slot: int) -> None:
        """Forget all frames, because the time went back to `slot`."""
        while self.frames:
            self._fold()
        self.since = slot


Counts = tuple[int, ...]
"""The fields of a sample, as a plain tuple: nothing for the garbage collector to look at."""


@dataclass(slots=True)
class Known:
    """The last sample of a topic or subscription, whose own counters begin anew when it is loaded again."""

    source: ref[Topic | Subscription]
    counted: Counts = NOTHING
    packed: bytes = b""
    offset: Counts | None = None  # what it counted before it was loaded again

    def take(self, source: Topic | Subscription, counted: Counts) -> Counts:
        """Take the counters and gauges of now, and return those of before, from which they go on."""
        before = self.counted
        if self.source() is not source:
            self.source = ref(source)
            before = self._from(before, NOTHING)
        elif any(map(lt, counted[:COUNTERS], before)):  # a subscription has left the topic, or was moved back
            before = self._from(before, counted)
        self.counted = counted
        self.packed = _packing.pack(*(counted if self.offset is None else map(add, counted, self.offset)))
        return before

    def _from(self, before: Counts, counted: Counts) -> Counts:
        """Go on from the lower of two counts, without a change of what is shown."""
        lower = (*map(min, before[:COUNTERS], counted), *before[COUNTERS:])
        lost = map(sub, before, lower)
        self.offset = tuple(lost if self.offset is None else map(add, lost, self.offset))
        return lower

    @property
    def backlog(self) -> int:
        """Return how many messages are not acknowledged."""
        return self.counted[COUNTERS]


@dataclass(slots=True)
class KnownSubscription(Known):
    """The last sample of a subscription."""

    key: tuple[str, str] = "", ""


@dataclass(slots=True)
class KnownTopic(Known):
    """The last sample of a topic, and those of its subscriptions."""

    subscriptions: dict[str, KnownSubscription] = field(default_factory=dict)
    used: bool = False  # has producers or consumers
    published_ms: int = 0  # when a message came, as far as anybody has seen
    heat: float = 0.0  # messages of late, of which half is forgotten each `HALF_LIFE`
    hot_in: int = 0  # the second of `heat`


class Samples:
    """The frames of a cluster while its HTTP is served."""

    def __init__(self, cluster: Cluster, most_entries: int = MOST_ENTRIES) -> None:
        self.topics: dict[str, KnownTopic] = {}
        """Topics that were ever loaded and still exist, by name."""
        self.with_backlog: dict[tuple[str, str], None] = {}
        """Topics and subscriptions with messages that are not acknowledged."""
        self.hot: dict[str, None] = {}
        """Topics whose messages moved in the last minute, and some of earlier ones."""
        self.edition = 0
        """A number that changes with each change of what is known."""
        self._cluster = cluster
        self._clock = cluster.clock
        second = self._second()
        self._rings = {step: Ring(most, most_entries // 2, second // step) for step, most in STEPS.items()}
        self._totals = {step: Ring(most, most, second // step) for step, most in STEPS.items()}
        self._total: list[int] = [*NOTHING]
        self._queue: deque[Topic] = deque()  # topics that were taken, and not read yet
        self._open: Frame = {}  # what moved since the last frame
        self._before: dict[Key, bytes] = {}  # what it was in the last frame
        self._newest = -1  # the second of the last frame
        self._before_newest: dict[Key, bytes] = {}  # what its contents were in the frame before
        self._timer: Timer | None = None
        self._due = 0  # the second of the frame that the timer makes
        self._span = 1  # and how many seconds the frame is about
        self._reads = 0  # since the last frame
        self._now_ms = 0  # the time of these reads

    # life

    def begin(self) -> None:
        """Begin with what the loaded topics have counted, and take samples from now on."""
        moves = self._cluster.moves
        moves.listen(self._arm)
        for topic in self._cluster.topics.loaded.values():
            moves.note(topic)
        for _ in self._taken():
            pass
        self._total[:COUNTERS] = NOTHING[:COUNTERS]
        for ring in self._rings.values():
            ring.base.update((key, packed) for key, packed in self._open.items() if packed is not None)
        for ring in self._totals.values():
            ring.base[ALL] = _packing.pack(*self._total)
        self._open, self._before = {}, {}

    def stop(self) -> None:
        """Take no more samples."""
        self._cluster.moves.ignore()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # taking

    def _second(self) -> int:
        return self._clock.now_ms() // 1000

    def _arm(self) -> None:
        """Make a frame in the middle of this second or of the next one, later after very many reads."""
        if self._timer is None:
            line = self._clock.machine if self._clock.frozen else self._clock
            self._span = min(LONGEST, self._reads // READS + 1)
            wait = (499 - line.now_ms()) % 1000 + 1 + (self._span - 1) * 1000
            self._reads = 0
            self._due = (self._clock.now_ms() + wait) // 1000
            self._timer = self._clock.machine.call_later(wait / 1000, self._make_frame)

    def _make_frame(self) -> None:
        self._cluster.turn.in_slices(self._steps())

    def _steps(self) -> Iterator[None]:
        second = self._second()
        yield from self._taken()
        self._timer = None
        self._close(second)
        if self._cluster.moves.are_noted:
            self._arm()

    def _taken(self) -> Iterator[None]:
        """Read the topics that moved, one subscription a step."""
        moved, deleted = self._cluster.moves.take()
        self._now_ms = self._clock.now_ms()
        for name in deleted:
            self._forget(name)
            yield
        self._queue.extend(cast("list[Topic]", moved))
        while self._queue:
            yield from self._read(self._queue.popleft())
            yield

    async def catch_up(self, slice_: Slice) -> None:
        """Read what has moved until now, for a page that looks between two frames."""
        for _ in self._taken():
            await slice_.pause()

    def _read(self, topic: Topic) -> Iterator[None]:
        name = str(topic.name)
        if self._cluster.topics.loaded.get(name) is not topic:
            if topic.closed and name in self.topics:
                self.topics[name].used = False
            return
        known = self.topics.get(name)
        if known is None:
            known = self.topics[name] = KnownTopic(ref(topic))
        out, size_out, used = topic.messages_out_before, topic.bytes_out_before, len(topic.producers) > 0
        redelivered = acked = backlog = unacked = 0
        for subscription in list(topic.subscriptions.values()):
            counted = _counted(subscription)
            self._read_subscription(name, known, subscription, counted)
            out += counted[2]
            size_out += counted[3]
            redelivered += counted[4]
            acked += counted[5]
            backlog += counted[6]
            unacked += counted[7]
            used = used or len(subscription.consumers) > 0
            yield
        if self.topics.get(name) is not known:  # deleted meanwhile
            return
        if len(known.subscriptions) > len(topic.subscriptions):
            for gone in known.subscriptions.keys() - topic.subscriptions.keys():
                self._forget_subscription(known.subscriptions.pop(gone))
        size = 0 if topic.ledger is None else topic.ledger.size
        counted = (topic.messages_in, topic.bytes_in, out, size_out, redelivered, acked, backlog, unacked, size)
        known.used = used
        self._take(name, known, topic, counted)

    def _take(self, name: str, known: KnownTopic, topic: Topic, counted: Counts) -> None:
        """Take the counters of a topic, and add them to those of the cluster."""
        self.edition += 1
        self._reads += 1 + len(known.subscriptions)
        packed, before = known.packed, known.take(topic, counted)
        self._note(name, packed, known.packed)
        self._total = [total - old + new for total, old, new in zip(self._total, before, counted, strict=True)]
        came, went = counted[0] - before[0], counted[2] - before[2]
        if came:
            known.published_ms = self._now_ms
        if came or went:
            second = self._now_ms // 1000
            known.heat, known.hot_in = _cooled(known, second) + came + went, second
            self.hot[name] = None

    def _read_subscription(self, name: str, topic: KnownTopic, subscription: Subscription, counted: Counts) -> None:
        known = topic.subscriptions.get(subscription.name)
        if known is None:
            source: ref[Topic | Subscription] = ref(subscription)
            known = KnownSubscription(source, key=(name, subscription.name))
            topic.subscriptions[subscription.name] = known
        if counted == known.counted and known.source() is subscription:
            return
        packed = known.packed
        known.take(subscription, counted)
        self._note(known.key, packed, known.packed)
        if known.backlog:
            self.with_backlog[known.key] = None
        else:
            self.with_backlog.pop(known.key, None)

    def _note(self, key: Key, before: bytes, packed: bytes) -> None:
        if packed != before and (before or packed != EMPTY):
            self._open[key] = packed
            self._before.setdefault(key, before)

    def _forget(self, name: str) -> None:
        """Forget a deleted topic, unless another one has its name already."""
        known = self.topics.pop(name, None)
        if known is None:
            return
        self.edition += 1
        for subscription in known.subscriptions.values():
            self._forget_subscription(subscription)
        self._open[name] = None
        for gauge in range(COUNTERS, len(NOTHING)):
            self._total[gauge] -= known.counted[gauge]

    def _forget_subscription(self, known: KnownSubscription) -> None:
        self._open[known.key] = None
        self.with_backlog.pop(known.key, None)

    def _close(self, second: int) -> None:
        """Make the frame of a second of all that moved since the last frame."""
        if second < self._newest:
            for step, ring in [*self._rings.items(), *self._totals.items()]:
                ring.begin_again(second // step)
        frame, self._open = self._open, {}
        before, self._before = self._before, {}
        self._before_newest = before | self._before_newest if second == self._newest else before
        self._newest = second
        for step, ring in self._rings.items():
            ring.add(second // step, frame, self._span if step == 1 else 1)
        total = _packing.pack(*self._total)
        for step, ring in self._totals.items():
            ring.add(second // step, {ALL: total}, self._span if step == 1 else 1)

    # reading

    def _last(self) -> int:
        """Return the last second whose frame is complete. A clock that stands still has no later one."""
        if self._clock.frozen:
            return self._second()
        last = (self._clock.now_ms() - 500) // 1000
        return min(last, self._due - self._span) if self._timer is not None else last

    @property
    def total(self) -> Sample:
        """Return the counters and gauges of the cluster."""
        return Sample._make(self._total)

    def moving(self) -> Collection[Key]:
        """Return what moved in the last second."""
        return self._before_newest if self._newest == self._last() else ()

    def rates(self, key: Key) -> Rates:
        """Return what a topic or subscription counted in the last second."""
        if self._newest != self._last():
            return AT_REST
        _, span, frame = self._rings[1].frames[-1]
        packed = frame.get(key)
        return AT_REST if packed is None else _rates(_unpacked(packed), _unpacked(self._before_newest.get(key)), span)

    def rates_of(self, names: Iterable[str]) -> Rates:
        """Return what some topics counted in the last second, together."""
        moving = self.moving()
        moved = [self.rates(name) for name in names if name in moving]
        return Rates._make(map(sum, zip(*moved, strict=True))) if moved else AT_REST

    @property
    def total_rates(self) -> Rates:
        """Return what the cluster counted in the last second."""
        ring = self._totals[1]
        if self._newest != self._last():
            return AT_REST
        former = ring.frames[-2][2] if len(ring.frames) > 1 else ring.base
        _, span, frame = ring.frames[-1]
        return _rates(_unpacked(frame[ALL]), _unpacked(former.get(ALL)), span)

    def heat(self, name: str) -> float:
        """Return how much a topic moved in the last minute, of which the latest seconds count most."""
        known, second = self.topics.get(name), self._second()
        if known is None or second - known.hot_in > MINUTE:
            self.hot.pop(name, None)
            return 0.0
        return _cooled(known, second)

    async def trend(self, names: Iterable[str], slice_: Slice) -> list[float]:
        """Return the messages that came in each of the last `MINUTE` seconds, over topics. [] if none came."""
        last = self._last()
        first, ring = max(self._rings[1].since, last + 1 - MINUTE), self._rings[1]
        counts: list[float] = [0] * (last + 1 - first)
        for name in names:
            known = self.topics.get(name)
            if known is not None and known.hot_in >= first:
                for second, span, count in _messages_in(ring, name, first, last):
                    for each in range(max(first, second - span + 1), second + 1):
                        counts[each - first] += count if span == 1 else round(count / span, 1)
                await slice_.pause()
        return counts if any(counts) else []

    async def series(
        self, keys: Collection[Key], step: int, slice_: Slice, *, after: int = 0
    ) -> tuple[int, list[list[float]]]:
        """Return the first slot, and for each field of a sample its values by slot: the sum over `keys`.

        Counters become what they counted in the slot. The first slot is behind `after`.
        """
        ring = (self._totals if ALL in keys else self._rings)[step]
        last = (self._last() + 1) // step - 1
        first = max(ring.since, last + 1 - STEPS[step], after + 1)
        return first, await _columns(ring, keys, first, last, slice_)


def _messages_in(ring: Ring, name: str, first: int, last: int) -> Iterator[tuple[int, int, int]]:
    """Yield the frames of a topic from the last to the first slot: slot, span, and the messages that came."""
    at, spanned, later = last + 1, 1, 0
    for slot, span, frame in reversed(ring.frames):
        packed = frame.get(name)
        if slot <= last and packed is not None:
            count = _unpacked(packed).messages_in
            if at <= last:
                yield at, spanned, _counted_from(count, later)
            if slot < first:
                return
            at, spanned, later = slot, span, count
    if at <= last:
        yield at, spanned, _counted_from(_unpacked(ring.base.get(name)).messages_in, later)


async def _columns(ring: Ring, keys: Collection[Key], first: int, last: int, slice_: Slice) -> list[list[float]]:
    """Return the values of each field of the slots from `first` to `last`."""
    columns: list[list[float]] = [[] for _ in NOTHING]
    known = {key: _unpacked(packed) for key in keys if (packed := ring.base.get(key)) is not None}
    gauges = [sum(values) for values in zip(NOTHING, *known.values(), strict=True)][COUNTERS:]

    def until(slot: int) -> None:
        """Repeat the gauges in slots without a move, before `slot`."""
        missing = slot - first - len(columns[0])
        for column in columns[:COUNTERS]:
            column.extend([0] * missing)
        for column, gauge in zip(columns[COUNTERS:], gauges, strict=True):
            column.extend([gauge] * missing)

    for slot, span, frame in list(ring.frames):
        if slot > last:
            break
        counts = [0] * COUNTERS
        if slot >= first:
            until(slot)
        for number, key in enumerate(key for key in keys if key in frame):
            packed, old = frame[key], known.get(key, NOTHING)
            new = _unpacked(packed)
            gauges = [gauge + a - b for gauge, a, b in zip(gauges, new[COUNTERS:], old[COUNTERS:], strict=True)]
            if packed is not None:
                counts = [count + _counted_from(b, a) for count, a, b in zip(counts, new, old, strict=False)]
            known[key] = new
            if number % LOOKED_UP == 0:
                await slice_.pause()
        if slot >= first:
            for column, gauge in zip(columns[COUNTERS:], gauges, strict=True):
                column.append(gauge)
            for column, count in zip(columns, counts, strict=False):
                column.append(count)
                if span > 1:
                    shared = min(span, len(column))
                    column[-shared:] = [round(count / span, 1)] * shared
    until(last + 1)
    return columns


def _counted_from(before: int, after: int) -> int:
    """Return what a counter counted. That of a new topic with the name of a deleted one begins at 0."""
    return after - before if after >= before else after


def _cooled(known: KnownTopic, second: int) -> float:
    return known.heat * float(0.5 ** (max(0, second - known.hot_in) / HALF_LIFE))


def _counted(subscription: Subscription) -> Counts:
    """Return the counters and gauges of a subscription, and of its consumers."""
    out, size, redelivered, unacked = subscription.messages_out, subscription.bytes_out, subscription.redelivered, 0
    for consumer in subscription.consumers:
        out += consumer.messages_out
        size += consumer.bytes_out
        redelivered += consumer.redelivered
        unacked += consumer.unacked
    cursor = subscription.cursor
    if cursor is None:
        return 0, 0, out, size, redelivered, 0, 0, unacked, 0
    return 0, 0, out, size, redelivered, cursor.consumed, cursor.backlog(), unacked, 0
