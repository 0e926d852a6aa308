"""The client process: prepares a program, says so, waits for the word, runs it, tells what it took.

    python -m bench.client PROGRAM WORK     WORK: the fields of work.Work as JSON

Lines on its standard output: {"prepared": true}, then {"operations", "seconds", "cpu", "latencies",
"parts"}. One line on its
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
    # Clients log to standard output; what the bench reads there must be ours alone.
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
    # The official client's threads may take seconds to wind down, and nothing of theirs is of interest any more.
    os._exit(0)


if __name__ == "__main__":
    main()
