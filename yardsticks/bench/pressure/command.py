"""Run scripts/bench pressure: the cost of one client's flood, or of one large piece of work, for all others."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from yardsticks.bench.brokers import running
from yardsticks.bench.pressure import loop
from yardsticks.bench.pressure.loop import LONGEST_PONG_MS, LONGEST_STEP_MS
from yardsticks.bench.pressure.pieces import FLOOD_SECONDS, PIECES

ABOUT = f"""\
Measures how long one piece of work, or one client's flood, holds the broker's event loop, and with it all other
clients:

  longest step        The loop's work between two looks at its sockets, in milliseconds of CPU time of its thread, which
                      other processes do not lengthen. The target is {LONGEST_STEP_MS} ms. Where longer steps are in the
                      broker's code stands below the table.
  garbage collection  The longest time in a step, which "longest step" does not contain.
  PONG                The milliseconds from a PING of another client to its PONG. The client sends the next PING without
                      waiting for it. The target for the p99 is {LONGEST_PONG_MS} ms.

The seconds, CPU seconds and megabytes of RssAnon of the work follow. Pieces of work have brokers of their own, apart
from the floods of each command, which share one. A flood ends after {FLOOD_SECONDS:g} seconds at the latest.
`scripts/bench neighbours` measures the sends of other clients beside a publisher that never stops, and beside a
consumer that never reads.

  scripts/bench pressure                                             everything, in half an hour
  scripts/bench pressure PIECE...                                    only these pieces of work
  scripts/bench pressure floods                                      only the floods of each command
  scripts/bench pressure --rounds 1 --scale 0.1                      a short look
  scripts/bench pressure --on pulsar://HOST:PORT,http://HOST:PORT,PID       measure a running broker, without steps
"""


def main(given: Sequence[str]) -> int:
    layout = argparse.RawDescriptionHelpFormatter
    told = "\n".join(f"  {piece.name:38} {piece.title}" for piece in PIECES)
    about = f"{ABOUT}\nPieces of work:\n{told}"
    parser = argparse.ArgumentParser("bench pressure", description=about, formatter_class=layout)
    add = parser.add_argument
    add("pieces", nargs="*", metavar="PIECE", help="measure only these pieces of work")
    add("--rounds", type=int, default=3, metavar="N", help="rounds of everything (default: 3)")
    add("--scale", type=float, default=1, metavar="FACTOR", help="multiply the size of pieces of work by FACTOR")
    add("--on", metavar="BROKER", help="measure a running broker, and not new ones: URL,URL,PID")
    add("--check", action="store_true", help="exit 1 when a target is missed")
    options = parser.parse_args(given)
    if unknown := {*options.pieces} - {name for piece in PIECES for name in (piece.name, piece.group) if name}:
        parser.error(f"unknown piece of work: {', '.join(sorted(unknown))} (--help names them)")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n", flush=True)
    chosen = [piece for piece in PIECES if not options.pieces or {piece.name, piece.group} & {*options.pieces}]
    held = loop.measure(chosen, options.scale, options.rounds, running(options.on) if options.on else None)
    print(loop.table(held))
    return 1 if options.check and loop.missed(held) else 0
