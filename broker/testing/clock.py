"""The broker's clock, for tests that run in another thread."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from pulsarium.broker.lab.clock import LabClock
from pulsarium.broker.server import RunningCluster
from pulsarium.broker.testing.thread import LoopThread


class BrokerClock:
    """Steers the time of a broker: that of everything it waits for, and of what it writes down.

        broker.clock.freeze()
        broker.clock.advance(timedelta(days=7))

    The clocks of clients go on as they are; so do keep-alive and the expiry of credentials, unless they are included.
    """

    def __init__(self, thread: LoopThread[RunningCluster], clock: LabClock) -> None:
        self._thread = thread
        self._clock = clock

    # how it stands

    @property
    def frozen(self) -> bool:
        """Whether time stands still."""
        return self._clock.frozen

    def now_ms(self) -> int:
        """The broker's time, in milliseconds since the epoch."""
        return self._thread.call(self._clock.now_ms)

    @property
    def offset_ms(self) -> int:
        """How far it is ahead of the machine's clock, in milliseconds; below 0: behind."""
        return self._thread.call(lambda: self._clock.offset_ms)

    @property
    def next_in(self) -> float | None:
        """Seconds until the next timer that runs once: what `run_next` goes to. None: nothing waits."""
        return self._thread.call(lambda: self._clock.next_in)

    # standing still

    def freeze(self) -> None:
        """Let time stand still; only `advance`, `run_next` and `auto_advance` move it."""
        self._thread.call(self._clock.freeze)

    def resume(self) -> None:
        """Let time go on, from where it stands."""
        self._thread.call(self._clock.resume)

    def reset(self) -> None:
        """Have the machine's time again, as in the beginning."""
        self._thread.call(self._clock.reset)

    # moving

    def advance(self, time: float | timedelta) -> None:
        """Be later by so many seconds, and run what comes due on the way, in its order. Returns when all of it is done,
        and what became due is on its way to clients. Raises ClockError."""
        seconds = time.total_seconds() if isinstance(time, timedelta) else time
        self._thread.wait(None, self._clock.advance, seconds)

    def run_next(self) -> float:
        """Go on to the next timer that runs once, and run it; how many seconds that was. Raises ClockError when there
        is none."""
        return self._thread.wait(None, self._clock.run_next)

    @property
    def auto_advance(self) -> bool:
        """Whether time goes to the next timer by itself as soon as the broker has nothing to do."""
        return self._clock.auto_advance

    @auto_advance.setter
    def auto_advance(self, on: bool) -> None:
        self._thread.call(setattr, self._clock, "auto_advance", on)

    # what obeys

    @property
    def included(self) -> Sequence[str]:
        """What else obeys, by name."""
        return self._clock.included

    def include(self, *names: str) -> None:
        """Let "keep-alive" or "token-expiry" obey too. Raises ClockError."""
        self._thread.call(self._clock.include, *names)

    def exclude(self, *names: str) -> None:
        """Let it go with the machine's clock again. Raises ClockError."""
        self._thread.call(self._clock.exclude, *names)
