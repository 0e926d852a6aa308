"""scripts/bench pressure: what one client that behaves badly, or one large piece of work, costs everybody else."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from bench.brokers import running
from bench.pressure import loop, neighbours
from bench.pressure.pieces import PIECES

ABOUT = """\
Measures what one client that behaves badly costs the others, with bare sockets in place of clients. The time of a
synchronous send of 1 KB, to the topic concerned and to another one, and of a PING, each on connections of their own:

  quiet      beside a publisher of 2,000 messages a second of 4 KB, and a consumer that takes them
  sluggard   the same, where that consumer has all permits and never reads
  flood      beside a publisher of 64 KB as fast as it can, which is faster than the disk (a data directory); a
             twentieth of the sends, each of which waits behind maxMessagePublishBufferSizeInMB at most

Scenes take turns in one run; figures are medians over the rounds. The p99 of "sluggard" is to be within twice that of
"quiet". The most of RssAnon that was seen is of the broker.

Then what one large piece of work costs them: the longest time between two PONGs of a bystander while the work runs,
and while nothing runs; the broker's CPU time between two PONGs, which other processes do not lengthen; the seconds and
the CPU seconds that the work takes, and how many MB of RssAnon it adds at most. Each round has a broker of its own.

  scripts/bench pressure
  scripts/bench pressure PIECE...                                    only these pieces of work
  scripts/bench pressure --rounds 1 --count 500 --scale 0.1          a look
  scripts/bench pressure --on pulsar://HOST:PORT,http://HOST:PORT,PID       a broker that runs already
"""


def main(given: Sequence[str]) -> int:
    options = arguments(given)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    named = {piece.name: piece for piece in PIECES}
    on = running(options.on) if options.on else None
    if not options.pieces:
        with loop.broker_or(on) as broker:
            print(neighbours.table(neighbours.measure(broker, options.count, options.rounds)), end="\n\n")
    pieces = [named[name] for name in options.pieces] or PIECES
    print(loop.table(loop.measure(pieces, options.scale, options.rounds, on)))
    return 0


def arguments(given: Sequence[str]) -> argparse.Namespace:
    layout = argparse.RawDescriptionHelpFormatter
    told = "\n".join(f"  {piece.name:20} {piece.title}" for piece in PIECES)
    parser = argparse.ArgumentParser(
        "bench pressure", description=f"{ABOUT}\nPieces of work:\n{told}", formatter_class=layout
    )
    parser.add_argument("pieces", nargs="*", metavar="PIECE", help="measure only these pieces of work")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="of everything (default: 3)")
    parser.add_argument("--count", type=int, default=3000, metavar="N", help="of each operation (default: 3000)")
    parser.add_argument("--scale", type=float, default=1, metavar="FACTOR", help="of pieces of work (default: 1)")
    parser.add_argument("--on", metavar="BROKER", help="URL,URL,PID of one that runs, in the place of new ones")
    options = parser.parse_args(given)
    if unknown := set(options.pieces) - {piece.name for piece in PIECES}:
        parser.error(f"no such piece of work: {', '.join(sorted(unknown))} (--help names them)")
    return options
