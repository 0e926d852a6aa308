"""A tap between a session and its transport: the frames of each direction in order, and the rules that hold them."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from pulsarium.broker.clock import Clock, Timer
from pulsarium.broker.cluster import Cluster
from pulsarium.broker.lab.connections import Connection, Connections
from pulsarium.broker.lab.faults.claims import Claims
from pulsarium.broker.lab.faults.rule import UNTOUCHED, InstalledFault, Piece, Strike
from pulsarium.broker.lab.faults.tapped import OPENED, Present, TappedFrame
from pulsarium.broker.model.news import Kind
from pulsarium.broker.session.outgoing import Frame
from pulsarium.proto.commands import Direction
from pulsarium.proto.errors import CommandError
from pulsarium.proto.framing import frame

ENOUGH = 1 << 20  # bytes that may wait before reading from the socket pauses
Given = TypeVar("Given")
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Hold:
    """The rule that holds a queue, until the timer fires or the rule is removed.

    `swaps`: or until the next frame comes.
    """

    rule: InstalledFault
    timer: Timer | None
    swaps: bool


class Arrival(NamedTuple):
    """The time at which a frame came to its queue: seconds of the broker's clock, and real nanoseconds."""

    at: float
    real_ns: int


class UnreceivedFrames:
    """The frames of one direction that the other side has not received yet."""

    def __init__(self, tap: SessionTap, sender: Direction) -> None:
        self.sender = sender
        self.size = 0
        """Bytes that wait."""
        self._tap = tap
        self._frames: deque[tuple[Arrival, bytes | Piece]] = deque()  # a frame, or its piece after a rule acted
        self._hold: Hold | None = None
        self._flowing = False
        self._came = Arrival(0.0, 0)  # of the current frame
        self._overtakes = False  # whether the current frame has overtaken another: no frame overtakes it in turn
        self._hurries = False  # whether the connection ends, so that frames are no longer delayed
        self._cut = False  # whether a fault closed the connection

    def add(self, frames: Iterable[bytes]) -> None:
        """Append frames that arrived."""
        if self._cut:
            return
        now = Arrival(self._tap.clock.monotonic(), time.monotonic_ns())
        for each in frames:
            self._frames.append((now, each))
            self.size += len(each)

    def flow(self) -> Iterator[bytes]:
        """Yield the bytes that may go on now. A frame is looked at after the frame before it was handled."""
        if self._flowing:
            return
        self._flowing = True
        try:
            while self._frames and self._may_move():
                self._came, first = self._frames.popleft()
                if isinstance(first, Piece):
                    pieces: Iterable[Piece] = (first,)
                    self.size -= len(first.data)
                else:
                    pieces = self._tap.struck(self, first)
                    self.size -= len(first)
                for piece in pieces:
                    self._tap.show(self.sender, piece)
                    if piece.wire:
                        yield piece.wire
                self._overtakes = False
        finally:
            self._flowing = False

    def _may_move(self) -> bool:
        if self._cut:
            return False
        hold = self._hold
        if hold is not None and hold.swaps and len(self._frames) > 1:
            first = self._frames.popleft()
            self._frames.insert(1, first)
            self._let_go()
            self._overtakes = True
        return self._hold is None

    @property
    def came_ns(self) -> int:
        """Return when the frame arrived that observers see now, in monotonic nanoseconds of real time."""
        return self._came.real_ns

    @property
    def may_read(self) -> bool:
        """Return whether to read more from the socket: not while the queue is stalled or full."""
        stalled = self._hold is not None and self._hold.timer is None
        return not stalled and self.size < ENOUGH

    # what rules do

    def claim(self, rule: InstalledFault, frame: TappedFrame) -> None:
        """Reserve the answer to a frame for a rule."""
        self._tap.claim(rule, frame)

    def take_next(self, accepts: Callable[[TappedFrame], bool]) -> bytes | None:
        """Take the next frame away, if it waits untouched and `accepts` returns True for it.

        Observers see both frames at the time of the later one: it overtakes, and its cause must come before it.
        """
        came, first = self._frames[0] if self._frames else (self._came, None)
        following = self._tap.read(self.sender, first) if isinstance(first, bytes) else None
        if following is None or not isinstance(first, bytes) or not accepts(following):
            return None
        self._frames.popleft()
        self.size -= len(first)
        self._came = came
        return first

    def wait(self, piece: Piece, rule: InstalledFault, seconds: float | None, *, swaps: bool) -> None:
        """Put a piece back at the front, and hold the queue.

        The hold ends `seconds` after the frame arrived (`swaps`: from now), or when the rule is removed.
        """
        self._frames.appendleft((self._came, piece))
        self.size += len(piece.data)
        if rule.removed:  # its predicate removed it
            return
        if seconds is None:
            self._hold = Hold(rule, None, swaps)
        elif not (self._hurries or (swaps and self._overtakes)):
            clock = self._tap.clock
            left = seconds if swaps else self._came.at + seconds - clock.monotonic()
            if left > 0:
                self._hold = Hold(rule, clock.call_later(left, self._over), swaps)

    def _over(self) -> None:
        self._hold = None
        self._tap.pump(self)

    def cut(self, reason: str) -> None:
        """Stop the queue, and close the connection."""
        self._cut = True
        self._tap.session.close(reason)

    def release(self, rules: Collection[InstalledFault]) -> None:
        """Release frames that these rules hold."""
        if self._hold is not None and self._hold.rule in rules:
            self._let_go()
            self._tap.pump(self)

    def _let_go(self) -> None:
        hold, self._hold = self._hold, None
        if hold is not None and hold.timer is not None:
            hold.timer.cancel()

    # the end

    def hurry(self) -> None:
        """Release delayed frames, because the connection ends. Stalled frames stay."""
        self._hurries = True
        if self._hold is not None and self._hold.timer is not None:
            self._let_go()

    @property
    def is_stuck(self) -> bool:
        """Return whether `hurry` would not release the queue."""
        return self._cut or self._hold is not None

    def abandon(self) -> None:
        """Drop all waiting frames, and show them to observers as lost."""
        self._let_go()
        self._cut = True
        waiting, self._frames, self.size = self._frames, deque(), 0
        for self._came, each in waiting:
            data, note = (each.data, each.note) if isinstance(each, Piece) else (each, {})
            self._tap.show(self.sender, Piece(data, {**note, "did": "lost", "arrived": False}, b""))


