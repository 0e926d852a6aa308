"""One direction of a connection: frames on their way, in order, and what holds them up."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulsarium.broker.clock import Timer
from pulsarium.broker.lab.faults.rule import Rule
from pulsarium.broker.lab.faults.strike import Piece
from pulsarium.proto.commands import Direction

if TYPE_CHECKING:
    from pulsarium.broker.lab.tap import SessionTap

ENOUGH = 1 << 20  # bytes that may wait before no more is read from the socket


@dataclass(frozen=True, slots=True)
class Hold:
    """Why nothing moves: a rule, for some time or until it is removed; `swaps`: or until another frame overtakes."""

    rule: Rule
    timer: Timer | None
    swaps: bool


class Lane:
    """What waits in it has been on the wire of neither side, as far as the other side can tell."""

    def __init__(self, tap: SessionTap, sender: Direction) -> None:
        self.sender = sender
        self.size = 0
        """Bytes that wait."""
        self._tap = tap
        self._queue: deque[tuple[float, bytes | Piece]] = deque()  # since when; as they came, or after a rule acted
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
            self._queue.append((now, each))
            self.size += len(each)

    def flow(self) -> Iterator[bytes]:
        """What goes on now. Each frame is looked at when the one before it has been handled."""
        if self._flowing:
            return
        self._flowing = True
        try:
            while self._queue and self._may_move():
                self._came, first = self._queue.popleft()
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
        if hold is not None and hold.swaps and len(self._queue) > 1:
            first = self._queue.popleft()
            self._queue.insert(1, first)
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
        self._queue.appendleft((self._came, piece))
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
        waiting, self._queue, self.size = self._queue, deque(), 0
        for _, each in waiting:
            data, note = (each.data, each.note) if isinstance(each, Piece) else (each, {})
            self._tap.show(self.sender, Piece(data, {**note, "did": "lost", "arrived": False}, b""))
