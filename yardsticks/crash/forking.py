"""A process that has imported the broker and forks it on demand, which takes a tenth of the time of a new Python.

    python -m yardsticks.crash.forking

The process reads orders from stdin, one JSON object a line, and runs one broker at a time. It prints "pid N" to stdout,
then what the broker prints, and "ended STATUS" when the broker has ended. The broker is killed when stdin ends.

With a `point`, the broker kills itself at the given occurrence of that persist point. Occurrences count from the
broker's start, or with `armed: false` from SIGUSR1 on.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
from functools import partial
from typing import Any

from pulsarium.broker import server
from pulsarium.broker.storage import applier, entry_log, segments, sqlite
from pulsarium.broker.storage.persist import PersistPoint
from pulsarium.cli.main import cli
from yardsticks.crash.lies import LIES

IMPORTED = (server.WEB, "pulsarium.broker.config", "pulsarium.cli.run", "pulsarium.cli.serve", "pulsarium.cli.logs")


class KillAt:
    """A hook of the storage that kills its own process at a persist point."""

    def __init__(self, point: PersistPoint, occurrence: int, *, armed: bool) -> None:
        self._point = point
        self._left = occurrence
        self._armed = armed
        signal.signal(signal.SIGUSR1, self._arm)

    def _arm(self, *_: object) -> None:
        self._armed = True

    def __call__(self, point: PersistPoint) -> None:
        if self._armed and point is self._point:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def serve(order: dict[str, Any]) -> None:
    """Run the broker that an order describes in this process."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), 2)
    applier.APPLY_BYTES = order["apply_bytes"]
    applier.SOON_SECONDS = 0.02
    entry_log.LOG_BYTES = order["log_bytes"]
    segments.SLICE_ROWS = order["slice_rows"]
    if order["lie"] is not None:
        LIES[order["lie"]]()
    if order["point"] is not None:
        hook = KillAt(PersistPoint[order["point"]], order["occurrence"], armed=order["armed"])
        sqlite.SqliteStorage = partial(sqlite.SqliteStorage, at=hook)  # type: ignore[misc, assignment]
    else:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    cli(order["arguments"], prog_name="pulsarium")


def main() -> None:
    for module in IMPORTED:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # imported modules never become garbage, and untouched memory pages stay shared with the broker
    orders = os.fdopen(os.dup(0), buffering=1)
    while line := orders.readline():
        alive, dead = os.pipe()  # `alive` reads end-of-file once the broker, the only holder of `dead`, has ended
        pid = os.fork()
        if pid == 0:
            os.close(alive)
            serve(json.loads(line))
            os._exit(0)
        os.close(dead)
        os.write(1, b"pid %d\n" % pid)
        if 0 in select.select([0, alive], [], [])[0]:
            os.kill(pid, signal.SIGKILL)
        os.close(alive)
        _, status = os.waitpid(pid, 0)
        os.write(
            1, b"\nended %d\n" % os.waitstatus_to_exitcode(status)
        )  # begins with \n, because the broker may have been killed in the middle of a line


if __name__ == "__main__":
    main()
