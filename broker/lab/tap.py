"""A tap between a session and its transport: frames of each direction, in order, and what holds them up."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pulsarium.broker.clock import Timer
from pulsarium.broker.lab.faults.rule import Rule
from pulsarium.broker.lab.faults.strike import UNTOUCHED, Claims, Piece, Strike
from pulsarium.broker.lab.faults.tapped import OPENED, Present, TappedFrame
from pulsarium.proto.commands import Direction
from pulsarium.proto.errors import CommandError
from pulsarium.proto.framing import frame

if TYPE_CHECKING:
    from pulsarium.broker.clock import Clock
    from pulsarium.broker.lab.lab import Lab
    from pulsarium.broker.session.hooks import Frame
    from pulsarium.broker.session.session import Session

ENOUGH = 1 << 20  # bytes that may wait before no more is read from the socket


@dataclass(frozen=True, slots=True)
class Hold:
    """Why nothing moves: a rule, for some time or until it is removed; `swaps`: or until another frame overtakes."""

    rule: Rule
    timer: Timer | None
    swaps: bool


class Queue:
    """What waits in it has been on the wire of neither side, as far as the other side can tell."""

    def __init__(self, tap: SessionTap, sender: Direction) -> None:
        self.sender = sender
        self.size = 0
        """Bytes that wait."""
        self._tap = tap
        self._frames: deque[tuple[float, bytes | Piece]] = deque()  # since when; as they came, or after a rule acted
        self._hold: Hold | None = None
        self._flowing = False
        self._came = 0.0  # the frame that is looked at now
        self._overtakes = False  # that frame: it is not overtaken in its turn
        self._hurries = False  # the connection ends: nothing is delayed any more
        self._cut = False  # nothing moves any more

    def add(self, frames: Iterable[bytes]) -> None:
        """They came, and will go in their turn."""
        if self._cut:
            return
        now = self._tap.clock.monotonic()
        for each in frames:
            self._frames.append((now, each))
            self.size += len(each)

    def flow(self) -> Iterator[bytes]:
        """What goes on now. Each frame is looked at when the one before it has been handled."""
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
    def may_read(self) -> bool:
        """Whether more is wanted: nothing while it is stalled."""
        stalled = self._hold is not None and self._hold.timer is None
        return not stalled and self.size < ENOUGH

    # what rules do

    def wait(self, piece: Piece, rule: Rule, seconds: float | None, *, swaps: bool) -> None:
        """This one is first again, and nothing moves until it has been here for so long (`swaps`: for so long from
        now), or until the rule is removed."""
        self._frames.appendleft((self._came, piece))
        self.size += len(piece.data)
        if rule.removed:  # by its predicate
            return
        if seconds is None:
            self._hold = Hold(rule, None, swaps)
        elif not (self._hurries or (swaps and self._overtakes)):
            clock = self._tap.clock
            left = seconds if swaps else self._came + seconds - clock.monotonic()
            if left > 0:
                self._hold = Hold(rule, clock.call_later(left, self._over), swaps)

    def _over(self) -> None:
        self._hold = None
        self._tap.pump(self)

    def cut(self, reason: str) -> None:
        """Nothing comes out any more, and the connection is closed."""
        self._cut = True
        self._tap.session.close(reason)

    def release(self, rules: Collection[Rule]) -> None:
        """What waits because of these rules goes on."""
        if self._hold is not None and self._hold.rule in rules:
            self._let_go()
            self._tap.pump(self)

    def _let_go(self) -> None:
        hold, self._hold = self._hold, None
        if hold is not None and hold.timer is not None:
            hold.timer.cancel()

    # the end

    def hurry(self) -> None:
        """The connection ends: what is only late comes now, what is stalled never."""
        self._hurries = True
        if self._hold is not None and self._hold.timer is not None:
            self._let_go()

    @property
    def is_stuck(self) -> bool:
        """Whether nothing moves any more that the connection's end would not hurry."""
        return self._cut or self._hold is not None

    def abandon(self) -> None:
        """What has not gone never will."""
        self._let_go()
        self._cut = True
        waiting, self._frames, self.size = self._frames, deque(), 0
        for _, each in waiting:
            data, note = (each.data, each.note) if isinstance(each, Piece) else (each, {})
            self._tap.show(self.sender, Piece(data, {**note, "did": "lost", "arrived": False}, b""))


TYPE_TAG = b"\x08"  # of BaseCommand.type


