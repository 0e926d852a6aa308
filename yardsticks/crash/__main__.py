"""The command scripts/crash: kill brokers with kill -9 under load, and verify what they stored."""

from __future__ import annotations

import argparse
import secrets
import shutil
import sys
import tempfile
import time
from functools import partial
from itertools import chain
from pathlib import Path

import trio

from .run import Crash, Failure, point_rounds, random_rounds, run

ABOUT = """\
Starts a broker on one data directory again and again, and kills it with kill -9 while eight clients publish,
acknowledge, seek, compact, use transactions and change policies. After each start everything that the broker had
confirmed is looked for: each message with a receipt once and where the receipt says, no acknowledged one again, no
other one gone, the newest value of each key, no ledger, cursor or setting unreadable.

  scripts/crash                                 100 kills at random moments
  scripts/crash --rounds 1000 --seed 1          the long form: about 10 minutes
  scripts/crash --points 20                     20 kills at every persist point, counted under load and from the start

Exit code 0: nothing was lost. 1: something was; the directory is kept, and its place printed.
"""
REPORTED = 50  # rounds between two lines about progress, when stderr is no terminal
WIDTH = 40  # columns of the progress bar


def arguments() -> argparse.Namespace:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("crash", description=ABOUT, formatter_class=layout)
    parser.add_argument("--rounds", type=int, metavar="N", help="kills at random moments (default: 100)")
    parser.add_argument("--points", type=int, default=0, metavar="N", help="kills at each persist point (default: 0)")
    parser.add_argument("--seed", type=int, metavar="N", help="decides by chance as the run with this seed did")
    parser.add_argument("--durability", choices=("os", "fsync"), default="os", help="of the broker (default: os)")
    return parser.parse_args()


def tell(rounds: int, begin: float, done: int, crash: Crash) -> None:
    full = min(WIDTH, WIDTH * done // rounds)
    seconds = time.monotonic() - begin
    line = f"[{'#' * full}{'.' * (WIDTH - full)}] {done} of {rounds}, {seconds:.0f} s"
    if sys.stderr.isatty():
        print(f"\r{line}", end="", file=sys.stderr, flush=True)
    elif done % REPORTED == 0 or done == rounds:
        print(line, file=sys.stderr, flush=True)


def main() -> int:
    options = arguments()
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    count = options.rounds if options.rounds is not None else 0 if options.points else 100
    rounds = list(chain(point_rounds(seed, options.points), random_rounds(seed, count)))
    print(f"seed {seed}, {len(rounds)} rounds", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="pulsarium-crash-"))
    telling = partial(tell, len(rounds) + 1, time.monotonic())
    try:
        killed_at = trio.run(partial(run, folder, seed, rounds, durability=options.durability, tell=telling))
    except Failure as failure:
        print(f"\nLOST: {failure}\nThe directory is kept: {folder}")
        return 1
    shutil.rmtree(folder)
    print("\nnothing was lost; killed at: " + ", ".join(f"{name} {times}" for name, times in sorted(killed_at.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
