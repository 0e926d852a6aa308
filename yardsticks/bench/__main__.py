"""Run scripts/bench: measure a broker's start, its memory, and the cost of a message."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from yardsticks.bench import report, settings
from yardsticks.bench.accounting import ProcessGoneError, memory
from yardsticks.bench.brokers import (
    LITE,
    Broker,
    BrokerError,
    is_lite,
    launched,
    lite_command,
    pulsarium_command,
    running,
)
from yardsticks.bench.measure import MeasureError, Subject, alternate, measure_start
from yardsticks.bench.programs import CLIENTS, OF_CLIENTS, OF_LITE, PROGRAMS, chosen
from yardsticks.servers import ROOT

ABOUT = """\
Measures `pulsarium serve` in a process of its own, with clients in processes of their own. It measures the seconds
from launch to CONNECTED and to the ready line, and idle memory. For each program it measures the rate, and the
broker's CPU time (user and system, all threads) per message. Figures are medians of the counted runs, which follow the
warm-up runs. Programs named raw-... use a bare socket, so that the client is not the limit. The others use the
official Python client. "busy" shows how many cores broker and client used: a process near 1 was the limit.

  scripts/bench                                     everything, in two or three minutes
  scripts/bench --quick                             few messages and one run, too short for a judgment
  scripts/bench publish-unbatched send-sync         only these programs (--list names them), no start-up figures
  scripts/bench shared-consumers key-shared-consumers    1, 10, 100 and 1000 consumers on a subscription, and the
                                                    largest over the smallest
  scripts/bench compaction                          compaction, and GET_LAST_MESSAGE_ID on a compacted topic
  scripts/bench neighbours                          a send beside a flood, and beside a consumer that never reads
  scripts/bench --json FILE                         write the figures of every run; "-" is standard output
  scripts/bench --against pulsar                    the same on a real broker, in turn; both store what they are sent
                                                    and have the same settings (settings.py); pulsar-perf on both; a
                                                    quarter of an hour (needs a JDK and mvn, see
                                                    scripts/reference-pulsar)
  scripts/bench --against pulsar --markdown         figures with targets, then the others, as Markdown tables
  scripts/bench --against pulsar://HOST:PORT,http://HOST:PORT,PID    the same on a running broker
  scripts/bench --against .venv-3.13/bin/pulsarium  the same on another installation of Pulsarium, such as that of
                                                    scripts/setup --python 3.13; no Java
  scripts/bench --against pulsar-lite               the same on pulsar-lite of the PATH, or the path of its program (in
                                                    the package pulsar-lite); only programs that it can run
  scripts/bench --on pulsar://HOST:PORT,http://HOST:PORT,PID         measure a running broker in Pulsarium's place
  scripts/bench --clients                           our async client under trio and asyncio beside the official one and
                                                    its asyncio module, on one broker; five minutes

Commands of their own, each with --help:

  scripts/bench growth                              how cost grows with topics, connections, consumers and backlog
  scripts/bench pressure                            the longest step of the broker's loop, and another client's PINGs,
                                                    beside pieces of work and floods of each command
  scripts/bench proxy                               the rate through pulsarium proxy, and without it
  scripts/bench pipeline                            the data source on Spark, and compaction on Spark

