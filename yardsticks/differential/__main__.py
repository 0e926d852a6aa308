"""Command of scripts/differential, which runs random programs against Pulsarium and a real Pulsar."""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
import time
from pathlib import Path

import trio

from tests.foreign.broker_process import Address, AddressError

from .delays import apart, measure, table
from .run import Outcome, brokers, run

ABOUT = """\
Runs random programs of operations (the binary protocol, and REST) against `pulsarium serve` and a real Pulsar 4.2.4 and
compares what both say. A program that differs is shown, with its seed. What may differ, and why, is in
yardsticks/differential/tolerances.py and docs/differences.md.

  scripts/differential                                        1,000 operations, a seed at random
  scripts/differential --operations 200000 --seed 1           the long form: about half an hour
  scripts/differential --delays 1000                          instead: when delayed messages come, from both
  scripts/differential --against pulsar://HOST:PORT,http://HOST:PORT     a real broker that runs already

Without --against a real broker is started; it needs java, and the jars that scripts/setup --foreign fetches.
Exit code 0: no difference. 1: differences. 2: there is no broker to run against.
"""
REPORTED = 10_000  # operations between two lines about progress, when standard error is no terminal
WIDTH = 40  # characters of the progress bar


def arguments() -> argparse.Namespace:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("differential", description=ABOUT, formatter_class=layout)
    parser.add_argument("--operations", type=int, default=1_000, metavar="N", help="at least so many (default: 1000)")
    parser.add_argument("--seed", type=int, metavar="N", help="runs the same programs again")
    parser.add_argument("-j", "--jobs", type=int, default=3, metavar="N", help="workers at a time (default: 3)")
    parser.add_argument("--shrink", action="store_true", help="make a program that differs short: minutes for each")
    parser.add_argument("--delays", type=int, metavar="N", help="compare when N delayed messages of each kind come")
    parser.add_argument("--against", metavar="PULSAR_URL,HTTP_URL", help="a real broker with this suite's settings")
    return parser.parse_args()


def bar(outcome: Outcome, operations: int, seconds: float) -> str:
    done = outcome.tally.operations
    full = min(WIDTH, WIDTH * done // operations)
    differences = len(outcome.divergences)
    return f"[{'#' * full}{'.' * (WIDTH - full)}] {done} of {operations}, {differences} differences, {seconds:.0f} s"


def summary(outcome: Outcome) -> str:
    tally = outcome.tally
    lines = [f"{tally.operations} operations in {tally.programs} programs"]
    for title, counts in (
        ("commands", tally.commands),
        ("subscription types", tally.subscriptions),
        ("REST calls", tally.calls),
        ("tolerated", tally.tolerated),
    ):
        lines.append(f"{title}: {', '.join(f'{name} {count}' for name, count in sorted(counts.items()))}")
    return "\n".join(lines)


def found(outcome: Outcome) -> list[str]:
    """Return the differences as text."""
    return [
        *(f"NOT REPEATABLE, {each}\n" for each in outcome.chance),
        *(f"DIFFERENCE, {each}\n" for each in outcome.divergences),
    ]


def compare_delays(ours: Address, real: Address, messages: int, seed: int) -> int:
    found = trio.run(measure, (ours, real), messages, seed)
    differing = apart(*found)
    print("\n".join([*table(*found), *(f"DIFFERENCE, {each}" for each in differing)]))
    return 1 if differing else 0


def main() -> int:
    options = arguments()
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    print(f"seed {seed}, {options.jobs} workers", flush=True)
    begin = time.monotonic()

    shown: set[str] = set()
    next_line = REPORTED

    def tell(outcome: Outcome) -> None:
        nonlocal next_line
        for each in found(outcome):
            if each not in shown:
                shown.add(each)
                print(f"\n{each}", flush=True)
        line = bar(outcome, options.operations, time.monotonic() - begin)
        if sys.stderr.isatty():
            print(f"\r{line}", end="", file=sys.stderr, flush=True)
        elif outcome.tally.operations >= next_line:
            next_line += REPORTED
            print(line, file=sys.stderr, flush=True)

    try:
        real = None if options.against is None else Address.parse(options.against)
        with (
            tempfile.TemporaryDirectory(prefix="pulsarium-differential-") as folder,
            brokers(Path(folder), real) as pair,
        ):
            if options.delays is not None:
                return compare_delays(*pair, options.delays, seed)
            outcome = run(*pair, seed, options.operations, options.jobs, shrink=options.shrink, tell=tell)
    except (AddressError, AssertionError) as error:
        print(f"differential: {error}", file=sys.stderr)
        return 2
    print("\n" + summary(outcome))
    return 1 if outcome.divergences else 0


if __name__ == "__main__":
    sys.exit(main())
