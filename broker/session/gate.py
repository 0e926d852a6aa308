"""Handle a connection's commands in order, or have it pause: by how its client publishes (B-42)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from pulsarium.broker.commands.registry import CloseConnection, Handler
from pulsarium.broker.logs import Log
from pulsarium.broker.session.hooks import Frame
from pulsarium.broker.slices import work_for_a_slice
from pulsarium.proto.commands import parse
from pulsarium.proto.errors import CommandError, EntryError
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.broker.session.session import Session

log = Log("session")


class Gate:
    """Lets commands through to their handlers. Nothing overtakes the frames that were read before."""

    def __init__(self, session: Session, handlers: Mapping[int, Handler], most_unanswered: int) -> None:
        self.handlers = handlers
        self.halted = False  # takes no more commands now: it is closed, or waits for a limit
        self.unanswered = 0  # SENDs without a receipt (maxPendingPublishRequestsPerConnection)
        self.unread = False  # it waits for its client to read what it asked for
        self._session = session
        self._most_unanswered = most_unanswered
        self._limits = 0  # that it waits for
        self._steps: Iterator[None] | None = None  # of a command that is under way
        self._waiting: deque[Iterator[Frame]] = deque()

    def handle(self, frames: Iterable[Frame]) -> None:
        """Handle commands, in order. Where one has the connection pause, those behind it wait until it goes on."""
        coming = iter(frames)
        if self.waits:
            self._waiting.append(coming)
            return
        session, command = self._session, pb.BaseCommand()
        try:
            for head, trailing in coming:
                spec = parse(head, command, trailing)
                handler = self.handlers.get(spec.type)
                if handler is None:
                    early = "" if session.connected else " before CONNECT"
                    raise CloseConnection(f"{spec.name} is not taken{early}")
                handler(session, getattr(command, spec.field), trailing)
                if self.halted:
                    self._waiting.appendleft(coming)
                    return
        except Exception as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        if isinstance(error, (CloseConnection, CommandError, EntryError)):
            self._session.close(str(error))
        else:
            log.error("a command failed", exception=error, peer=self._session.address)
            self._session.close("a command failed in the broker")

    @property
    def paused(self) -> bool:
        """Whether it published too fast, too many of its SENDs wait for their commit, or a command is under way."""
        return self._limits > 0 or self._steps is not None or self.unanswered >= self._most_unanswered

    def handle_in_slices(self, steps: Iterator[None]) -> None:
        """Handle one command in several turns, step by step, so that other connections are served meanwhile.

        The connection waits: the frames behind the command are handled when its last step is done. The steps end with
        the connection.
        """
        if work_for_a_slice(steps):
            self._steps = steps
            self.halted = True
            self._session.broker.turn.later(self._next_slice)

    def _next_slice(self) -> None:
        steps, self._steps = self._steps, None
        if self._session.closed or steps is None:
            return
        try:
            self.handle_in_slices(steps)
        except Exception as error:
            self._failed(error)
        self._go_on()

    def publish_started(self) -> None:
        self.unanswered += 1

    def publish_finished(self, count: int) -> None:
        was_full = self.unanswered >= self._most_unanswered
        self.unanswered -= count
        if was_full:
            self._session.broker.turn.flush(self._session)

    @property
    def waits(self) -> bool:
        """Whether frames that come are kept for later."""
        return self._limits > 0 or self.unread or self._steps is not None

    def pause(self) -> None:
        """One more limit has it wait."""
        self._limits += 1
        if self._limits == 1:
            self.halted = True
            for producer in self._session.producers.values():  # as in Pulsar, whichever it was
                producer.topic.publish_limited += 1

    def resume(self) -> None:
        """One limit less; without any it goes on."""
        self._limits -= 1
        self._go_on()

    def wait_for_room(self) -> None:
        """So many answers wait that no more is done for this client until it has read them; keep-alive goes on."""
        self.unread = self.halted = True

    def has_room(self) -> None:
        """They have gone."""
        if self.unread:
            self.unread = False
            self._go_on()

    def _go_on(self) -> None:
        if self.waits or self._session.closed:
            return
        self.halted = False
        while self._waiting and not self.halted:
            self.handle(self._waiting.popleft())
        self._session.broker.turn.flush(self._session)

    def close(self) -> None:
        """The connection ended: nothing that waits is handled any more."""
        self.halted = True
        self._waiting.clear()
        self._steps = None
