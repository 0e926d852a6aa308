"""Run scripts/bench pressure: the cost of one client's load, or of one large piece of work, for all others."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from bench.brokers import running
from bench.pressure import loop, neighbours
from bench.pressure.pieces import PIECES

ABOUT = """\
Measures the cost of one misbehaving client for the others, with bare sockets in place of clients: the time of a
synchronous send of 1 KB to the same topic and to another one, and of a PING, each on connections of their own, in
these scenes:

  quiet      beside a publisher of 2,000 messages of 4 KB a second, and a consumer that receives them
  sluggard   the same, but the consumer has granted permits and never reads
  flood      beside a publisher of messages of 64 KB, which publishes faster than the disk writes (with a data
             directory); a twentieth of the sends, each of which waits behind maxMessagePublishBufferSizeInMB at most

Scenes take turns in one run. Figures are medians of the rounds. The p99 of "sluggard" must be within twice that of
"quiet". "MB" is the largest RssAnon of the broker.

Then it measures the cost of one large piece of work: the longest time between two PONGs of a bystander during the
work, and without work; the broker's CPU time between two PONGs, which other processes do not lengthen; the seconds and
CPU seconds of the work, and how many MB of RssAnon it adds at most. Each round has a broker of its own.

  scripts/bench pressure
  scripts/bench pressure PIECE...                                    only these pieces of work
  scripts/bench pressure --rounds 1 --count 500 --scale 0.1          a short look
  scripts/bench pressure --on pulsar://HOST:PORT,http://HOST:PORT,PID       measure a running broker
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
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds of everything (default: 3)")
    parser.add_argument(
        "--count", type=int, default=3000, metavar="N", help="repetitions of each operation (default: 3000)"
    )
    parser.add_argument(
        "--scale",
        type=float,
        default=1,
        metavar="FACTOR",
        help="multiply the size of pieces of work by FACTOR (default: 1)",
    )
    parser.add_argument("--on", metavar="BROKER", help="measure a running broker, and not new ones: URL,URL,PID")
    options = parser.parse_args(given)
    if unknown := set(options.pieces) - {piece.name for piece in PIECES}:
        parser.error(f"unknown piece of work: {', '.join(sorted(unknown))} (--help names them)")
    return options
