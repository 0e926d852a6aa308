"""A connection as the lab sees it: every frame of both ways, for faults first, then for observers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from pulsarium.broker.lab.faults.claims import Claims
from pulsarium.broker.lab.faults.passing import OPENED, Passing, Present
from pulsarium.broker.lab.faults.rule import Rule
from pulsarium.broker.lab.faults.strike import UNTOUCHED, Piece, Strike
from pulsarium.broker.lab.lane import Lane
from pulsarium.proto.commands import Direction
from pulsarium.proto.errors import CommandError
from pulsarium.proto.framing import frame

if TYPE_CHECKING:
    from pulsarium.broker.clock import Clock
    from pulsarium.broker.lab.lab import Lab
    from pulsarium.broker.session.hooks import Frame
    from pulsarium.broker.session.session import Session

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
        self._of_client = Lane(self, Direction.CLIENT)
        self._of_broker = Lane(self, Direction.BROKER)
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

    def pump(self, lane: Lane) -> None:
        """Let what waited in a lane go on, in a turn that ends by itself."""
        if lane.sender is Direction.CLIENT:
            self.session.handle(self._handed())
        else:
            self.session.outgoing.past_the_tap(b"".join(lane.flow()))
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

    def struck(self, lane: Lane, data: bytes) -> Iterable[Piece]:
        """What comes of a frame: the first rule that means it acts."""
        rules = self.lab.faults.rules
        if not (rules and self._concerns(lane.sender, data)):
            return (Piece(data, UNTOUCHED, data),)
        try:
            passing = Passing(self.session, self._present, lane.sender, data)
        except CommandError:  # the session has its own words for that
            return (Piece(data, UNTOUCHED, data),)
        if passing.spec.type in OPENED:
            self._present.look()
        of_broker = lane.sender is Direction.BROKER
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
        return acting.action.act(Strike(lane, acting, passing, None if claim is None else claim.command))

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
