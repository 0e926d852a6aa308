"""Handle a connection's commands in order, and pause the connection when its client publishes too much (B-42)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from pulsarium.broker.commands.producer import SendRun
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
    """Pass commands to their handlers. No command overtakes the frames that were read before."""

    def __init__(self, session: Session, handlers: Mapping[int, Handler], most_unanswered: int) -> None:
        self.handlers = handlers
        self.halted = False  # handles no more commands now: closed, or paused by a limit
        self.unanswered = 0  # SENDs without a receipt (maxPendingPublishRequestsPerConnection)
        self.unread = False  # paused until the client reads its answers
        self._session = session
        self._run = SendRun(session)
        self._most_unanswered = most_unanswered
        self._limits = 0  # limits that pause the connection
        self._steps: Iterator[None] | None = None  # rest of the command that is handled in slices
        self._waiting: deque[Iterator[Frame]] = deque()

    def handle(self, frames: Iterable[Frame]) -> None:
        """Handle commands in order. When a command pauses the connection, the frames behind it wait."""
        coming = iter(frames)
        if self.waits:
            self._waiting.append(coming)
            return
        session, command, run = self._session, pb.BaseCommand(), self._run
        try:
            for head, trailing in coming:
                if run.takes(head, trailing):
                    continue
                run.publish()
                spec = parse(head, command, trailing)
                handler = self.handlers.get(spec.type)
                if handler is None:
                    early = "" if session.connected else " before CONNECT"
                    raise CloseConnection(f"{spec.name} is not accepted{early}")
                handler(session, getattr(command, spec.field), trailing)
                if self.halted:
                    self._waiting.appendleft(coming)
                    return
            run.publish()
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
        """Return whether a limit, too many SENDs without a receipt, or a command in slices pauses reading."""
        return self._limits > 0 or self._steps is not None or self.unanswered >= self._most_unanswered

    def handle_in_slices(self, steps: Iterator[None]) -> None:
        """Handle a command in several turns, step by step, so that other connections are served meanwhile.

        Frames behind the command wait for its last step. The steps end with the connection.
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

    def publish_started(self, count: int) -> None:
        self.unanswered += count

    def publish_finished(self, count: int) -> None:
        was_full = self.unanswered >= self._most_unanswered
        self.unanswered -= count
        if was_full:
            self._session.broker.turn.flush(self._session)

    @property
    def waits(self) -> bool:
        """Return whether new frames are kept for later."""
        return self._limits > 0 or self.unread or self._steps is not None

    def pause(self) -> None:
        """Pause the connection for one more limit."""
        self._limits += 1
        if self._limits == 1:
            self.halted = True
            for producer in self._session.producers.values():  # of all topics, as in Pulsar
                producer.topic.publish_limited += 1

    def resume(self) -> None:
        """Lift one limit. Without any, the connection continues."""
        self._limits -= 1
        self._go_on()

    def wait_for_room(self) -> None:
        """Handle no more commands until the client has read its answers. Keep-alive continues."""
        self.unread = self.halted = True

    def has_room(self) -> None:
        """Continue, because the client has read its answers."""
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
        """Drop all waiting frames, because the connection ended."""
        self.halted = True
        self._waiting.clear()
        self._steps = None
