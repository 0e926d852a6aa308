"""The command scripts/soak: run a broker under mixed load for long. No message may be lost, and nothing may grow."""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from .gauges import MB
from .run import Outcome, broker, run
from .scalable import report, scalable

ABOUT = """\
Runs `pulsarium serve --data` under a mixed load for half an hour: our async client and the official one publish and
consume in every way there is, on topics, subscriptions and connections that come and go. Every message is numbered and
accounted for. The broker's memory, tasks, threads and open files are looked at each second: after the first quarter
they must stay where they are, and with the last client gone be what they were before the first.

  scripts/soak                            30 minutes, a seed at random
  scripts/soak --seconds 60 --seed 1      as in CI
  scripts/soak --memory                   without a data directory
  scripts/soak --scalable --seconds 600   a scalable topic: splits, merges, unloads and kills over two brokers

Exit code 0: all is well. 1: it is not, and what. 2: there is no broker to run against.
"""
SECONDS = 1800.0
SCALABLE_SECONDS = 600.0
REPORTED_SECONDS = 60.0  # between two lines about progress, when stderr is no terminal
WIDTH = 30  # columns of the progress bar
TYPES_SHOWN = 12


def arguments() -> argparse.Namespace:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("soak", description=ABOUT, formatter_class=layout)
    parser.add_argument("--seconds", type=float, metavar="N", help="of load (default: 1800)")
    parser.add_argument("--seed", type=int, metavar="N", help="does the same in about the same order")
    parser.add_argument("--memory", action="store_true", help="keep nothing on disk")
    parser.add_argument("--java", action="store_true", help="with --scalable: the V5 Java client takes part")
    parser.add_argument("--scalable", action="store_true", help="split, merge, unload and kill (default: 600 s)")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes of our client (default: 1)")
    parser.add_argument("--folder", type=Path, help="for logs and data; kept")
    parser.add_argument("--json", metavar="FILE", help='write the figures as JSON; "-" in the place of the table')
    return parser.parse_args()


def bar(outcome: Outcome, seconds: float, passed: float) -> str:
    full = min(WIDTH, int(WIDTH * passed / seconds))
    now = outcome.samples[-1]
    return (
        f"[{'#' * full}{'.' * (WIDTH - full)}] {passed:.0f} of {seconds:.0f} s  {outcome.told.total('sent'):,} sent "
        f"{outcome.told.total('seen'):,} seen  {now.memory / MB:.0f} MB {now.tasks} tasks {now.threads} threads "
        f"{now.files} files  {len(outcome.told.violations)} violations "
    )


def table(outcome: Outcome) -> str:
    lines = ["| stream | sent | seen | again |", "|---|---|---|---|"]
    lines += [f"| {name} | {sent:,} | {seen:,} | {again:,} |" for name, sent, seen, again in outcome.told.streams]
    lines += [
        "",
        "| gauge | start | second quarter | last quarter | may be | most | end |",
        "|---|---|---|---|---|---|---|",
    ]
    start, end = asdict(outcome.start), asdict(outcome.end or outcome.start)
    for trend in outcome.trends:
        unit = MB if trend.name == "memory" else 1
        figures = (start[trend.name], trend.early, trend.late, trend.bound, trend.most, end[trend.name])
        lines.append(f"| {trend.name} | " + " | ".join(f"{figure / unit:,.1f}" for figure in figures) + " |")
    grown = sorted(outcome.grown.items(), key=lambda each: -each[1])[:TYPES_SHOWN]
    lines += ["", "objects more in the end: " + ", ".join(f"{name} {count:,}" for name, count in grown), ""]
    return "\n".join(lines + [f"VIOLATION, {each}" for each in outcome.violations])


def as_json(outcome: Outcome) -> dict[str, object]:
    return {
        "violations": outcome.violations,
        "streams": outcome.told.streams,
        "trends": [asdict(trend) for trend in outcome.trends],
        "start": asdict(outcome.start),
        "end": asdict(outcome.end or outcome.start),
        "samples": [asdict(sample) for sample in outcome.samples],
    }


def main() -> int:
    options = arguments()
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    print(f"seed {seed}", file=sys.stderr, flush=True)
    if options.scalable:
        return report(scalable(options.seconds or SCALABLE_SECONDS, seed, options.folder, java=options.java))
    seconds = options.seconds or SECONDS
    next_line = REPORTED_SECONDS

    def tell(outcome: Outcome, passed: float) -> None:
        nonlocal next_line
        line = bar(outcome, seconds, passed)
        if sys.stderr.isatty():
            print(f"\r{line}", end="", file=sys.stderr, flush=True)
        elif passed >= next_line:
            next_line += REPORTED_SECONDS
            print(line, file=sys.stderr, flush=True)

    begin = time.monotonic()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="pulsarium-soak-") as folder,
            broker(options.folder or Path(folder), memory=options.memory) as process,
        ):
            outcome = run(process, seconds, seed, options.workers, tell)
    except AssertionError as error:
        print(f"soak: {error}", file=sys.stderr)
        return 2
    print(f"\n{time.monotonic() - begin:.0f} s", file=sys.stderr)
    text = json.dumps(as_json(outcome), indent=1)
    print(text if options.json == "-" else table(outcome))
    if options.json not in (None, "-"):
        Path(options.json).write_text(text + "\n")
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main())
