"""Run scripts/bench pipeline."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.brokers import BrokerError, Launch, pulsarium_command
from bench.pipeline import against, compacting, rows
from bench.pipeline.figures import Figure, as_json, table
from bench.report import machine
from pulsarium.pipeline import NoJava, session

INDEX = "brokerEntryMetadataInterceptors=org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor"
MASTER = "PULSARIUM_TEST_SPARK_MASTER"
PARTS = ("read", "write", "compact")

ABOUT = f"""\
Measures the pipeline: rows a second that Spark reads from a Pulsarium broker and writes to it, with values of 100 B
and 1 KB in 1, 2 and 4 partitions, and with one partition in several splits. Then it compares compaction on Spark with
the broker's own, for 1 and 10 million messages. Seconds are medians of the counted runs, after a warm-up run; those of
compaction are of one run. The table is Markdown, as docs/pipeline.md shows it.

  scripts/bench pipeline                  everything, in about 15 minutes
  scripts/bench pipeline --quick          a tenth of the messages, one run
  scripts/bench pipeline read write       only these parts (of {", ".join(PARTS)})
  scripts/bench pipeline --against jvm --jvm-connector JAR     beside the connector for the JVM, session by session
  scripts/spark-cluster scripts/bench pipeline     the same on a master and two workers, processes of their own
"""


def arguments(given: Sequence[str]) -> argparse.Namespace:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("bench pipeline", description=ABOUT, formatter_class=layout)
    parser.add_argument("parts", nargs="*", metavar="PART", help="measure only these")
    parser.add_argument("--quick", action="store_true", help="a tenth of the messages, one run")
    parser.add_argument(
        "--scale",
        type=float,
        default=1,
        metavar="FACTOR",
        help="multiply the number of messages by FACTOR (default: 1)",
    )
    parser.add_argument("--repetitions", type=int, metavar="N", help="counted runs (default: 3)")
    parser.add_argument(
        "--master", default=os.environ.get(MASTER, "local[*]"), help=f"Spark's master (default: ${MASTER} or local[*])"
    )
    parser.add_argument(
        "--json", metavar="FILE", help='write the figures as JSON to FILE; "-" prints them in place of the table'
    )
    parser.add_argument("--against", choices=["jvm"], help="compare reads and writes with the connector for the JVM")
    parser.add_argument("--jvm-connector", metavar="JAR", help="that connector, built for the Spark installed here")
    options = parser.parse_args(given)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown part: {', '.join(sorted(unknown))} (the parts are {', '.join(PARTS)})")
    options.parts = options.parts or list(PARTS)
    options.repetitions = options.repetitions or (1 if options.quick else 3)
    options.scale *= 0.1 if options.quick else 1
    if options.repetitions < 1 or options.scale <= 0:
        parser.error("at least one run must count, with at least one message")
    return options


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    if {"read", "write"} & set(options.parts):
        yield from _rows(options)
    if "compact" in options.parts:
        yield from compacting.figures(options.scale, options.master)


def _rows(options: argparse.Namespace) -> Iterator[Figure]:
    launch = Launch([*pulsarium_command(), "--set", INDEX])
    local = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    try:
        spark = session("bench", master=options.master, config={**local, "spark.log.level": "ERROR"})
        bench = rows.Bench(spark, launch.broker, options.repetitions, options.scale)
        if "read" in options.parts:
            yield from rows.reading(bench)
        if "write" in options.parts:
            yield from rows.writing(bench)
        spark.stop()
    finally:
        launch.stop()


def _against(options: argparse.Namespace) -> int:
    try:
        found = against.compare(against.connector(options.jvm_connector), options.scale, options.repetitions)
    except (against.NoPeer, BrokerError, NoJava) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 0 if options.jvm_connector is None else 2
    text = json.dumps({"machine": machine(), "figures": against.as_json(found)}, indent=1)
    print(text if options.json == "-" else "\n\n".join(filter(None, (against.table(found), against.profile(found)))))
    if options.json and options.json != "-":
        Path(options.json).write_text(text + "\n")
    return 0


def main(given: Sequence[str]) -> int:
    options = arguments(given)
    if options.against:
        return _against(options)
    figures = []
    try:
        for figure in measure(options):
            figures.append(figure)
            print(f"{figure.what}, {figure.partitions} partitions: {figure.rate:,.0f}/s", file=sys.stderr, flush=True)
    except (BrokerError, NoJava) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    text = json.dumps(as_json(figures), indent=1)
    print(text if options.json == "-" else "\n\n".join(filter(None, (table(figures), compacting.crossover(figures)))))
    if options.json and options.json != "-":
        Path(options.json).write_text(text + "\n")
    return 0
