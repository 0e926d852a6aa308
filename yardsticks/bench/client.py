"""Run a program in the client process: prepare, report, wait for the start, run, report the result.

    python -m yardsticks.bench.client DRIVER FUNCTION OPTIONS WORK     OPTIONS and the fields of Work as JSON

Lines on standard output: {"prepared": true}, then the fields of Done. One line on standard input starts the run.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from dataclasses import asdict

from yardsticks.bench.work import Timed, Work


def main(driver: str, function: str, options: str, work: str) -> None:
    # Clients log to standard output, which must carry only the lines for the bench.
    tell = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    prepare = getattr(importlib.import_module(f"yardsticks.bench.drivers.{driver}"), function)
    timed: Timed = prepare(Work(**json.loads(work)), **json.loads(options))
    print(json.dumps({"prepared": True}), file=tell)
    if not sys.stdin.readline():
        return
    cpu, begin = time.process_time(), time.perf_counter()
    done = timed()
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    told = {**asdict(done), "seconds": done.seconds or seconds, "cpu": done.cpu or cpu}
    print(json.dumps(told), file=tell)
    tell.flush()
    # The official client's threads may take seconds to end, and the run is over.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