TYPE_TAG = b"\x08"  # of BaseCommand.type


class Observer(Protocol):
    """An observer sees connections and frames, after faults have acted. An observer changes nothing."""

    def opened(self, tap: SessionTap) -> None:
        """Handle a new connection, or one that was open when the observer was added."""
        ...

    def frame(self, tap: SessionTap, sender: Direction, data: bytes, note: Mapping[str, Any]) -> None:
        """Handle a whole frame, from its length word on, which was sent or lost.

        `note` says what a fault did to the frame. An empty note means that no fault acted.
            fault: the id of the rule.
            did: answered, dropped, delayed, duplicated, reordered, corrupted, truncated (keep: bytes), closed,
                stalled, renumbered; lost: the frame still waited when the connection ended (perhaps without `fault`).
            arrived: False when the other side never received the frame.
            legal: True when Pulsar, or its network, may do the same (an exploration).

        A changed frame is shown as it arrived. A delayed frame is shown when it moves on, in the order of arrival. To
        check a client, use all frames of the client, and those of the broker that arrived. Frames of the broker may
        follow `closed`.
        """
        ...

    def closed(self, tap: SessionTap, sender: Direction, reason: str) -> None:
        """Handle the end of a connection."""
        ...


class SessionTap:
    """The tap of one session."""

    def __init__(self, taps: Taps, session: Connection, number: int) -> None:
        self._taps = taps
        self.session = session
        self.number = number
        """The number of the connection, unique in this cluster."""
        self._of_client = UnreceivedFrames(self, Direction.CLIENT)
        self._of_broker = UnreceivedFrames(self, Direction.BROKER)
        self._claims = Claims()
        self._present = Present(session)

    # Tap

    def incoming(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        self._of_client.add(frame(head, trailing) for head, trailing in frames)
        return self._handed()

    def outgoing(self, data: bytes) -> Iterator[bytes]:
        self._of_broker.add(split(data))
        return self._of_broker.flow()

    @property
    def may_read(self) -> bool:
        return self._of_client.may_read

    @property
    def held(self) -> int:
        return self._of_broker.size

    def ended(self) -> None:
        self._of_client.hurry()
        self.pump(self._of_client)

    def closed(self, sender: Direction, reason: str) -> None:
        self._of_broker.hurry()
        self.pump(self._of_broker)
        self._of_client.abandon()
        if self._of_broker.is_stuck:
            self._of_broker.abandon()
        self._claims.close()
        for observer in self._taps.observers:
            observer.closed(self, sender, reason)

    # the lab

    @property
    def sent_ns(self) -> int:
        """Return when the broker sent the frame that observers see now, in monotonic nanoseconds of real time."""
        return self._of_broker.came_ns

    @property
    def clock(self) -> Clock:
        return self.session.broker.clock

    def pump(self, queue: UnreceivedFrames) -> None:
        """Send the waiting frames of a queue, in a turn of their own."""
        if queue.sender is Direction.CLIENT:
            self.session.hand_on(self._handed())
        else:
            self.session.send_on(queue.flow())

    def _handed(self) -> Iterator[Frame]:
        """Yield the client's frames to the session. Only frames that arrive count as signs of life."""
        for each in each_once(taken_apart, self._of_client.flow()):
            self.session.heard()
            yield each

    def look(self) -> None:
        """Remember producers and consumers of now, because a new rule may be about them."""
        self._present.look()

    def release(self, rules: Collection[InstalledFault]) -> None:
        """Release frames that removed rules hold, and forget the answers that those rules wait for."""
        self._claims.forget(rules)
        self._of_client.release(rules)
        self._of_broker.release(rules)

    def remove(self) -> None:
        """Take the tap away. No rule is left, so no frame waits."""
        self.session.tap = None

    def struck(self, queue: UnreceivedFrames, data: bytes) -> Iterable[Piece]:
        """Return the pieces that replace a frame. The first matching rule acts."""
        rules = self._taps.rules
        if not (rules and self._concerns(queue.sender, data)):
            return (Piece(data, UNTOUCHED, data),)
        passing = self.read(queue.sender, data)
        if passing is None:
            return (Piece(data, UNTOUCHED, data),)
        if passing.spec.type in OPENED:
            self._present.look()
        of_broker = queue.sender is Direction.BROKER
        claim = self._claims.answered(passing) if of_broker else None
        acting = None if claim is None else claim.rule
        for rule in rules:
            if (rule.observes or acting is None) and not rule.removed:  # a predicate may have removed it
                meant = rule.meant(passing)
                if meant and rule.observes:
                    rule.acted()
                elif meant:
                    acting = rule
        if acting is None or (claim is None and acting.after):
            if acting is not None and not acting.removed:  # its predicate may have removed it
                self._claims.add(acting, passing)
            return (Piece(data, UNTOUCHED, data),)
        acting.acted()
        self._taps.hit(acting, passing, self.session)
        return acting.action.act(Strike(queue, acting, passing, None if claim is None else claim.command))

    def _concerns(self, sender: Direction, data: bytes) -> bool:
        """Return whether a rule may match the frame.

        The command type, which nearly all frames begin with, saves parsing.
        """
        if data[8:9] != TYPE_TAG or len(data) < 10 or (sender is Direction.BROKER and self._claims.waiting):
            return True
        commands = self._taps.commands
        return commands is None or data[9] in commands or data[9] in OPENED

    def claim(self, rule: InstalledFault, frame: TappedFrame) -> None:
        """Reserve the answer to a frame for a rule."""
        self._claims.add(rule, frame)

    def read(self, sender: Direction, data: bytes) -> TappedFrame | None:
        """Return a frame as rules see it, or None for one that the session refuses itself."""
        try:
            return TappedFrame(self.session, self._present, sender, data)
        except CommandError:
            return None

    def show(self, sender: Direction, piece: Piece) -> None:
        """Show a piece to all observers."""
        for observer in self._taps.observers:
            observer.frame(self, sender, piece.data, piece.note)


class Taps:
    """The taps on all connections, while a rule or an observer needs frames. At other times, none."""

    def __init__(self, cluster: Cluster, connections: Connections) -> None:
        self.cluster = cluster
        self.connections = connections
        self.observers: list[Observer] = []
        self.rules: list[InstalledFault] = []
        """The rules in order. Each change makes a new list, so that a loop over the list may change the rules."""
        self.commands: frozenset[int] | None = frozenset()
        """Command types that the rules are about, or None for all."""
        self._numbers = itertools.count(1)

    def all(self) -> list[SessionTap]:
        """Return the taps of the open connections."""
        taps = [session.tap for session in self.connections.all()]
        return [tap for tap in taps if isinstance(tap, SessionTap)]

    @property
    def busy(self) -> bool:
        """Return whether an observer or a rule needs frames."""
        return bool(self.observers or self.rules)

    def observe(self, observer: Observer) -> None:
        """Show all frames to an observer from now on, including those of open connections."""
        self.observers.append(observer)
        self._use()
        for tap in self.all():
            observer.opened(tap)

    def forget(self, observer: Observer) -> None:
        """Stop showing frames to an observer."""
        # A new list, because an observer may leave while the list is iterated.
        self.observers = [each for each in self.observers if each is not observer]
        self._rest()

    def obey(
        self, rules: list[InstalledFault], commands: frozenset[int] | None, gone: Collection[InstalledFault] = ()
    ) -> None:
        """Follow these rules from now on, which are about `commands`. Release the frames that rules hold which went."""
        self.rules, self.commands = rules, commands
        if rules:
            self._use()
        for rule in gone:
            rule.ended()
        for tap in self.all():
            tap.release(gone)
        self._rest()

    def hit(self, rule: InstalledFault, frame: TappedFrame, session: Connection) -> None:
        """Tell that a rule acts on a frame of a client."""
        session.fault_hits += 1
        about = {"fault": rule.id, "words": rule.words, "command": frame.name, "client": session.address}
        self.cluster.news.tell(Kind.FAULT_HIT, **about)

    def look(self) -> None:
        """Remember producers and consumers of now, because a new rule may be about them."""
        for tap in self.all():
            tap.look()

    def opened(self, session: Connection) -> None:
        """Put a tap on a new connection."""
        tap = self._tap(session)
        for observer in self.observers:
            observer.opened(tap)

    def _use(self) -> None:
        """Put a tap on every connection, because an observer or a rule needs frames."""
        self.connections.listen(self.opened)
        for session in self.connections.all():
            if session.tap is None:
                self._tap(session)

    def _rest(self) -> None:
        """Remove all taps when no observer and no rule needs them, so that an unused lab costs nothing."""
        if not self.busy:
            for tap in self.all():
                tap.remove()
            self.connections.ignore(self.opened)

    def _tap(self, session: Connection) -> SessionTap:
        tap = session.tap = SessionTap(self, session, next(self._numbers))
        return tap


def split(data: bytes) -> Iterator[bytes]:
    """Yield each frame of `data`, which holds whole frames only."""
    start = 0
    while start < len(data):
        stop = start + 4 + int.from_bytes(data[start : start + 4], "big")
        yield data[start:stop]
        start = stop


def each_once(change: Callable[[Given], Made], given: Iterable[Given]) -> Iterator[Made]:
    """Yield what `change` makes of each value. Copies that follow each other stay one object."""
    last: tuple[Given, Made] | None = None
    for each in given:
        if last is None or each is not last[0]:
            last = each, change(each)
        yield last[1]


def taken_apart(data: bytes) -> Frame:
    """Return the command of a frame, and its trailing bytes."""
    start = 8 + int.from_bytes(data[4:8], "big")
    return data[8:start], data[start:]
