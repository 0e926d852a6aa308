"""Run pulsarium, and note each long step of its event loop in a file.

    python -m yardsticks.bench.pressure.watched FILE serve ...

A step is all work of the loop between two looks at its sockets, so it is how long a client waits at most. Each line of
the file is a step: its milliseconds of CPU time on the loop's thread without garbage collection, those of garbage
collection, and where the step was longest, for a step that lasts.
"""

from __future__ import annotations

import gc
import math
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType

import trio

ROOT = str(Path(__file__).parents[3])

LEAST = 0.001
"""Seconds of a step that is noted."""

LASTS = 0.02
"""Seconds after which a step's place in the code is looked at, every LOOK seconds."""

LOOK = 0.003
SHOWN = 3  # functions of a place


class Watch(trio.abc.Instrument):
    """Measure each step of an event loop, and tell `note` of those that are long."""

    def __init__(self, note: Callable[[str], object]) -> None:
        self._note = note
        self._began = time.thread_time()
        self._entered = math.inf  # when the current step began, by the machine's clock
        self._collecting = self._collected = 0.0
        self._places: Counter[str] = Counter()
        self._over = threading.Event()

    def before_run(self) -> None:
        self._thread = threading.get_ident()
        gc.callbacks.append(self._collection)
        threading.Thread(target=self._look, daemon=True).start()

    def after_run(self) -> None:
        gc.callbacks.remove(self._collection)
        self._over.set()

    def after_io_wait(self, timeout: float) -> None:
        self._collected = 0.0
        self._entered = time.perf_counter()
        self._began = time.thread_time()

    def before_io_wait(self, timeout: float) -> None:
        spent = time.thread_time() - self._began
        self._entered = math.inf
        if spent >= LEAST:
            self._tell(spent - self._collected, self._collected)
        self._places.clear()

    def _tell(self, work: float, collected: float) -> None:
        place = self._places.most_common(1)[0][0] if self._places else "-"
        self._note(f"{work * 1000:.2f} {collected * 1000:.2f} {place}\n")

    def _collection(self, phase: str, info: object) -> None:
        """Count a garbage collection. One of another thread holds the loop, too, but is not part of a step."""
        if phase == "start":
            self._collecting = time.thread_time()
        elif threading.get_ident() == self._thread:
            self._collected += time.thread_time() - self._collecting
        else:
            self._note(f"0 {(time.thread_time() - self._collecting) * 1000:.2f} -\n")

    def _look(self) -> None:
        while not self._over.wait(LOOK):
            if time.perf_counter() - self._entered > LASTS and (frame := sys._current_frames().get(self._thread)):
                self._places[place_of(frame)] += 1


def place_of(frame: FrameType | None) -> str:
    """Return the innermost functions of the broker that a thread is in."""
    found: list[str] = []
    while frame is not None and len(found) < SHOWN:
        file = frame.f_code.co_filename
        if file.startswith(ROOT) and "site-packages" not in file and file != __file__:
            path = Path(file)
            found.append(f"{path.parent.name}/{path.stem}.{frame.f_code.co_name}")
        frame = frame.f_back
    return "<".join(found)


def watch(file: Path) -> None:
    """Have the event loop of this process note its steps in a file."""
    lines = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    instrument = Watch(lambda line: os.write(lines, line.encode()))
    trio.run = partial(trio.run, instruments=[instrument])  # type: ignore[assignment]


def main() -> None:
    """Run `pulsarium` with the other arguments."""
    from pulsarium.__main__ import main

    watch(Path(sys.argv.pop(1)))
    main()


if __name__ == "__main__":
    main()
