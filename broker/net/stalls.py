"""Notice work that holds the event loop, and with it all clients.

No step of the loop should take longer than a slice (`slices.py`). A round of the loop that takes 0.1 seconds of
processor time is a stall: the log names its longest work, /metrics counts it, and the console shows the latest ones.
Time that other processes of the machine took does not count.
"""

from __future__ import annotations

from collections import deque
from time import perf_counter, thread_time, time
from typing import NamedTuple

import trio

from pulsarium.broker.logs import PartLog

log = PartLog("loop")

LEAST = 0.1
"""Seconds of processor time that make a round a stall."""

LOOK_AGAIN = 0.02
"""Seconds after which the processor's time is read again: a reading costs more than a round's own bookkeeping."""

KEPT = 20


class StalledRound(NamedTuple):
    """A round that held the event loop: its time in milliseconds since the epoch, its length, and its longest work."""

    at_ms: int
    seconds: float
    work: str


class Stalls(trio.abc.Instrument):
    """The stalls of an event loop, as an instrument of trio."""

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self.latest: deque[StalledRound] = deque(maxlen=KEPT)
        self._began = perf_counter()
        self._processor = thread_time()  # at `_looked`, so up to LOOK_AGAIN of earlier rounds count too
        self._looked = self._began
        self._longest = 0.0
        self._work: tuple[object, ...] = ()

    def took(self, seconds: float, *work: object) -> None:
        """Note that a piece of work of this round took `seconds`. Its words become a text only when it was a stall."""
        if seconds > self._longest:
            self._longest, self._work = seconds, work

    def after_io_wait(self, timeout: float) -> None:
        self._began = now = perf_counter()
        if now > self._looked + LOOK_AGAIN:
            self._looked, self._processor = now, thread_time()

    def before_io_wait(self, timeout: float) -> None:
        passed = perf_counter() - self._began
        if passed >= LEAST and (seconds := min(passed, thread_time() - self._processor)) >= LEAST:
            self._note(seconds)
        self._longest, self._work = 0.0, ()  # also, so that no session is kept while the loop waits

    def _note(self, seconds: float) -> None:
        work = " ".join(map(str, self._work)) if self._longest > seconds / 2 else "many pieces of work"
        self.count += 1
        self.seconds += seconds
        self.latest.append(StalledRound(int(time() * 1000), seconds, work))
        log.warning(
            "the event loop was held, and all clients waited", milliseconds=round(seconds * 1000), longest_work=work
        )
