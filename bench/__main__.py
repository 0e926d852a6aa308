"""Run scripts/bench: measure a broker's start, its memory, and the cost of a message."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from bench import report, settings, tables
from bench.accounting import ProcessGoneError, memory
from bench.brokers import ROOT, Broker, BrokerError, Launch, pulsarium_command, running
from bench.clients import table as clients
from bench.clients.programs import OPERATIONS, Operation
from bench.measure import MeasureError, Run, alternate, measure_start
from bench.program import Program
from bench.programs import PROGRAMS, chosen

ABOUT = """\
Measures `pulsarium serve` in a process of its own, with clients in processes of their own. It measures the seconds
from launch to CONNECTED and to the ready line, and idle memory. For each program it measures the rate, and the
broker's CPU time (user and system, all threads) per message. Figures are medians of the counted runs, which follow the
warm-up runs. Programs named raw-... use a bare socket, so that the client is not the limit. The others use the
official Python client. "busy" shows how many cores broker and client used: a process near 1 was the limit.

  scripts/bench                                     everything, in two or three minutes
  scripts/bench --quick                             few messages and one run, too short for a judgment
  scripts/bench publish-unbatched send-sync         only these programs (--list names them), no start-up figures
  scripts/bench shared-consumers key-shared-consumers    1, 10 and 100 consumers on a subscription, and 100 over 1
  scripts/bench compaction                          GET_LAST_MESSAGE_ID on a compacted topic, by protocol version,
                                                    and compaction itself
  scripts/bench compaction-limit --keys N           compaction of N different keys in a broker with little memory, and
                                                    on Spark: a command of its own (--help)
  scripts/bench holes delayed                       a million individually acknowledged entries, a million delayed
                                                    messages: the cost of one at the beginning and at the end, and the
                                                    memory; a minute or two each, run once, and only when named
  scripts/bench holes --scale 0.1                   a tenth of the messages
  scripts/bench scale                               how cost grows with topics, connections, consumers and backlog;
                                                    memory with a backlog of 10 GB, PING during a cold read; a
                                                    quarter of an hour, 13 GB of disk
  scripts/bench growth                              a table and a picture of the same over more sizes: a command of its
                                                    own (--help)
  scripts/bench echo                                a round trip to a Python server that does nothing: a command of
                                                    its own (--help)
  scripts/bench breakdown                           the parts of a message's CPU time: a command of its own (--help)
  scripts/bench pressure                            a consumer that stops reading, a publisher that floods, one large
                                                    piece of work, and their cost for others: a command of its own
  scripts/bench --clients                           our async client under trio and asyncio beside the official one and
                                                    its asyncio module, on one broker; five minutes
  scripts/bench fixtures                            tests on the fixtures of the pytest plugin: a command of its own
  scripts/bench transactions                        the rate of transactions, and the cost of open ones: a command of
                                                    its own (--help)
  scripts/bench analyze                             pulsarium analyze on a million frames and on ten million: a command
                                                    of its own (--help)
  scripts/bench pipeline --help                     the data source on Spark, and compaction on Spark: a command of its
                                                    own
  scripts/bench --json FILE                         write the figures of every run; "-" is standard output
  scripts/bench --against pulsar                    the same on a real broker, in turn; both store what they are sent
                                                    and have the same settings (bench/settings.py); pulsar-perf on
                                                    both; a quarter of an hour (needs a JDK and mvn, see
                                                    scripts/reference-pulsar)
  scripts/bench --against pulsar --markdown         figures with targets, then the others, as Markdown tables
  scripts/bench --against pulsar://HOST:PORT,http://HOST:PORT,PID    the same on a running broker
  scripts/bench --against .venv-3.13/bin/pulsarium  the same on another installation of Pulsarium, such as that of
                                                    scripts/setup --python 3.13; no Java
  scripts/bench --on pulsar://HOST:PORT,http://HOST:PORT,PID         measure a running broker in Pulsarium's place

