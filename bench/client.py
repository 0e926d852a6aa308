"""Run a program in the client process: prepare, report, wait for the start, run, report the result.

    python -m bench.client PROGRAM WORK     WORK: the fields of work.Work as JSON

Lines on standard output: {"prepared": true}, then {"operations", "seconds", "cpu", "latencies", "parts"}. One line on
standard input starts the run.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict

from bench.clients import programs as clients
from bench.programs import BY_NAME
from bench.work import Work


def main() -> None:
    # Clients log to standard output, which must carry only the lines for the bench.
    tell = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    timed = (BY_NAME | clients.BY_NAME)[sys.argv[1]].prepare(Work(**json.loads(sys.argv[2])))
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
    main()