class Observer(Protocol):
    """Is shown what happens on connections, after faults; must not change anything."""

    def opened(self, tap: SessionTap) -> None:
        """A connection was opened, or was open when the observer came."""
        ...

    def frame(self, tap: SessionTap, sender: Direction, data: bytes, note: Mapping[str, Any]) -> None:
        """A frame, whole, from its length word on, when it went over the wire or was lost on it.

        `note` says what a fault did to it, and is empty where none did anything:
            fault: the id of the rule.
            did: answered, dropped, delayed, duplicated, reordered, corrupted, truncated (keep: bytes), closed,
                stalled, renumbered; lost: it was still held up when the connection ended (perhaps without `fault`).
            arrived: False where the other side never saw it.

        A frame that was changed is shown as it arrived. One that was held up is shown when it moves on, so that the
        order is that in which things arrived. Whoever judges a client takes all frames of the client, which did send
        them, and of the broker those that arrived. After `closed` the broker's last words may follow.
        """
        ...

    def closed(self, tap: SessionTap, sender: Direction, reason: str) -> None:
        """A connection ended."""
        ...


class SessionTap:
    """Between one session and its transport."""

    def __init__(self, lab: Lab, session: Session, number: int) -> None:
        self.lab = lab
        self.session = session
        self.number = number
        """Of the connection, never used before in this cluster."""
        self._of_client = Queue(self, Direction.CLIENT)
        self._of_broker = Queue(self, Direction.BROKER)
        self._claims = Claims()
        self._present = Present(session)

    # Tap

    def incoming(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        self._of_client.add(frame(head, trailing) for head, trailing in frames)
        return self._handed()

    def outgoing(self, data: bytes) -> bytes:
        self._of_broker.add(split(data))
        return b"".join(self._of_broker.flow())

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
        for observer in self.lab.observers:
            observer.closed(self, sender, reason)

    # the lab

    @property
    def clock(self) -> Clock:
        return self.session.broker.clock

    def pump(self, queue: Queue) -> None:
        """Let what waited in a queue go on, in a turn that ends by itself."""
        if queue.sender is Direction.CLIENT:
            self.session.gate.handle(self._handed())
        else:
            self.session.outgoing.past_the_tap(b"".join(queue.flow()))
        self.session.broker.turn.flush(self.session)  # writes, and reads again

    def _handed(self) -> Iterator[Frame]:
        """What the session gets of the client, who shows life with it: not with what is lost."""
        for data in self._of_client.flow():
            self.session.liveness.heard()
            yield taken_apart(data)

    def look(self) -> None:
        """A rule was added: it may be about anybody who is here now."""
        self._present.look()

    def release(self, rules: Collection[Rule]) -> None:
        """Rules were removed: what waits because of them goes on, what they wait for is not waited for."""
        self._claims.forget(rules)
        self._of_client.release(rules)
        self._of_broker.release(rules)

    def remove(self) -> None:
        """Let frames pass by from now on. No rule is left, so nothing waits."""
        self.session.outgoing.tap = None

    def struck(self, queue: Queue, data: bytes) -> Iterable[Piece]:
        """What comes of a frame: the first rule that means it acts."""
        rules = self.lab.faults.rules
        if not (rules and self._concerns(queue.sender, data)):
            return (Piece(data, UNTOUCHED, data),)
        try:
            passing = TappedFrame(self.session, self._present, queue.sender, data)
        except CommandError:  # the session has its own words for that
            return (Piece(data, UNTOUCHED, data),)
        if passing.spec.type in OPENED:
            self._present.look()
        of_broker = queue.sender is Direction.BROKER
        claim = self._claims.answered(passing) if of_broker else None
        acting = None if claim is None else claim.rule
        for rule in rules:
            if (rule.observes or acting is None) and not rule.removed:  # by a predicate
                meant = rule.meant(passing)
                if meant and rule.observes:
                    rule.acted()
                elif meant:
                    acting = rule
        if acting is None or (claim is None and acting.after):
            if acting is not None and not acting.removed:  # by its predicate
                self._claims.add(acting, passing)
            return (Piece(data, UNTOUCHED, data),)
        acting.acted()
        return acting.action.act(Strike(queue, acting, passing, None if claim is None else claim.command))

    def _concerns(self, sender: Direction, data: bytes) -> bool:
        """Whether a frame is worth parsing: nearly all begin with their type."""
        if data[8:9] != TYPE_TAG or len(data) < 10 or (sender is Direction.BROKER and self._claims.waiting):
            return True
        commands = self.lab.faults.commands
        return commands is None or data[9] in commands or data[9] in OPENED

    def show(self, sender: Direction, piece: Piece) -> None:
        """To all observers."""
        for observer in self.lab.observers:
            observer.frame(self, sender, piece.data, piece.note)


def split(data: bytes) -> Iterator[bytes]:
    """Whole frames, one after the other."""
    start = 0
    while start < len(data):
        stop = start + 4 + int.from_bytes(data[start : start + 4], "big")
        yield data[start:stop]
        start = stop


def taken_apart(data: bytes) -> Frame:
    """Command and trailing bytes of a frame."""
    start = 8 + int.from_bytes(data[4:8], "big")
    return data[8:start], data[start:]