"better" is how many times better Pulsarium's median is than the other broker's: more a second, or less time, CPU or
memory. A target such as "15x" is for this factor, and a target such as "<= 60" for Pulsarium's median. Idle memory is
measured a second after the start, loaded memory after all programs. The targets are for two idle cores.
"""


BUSY_LOAD = 0.7
OTHER = "other pulsarium"
# Imported on demand, because one of them imports Spark.
COMMANDS = {
    "analyze": "bench.analyze",
    "breakdown": "bench.breakdown",
    "compaction-limit": "bench.compaction_limit",
    "echo": "bench.echo",
    "fixtures": "bench.fixtures",
    "growth": "bench.growth.command",
    "pipeline": "bench.pipeline.command",
    "pressure": "bench.pressure.command",
    "transactions": "bench.transactions",
}


def arguments() -> argparse.Namespace:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("bench", description=ABOUT, formatter_class=layout)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="measure only these")
    parser.add_argument("--quick", action="store_true", help="few messages, one run, no warm-up")
    parser.add_argument(
        "--scale",
        type=float,
        default=1,
        metavar="FACTOR",
        help="multiply the number of messages by FACTOR (default: 1)",
    )
    parser.add_argument(
        "--json", metavar="FILE", help='write the figures as JSON to FILE; "-" prints them in place of the table'
    )
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    parser.add_argument(
        "--against",
        metavar="BROKER",
        help='compare with "pulsar", with another pulsarium (its path), or with a running broker: URL,URL,PID',
    )
    parser.add_argument("--on", metavar="BROKER", help="measure a running broker, and not a new one: URL,URL,PID")
    parser.add_argument("--clients", action="store_true", help="measure clients, and not brokers")
    parser.add_argument("--repetitions", type=int, metavar="N", help="counted runs (default: 3)")
    parser.add_argument("--warm-ups", type=int, metavar="N", help="runs before the counted ones (default: 1)")
    parser.add_argument("--check", action="store_true", help="exit 1 when a target is missed")
    parser.add_argument("--list", action="store_true", help="list the programs, and measure nothing")
    options = parser.parse_args()
    if options.clients:
        return client_arguments(parser, options)
    try:
        java = options.against is not None and not is_installation(options.against)
        options.chosen = chosen(options.programs, large=options.quick, java=java)
    except KeyError as unknown:
        parser.error(f"unknown program: {unknown.args[0]} (--list names them)")
    if options.repetitions is None:
        options.repetitions = 1 if options.quick else 3
    if options.warm_ups is None:
        options.warm_ups = 0 if options.quick else 1
    if options.repetitions < 1 or options.warm_ups < 0 or options.scale <= 0:
        parser.error("at least one run must count, with at least one message")
    return options


def client_arguments(parser: argparse.ArgumentParser, options: argparse.Namespace) -> argparse.Namespace:
    known = {operation.name: operation for operation in OPERATIONS}
    if unknown := set(options.programs) - known.keys():
        parser.error(f"unknown program: {', '.join(sorted(unknown))} (the programs are {', '.join(known)})")
    if options.against:
        parser.error("--clients measures on one broker: choose it with --on")
    options.chosen = [known[name] for name in options.programs] or list(OPERATIONS)
    options.repetitions = options.repetitions or (1 if options.quick else 3)
    options.warm_ups = (0 if options.quick else 1) if options.warm_ups is None else options.warm_ups
    return options


def say(text: str) -> None:
    """Print progress to standard error, apart from the figures."""
    print(text, file=sys.stderr, flush=True)


def commands(options: argparse.Namespace, folder: Path) -> dict[str, list[str]]:
    """Return the command that starts each broker that does not run already. Configurations are written to `folder`."""
    same = ["--config", str(settings.write(folder))] if options.against else []
    ours = [*same, *(settings.OWN_OPTIONS if same else ())]
    own = {} if options.on else {"pulsarium": [*pulsarium_command(), *ours]}
    if options.against == "pulsar":
        return own | {"pulsar": [str(ROOT / "scripts" / "reference-pulsar"), *same]}
    if is_installation(options.against):
        return own | {OTHER: [str(Path(options.against).absolute()), "serve", *ours]}
    return own


def is_installation(against: str | None) -> bool:
    """Return whether --against is the path of a `pulsarium` command."""
    return against is not None and Path(against).is_file()


def given(options: argparse.Namespace) -> dict[str, Broker]:
    """Return the brokers that run already."""
    on = {"given": running(options.on)} if options.on else {}
    starts = options.against in (None, "pulsar") or is_installation(options.against)
    return on if starts else on | {"pulsar": running(options.against)}


def measure(options: argparse.Namespace) -> report.Results:
    with tempfile.TemporaryDirectory(prefix="pulsarium-bench-") as folder:
        return measure_all(options, commands(options, Path(folder)))


def measure_all(options: argparse.Namespace, startable: Mapping[str, Sequence[str]]) -> report.Results:
    brokers = given(options)
    # A real broker stores what it is sent (journalSyncData=false, which is durability os), so ours must store it too.
    kept = options.against is not None
    other = [OTHER if is_installation(options.against) else "pulsar"] if options.against else []
    names = ["given" if options.on else "pulsarium", *other]
    results = report.Results(names, warm_ups=options.warm_ups, repetitions=options.repetitions)
    results.beside_pulsar = OTHER not in names
    if options.against:
        results.settings, results.configured = settings.SETTINGS, [*startable]
    if results.machine["load"] > BUSY_LOAD:
        say(f"the machine is busy (load {results.machine['load']:.1f}): expect worse figures than on an idle machine")
    if not options.programs:
        for name, command in startable.items():
            say(f"starting {name}")
            # The first launch reads everything from disk, and compiles byte code.
            launches = [measure_start(command, kept=kept) for _ in range(options.repetitions + (not options.quick))]
            results.starts[name] = launches[-options.repetitions :]
    with ExitStack() as stack:
        for name, command in startable.items():
            launch = Launch(command, kept=kept)
            stack.callback(launch.stop)
            brokers[name] = launch.broker
        ordered = {name: brokers[name] for name in names}
        for program in options.chosen:
            say(f"running {program.name}")
            measured = {names[0]: ordered[names[0]]} if program.alone else ordered
            results.programs[program.name] = alternate(
                program, measured, count(program, options), *repetitions(program, options), f"{os.getpid()}"
            )
        if not options.programs:
            results.loaded = {name: memory(broker.pid) for name, broker in ordered.items()}
    return results


def measure_clients(options: argparse.Namespace) -> dict[str, dict[str, list[Run]]]:
    with ExitStack() as stack:
        if options.on:
            broker = running(options.on)
        else:
            launch = Launch(pulsarium_command())
            stack.callback(launch.stop)
            broker = launch.broker
        return clients.measure_clients(
            broker,
            options.chosen,
            lambda operation: count(operation, options),
            options.warm_ups,
            options.repetitions,
            say,
        )


def count(program: Program | Operation, options: argparse.Namespace) -> int:
    full: int = program.quick if options.quick else program.count
    return max(1, int(full * float(options.scale)))


def repetitions(program: Program, options: argparse.Namespace) -> tuple[int, int]:
    """Return the numbers of warm-up runs and counted runs."""
    return (0, 1) if program.large else (options.warm_ups, options.repetitions)


def show(options: argparse.Namespace, figures: object, table: str) -> None:
    text = json.dumps(figures, indent=1)
    if options.json == "-":
        print(text)
    else:
        print(table)
        if options.json:
            Path(options.json).write_text(text + "\n")


def run(options: argparse.Namespace) -> bool:
    """Measure, print the figures, and return whether a target is missed."""
    if options.clients:
        rates = measure_clients(options)
        show(options, clients.as_json(rates), clients.table(rates))
        return bool(clients.missed(rates))
    results = measure(options)
    shown = tables.markdown if options.markdown else tables.table
    show(options, tables.as_json(results), shown(results))
    return any(figure.met is False for figure in results.figures())


def main() -> int:
    if (named := COMMANDS.get("".join(sys.argv[1:2]))) is not None:
        command: Callable[[Sequence[str]], int] = importlib.import_module(named).main
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
