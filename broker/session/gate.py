"""Whether a connection's commands are taken, or it pauses: by how its client publishes (B-42)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pulsarium.broker.session.hooks import Frame
from pulsarium.broker.slices import work_for_a_slice

if TYPE_CHECKING:
    from pulsarium.broker.broker import Broker
    from pulsarium.broker.model.topic.producer import Producer


class Gate(ABC):
    """The part of a session that has it pause. Nothing overtakes the frames that were read before."""

    broker: Broker
    producers: dict[int, Producer]
    closed: bool

    def __init__(self, most_unanswered: int) -> None:
        self.halted = False  # takes no more commands now: it is closed, or waits for a limit
        self.unanswered = 0  # SENDs without a receipt (maxPendingPublishRequestsPerConnection)
        self._most_unanswered = most_unanswered
        self._limits = 0  # that it waits for
        self._unread = False  # it waits for its client to read what it asked for
        self._steps: Iterator[None] | None = None  # of a command that is under way
        self._waiting: deque[Iterator[Frame]] = deque()

    @abstractmethod
    def handle(self, frames: Iterable[Frame]) -> None:
        """Handle commands."""

    @abstractmethod
    def failed(self, error: Exception) -> None:
        """Close for a command that could not be handled."""

    @property
    def paused(self) -> bool:
        """Whether it published too fast, too many of its SENDs wait for their commit, or a command is under way."""
        busy = self._limits > 0 or self._steps is not None
        return busy or self.closed or self.unanswered >= self._most_unanswered

    def handle_in_slices(self, steps: Iterator[None]) -> None:
        """Handle one command in several turns, step by step, so that other connections are served meanwhile.

        The connection waits: the frames behind the command are handled when its last step is done. The steps end with
        the connection.
        """
        if work_for_a_slice(steps):
            self._steps = steps
            self.halted = True
            self.broker.turn.later(self._next_slice)

    def _next_slice(self) -> None:
        steps, self._steps = self._steps, None
        if self.closed or steps is None:
            return
        try:
            self.handle_in_slices(steps)
        except Exception as error:
            self.failed(error)
        self._go_on()

    def publish_started(self) -> None:
        self.unanswered += 1

    def publish_finished(self, count: int) -> None:
        was_full = self.unanswered >= self._most_unanswered
        self.unanswered -= count
        if was_full:
            self.broker.turn.flush(self)

    @property
    def waits(self) -> bool:
        """Whether frames that come are kept for later."""
        return self._limits > 0 or self._unread or self._steps is not None

    def pause_reading(self) -> None:
        """One more limit has it wait."""
        self._limits += 1
        if self._limits == 1:
            self.halted = True
            for producer in self.producers.values():  # as in Pulsar, whichever it was
                producer.topic.publish_limited += 1

    def resume_reading(self) -> None:
        """One limit less; without any it goes on."""
        self._limits -= 1
        self._go_on()

    def wait_for_room(self) -> None:
        """So many answers wait that no more is done for this client until it has read them; keep-alive goes on."""
        self._unread = self.halted = True

    def has_room(self) -> None:
        """They have gone."""
        if self._unread:
            self._unread = False
            self._go_on()

    def _go_on(self) -> None:
        if self.waits or self.closed:
            return
        self.halted = False
        while self._waiting and not self.halted:
            self.handle(self._waiting.popleft())
        self.broker.turn.flush(self)

    @abstractmethod
    def flush(self) -> None:
        """The turn ended."""