"better" is how many times better Pulsarium's median is than that of the next column: more a second, or less time, CPU
or memory. A target such as "15x" is for this factor, and a target such as "<= 60" for Pulsarium's median. Idle memory
is measured a second after the start, loaded memory after all programs. The targets are for two idle cores.
"""


BUSY_LOAD = 0.7
OTHER = "other pulsarium"
# Imported on demand, because one of them imports Spark.
COMMANDS = {"growth": "growth", "pipeline": "pipeline.command", "pressure": "pressure.command", "proxy": "proxy"}


def arguments() -> argparse.Namespace:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("bench", description=ABOUT, formatter_class=layout)
    add = parser.add_argument
    add("programs", nargs="*", metavar="PROGRAM", help="measure only these")
    add("--quick", action="store_true", help="few messages, one run, no warm-up")
    add("--scale", type=float, default=1, metavar="FACTOR", help="multiply the number of messages by FACTOR")
    add("--json", metavar="FILE", help='write the figures as JSON to FILE; "-" prints them in place of the table')
    add("--markdown", action="store_true", help="print Markdown tables")
    add(
        "--against",
        metavar="BROKER",
        help='compare with "pulsar", "pulsar-lite", another pulsarium (its path), or a running broker: URL,URL,PID',
    )
    add("--on", metavar="BROKER", help="measure a running broker, and not a new one: URL,URL,PID")
    add("--clients", action="store_true", help="measure clients, and not brokers")
    add("--repetitions", type=int, metavar="N", help="counted runs (default: 3)")
    add("--warm-ups", type=int, metavar="N", help="runs before the counted ones (default: 1)")
    add("--check", action="store_true", help="exit 1 when a target is missed")
    add("--list", action="store_true", help="list the programs, and measure nothing")
    options = parser.parse_args()
    if options.clients and options.against:
        parser.error("--clients measures on one broker: choose it with --on")
    only = OF_CLIENTS if options.clients else OF_LITE if is_lite(options.against) else []
    try:
        options.chosen = chosen(options.programs or only, java=name_of_other(options.against) == "pulsar")
    except KeyError as unknown:
        parser.error(f"unknown program: {unknown.args[0]} (--list names them)")
    if options.clients and (others := {each.name for each in options.chosen} - {*OF_CLIENTS}):
        parser.error(f"no program of all clients: {', '.join(sorted(others))} (these are {', '.join(OF_CLIENTS)})")
    if options.repetitions is None:
        options.repetitions = 1 if options.quick else 3
    if options.warm_ups is None:
        options.warm_ups = 0 if options.quick else 1
    if options.repetitions < 1 or options.warm_ups < 0 or options.scale <= 0:
        parser.error("at least one run must count, with at least one message")
    return options


def say(text: str) -> None:
    """Print progress to standard error, apart from the figures."""
    print(text, file=sys.stderr, flush=True)


def commands(options: argparse.Namespace, folder: Path) -> dict[str, list[str]]:
    """Return the command that starts each broker that does not run already. Configurations are written to `folder`."""
    same = ["--config", str(settings.write(folder))] if options.against else []
    ours = [*same, *(settings.OWN_OPTIONS if same else ())]
    own = {} if options.on else {"pulsarium": pulsarium_command(*ours)}
    if options.against == "pulsar":
        return own | {"pulsar": [str(ROOT / "scripts" / "reference-pulsar"), *same]}
    if is_lite(options.against):
        return own | {LITE: lite_command(options.against)}
    if name_of_other(options.against) == OTHER:
        return own | {OTHER: [str(Path(options.against).absolute()), "serve", *ours]}
    return own


def name_of_other(against: str | None) -> str | None:
    """Return the name of the broker of --against in the table."""
    if against is None:
        return None
    if is_lite(against):
        return LITE
    return OTHER if Path(against).is_file() else "pulsar"


def given(options: argparse.Namespace) -> dict[str, Broker]:
    """Return the brokers that run already."""
    on = {"given": running(options.on)} if options.on else {}
    starts = options.against == "pulsar" or name_of_other(options.against) != "pulsar"
    return on if starts else on | {"pulsar": running(options.against)}


def measure(options: argparse.Namespace) -> report.Results:
    with tempfile.TemporaryDirectory(prefix="pulsarium-bench-") as folder:
        startable = commands(options, Path(folder))
        # A real broker stores what it is sent (journalSyncData=false, which is durability os), so ours must store too.
        kept = options.against is not None
        first, other = "given" if options.on else "pulsarium", name_of_other(options.against)
        names = list(CLIENTS) if options.clients else [first, *([other] if other else [])]
        results = report.Results(names, warm_ups=options.warm_ups, repetitions=options.repetitions)
        results.beside_pulsar, results.of_clients = other in (None, "pulsar"), options.clients
        if options.against:  # pulsar-lite has no such settings
            results.settings, results.configured = settings.SETTINGS, [name for name in startable if name != LITE]
        if results.machine["load"] > BUSY_LOAD:
            say(f"the machine is busy (load {results.machine['load']:.1f}): expect worse figures than on an idle one")
        if not options.programs and not options.clients:
            for name, command in startable.items():
                say(f"starting {name}")
                # The first launch reads everything from disk, and compiles byte code.
                launches = [measure_start(command, kept=kept) for _ in range(options.repetitions + (not options.quick))]
                results.starts[name] = launches[-options.repetitions :]
        with ExitStack() as stack:
            started = {name: stack.enter_context(launched(command, kept=kept)) for name, command in startable.items()}
            found = {**given(options), **{name: launch.broker for name, launch in started.items()}}
            subjects = {
                name: Subject(found[first], name) if options.clients else Subject(found[name]) for name in names
            }
            for program in options.chosen:
                say(f"running {program.name}")
                count = max(1, int((program.quick if options.quick else program.count) * options.scale))
                runs = alternate(program, subjects, count, options.warm_ups, options.repetitions)
                results.programs[program.name] = runs
            if not options.programs and not options.clients:
                results.loaded = {name: memory(subject.broker.pid) for name, subject in subjects.items()}
    return results


def run(options: argparse.Namespace) -> bool:
    """Measure, print the figures, and return whether a target is missed."""
    results = measure(options)
    text = json.dumps(results.as_json(), indent=1)
    if options.json == "-":
        print(text)
    else:
        print((report.markdown if options.markdown else report.table)(results))
        if options.json:
            Path(options.json).write_text(text + "\n")
    return any(figure.met is False for figure in results.figures())


def main() -> int:
    if (named := COMMANDS.get("".join(sys.argv[1:2]))) is not None:
        command: Callable[[Sequence[str]], int] = importlib.import_module(f"yardsticks.bench.{named}").main
        return command(sys.argv[2:])
    options = arguments()
    if options.list:
        for program in PROGRAMS:
            print(f"{program.name:30} {program.title}, {program.count:,} a run")
        return 0
    try:
        missed = run(options)
    except (BrokerError, MeasureError, ProcessGoneError) as error:
        say(f"bench: {error}")
        return 2
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
