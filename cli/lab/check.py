"""`pulsarium check`: compare what clients experienced with the promises of Pulsar."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pulsarium.cli.grouped import GroupedCommand
from pulsarium.cli.interrupts import closing_at_ctrl_c
from pulsarium.cli.lab.broker import LabOf, of_broker
from pulsarium.cli.lab.reports import BROKEN, files_of, judging, write_report
from pulsarium.cli.refusal import RequestRefused

if TYPE_CHECKING:
    from pulsarium.capture.check.judges import Assumptions
    from pulsarium.capture.check.verdict import Tally


@click.command(cls=GroupedCommand)
@click.argument("histories", nargs=-1, metavar="HISTORY...", type=click.Path(exists=True, path_type=Path))
@click.option("--live", is_flag=True, help="Follow a running broker until Ctrl-C.")
@click.option(
    "--nothing-unseen",
    is_flag=True,
    help="Assume that no message expired, nobody changed subscriptions over REST, and all clients are captured.",
)
@click.option(
    "--delayed-tick",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Accept delayed messages this much early: the broker's delayedDeliveryTickTimeMillis.",
)
@click.option("--promises", is_flag=True, help="List the promises.")
@click.option(
    "--format", "how", type=click.Choice(["text", "json", "junit", "sarif"]), default="text", show_default=True
)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write the report to FILE."
)
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even when a promise was broken.")
@of_broker
def check(
    lab: LabOf,
    histories: Sequence[Path],
    live: bool,
    nothing_unseen: bool,
    delayed_tick: float,
    promises: bool,
    how: str,
    out: Path | None,
    exit_zero: bool,
) -> None:
    """Check what clients experienced against the promises of Pulsar: loss, duplicates, order, transactions.

    HISTORY is a file of pulsarium capture, or a folder of such files. Each broken promise comes with its frames. A
    promise that the capture can prove neither kept nor broken is counted as not proven, with the reason. The exit code
    is 1 when a promise was broken, and 2 when a capture cannot be read or the broker does not answer.

    \b
      pulsarium check run.pulscap
      pulsarium check run.pulscap --nothing-unseen --format junit --out check.xml
      pulsarium check --live
      pulsarium check --promises
    """
    if promises + live + bool(histories) != 1:
        raise RequestRefused("check: pass a HISTORY, or --live, or --promises")
    if promises:
        write_report("\n\n".join(_promises()), out)
        return
    from pulsarium.capture.check.judges import Assumptions
    from pulsarium.capture.check.verdict import Tally

    tally = Tally()
    assumed = Assumptions(nothing_unseen=nothing_unseen, tick_ms=round(delayed_tick * 1000))
    with judging():
        if live:
            tally = _live(lab, assumed)
        for path in files_of(histories):
            tally.add(_of_file(path, assumed))
    write_report(_report(tally, how), out)
    if tally.broken and not exit_zero:
        sys.exit(BROKEN)


def _of_file(path: Path, assumed: Assumptions) -> Tally:
    from pulsarium.capture.check.checker import tally_of
    from pulsarium.capture.lint.checker import all_opened
    from pulsarium.cli.lab.capture.file import records_of

    whole = all_opened(record for _, record in records_of(path))
    tally = tally_of(records_of(path), replace(assumed, whole=whole))
    tally.verdicts = [replace(each, capture=str(path)) for each in tally.verdicts]
    return tally


def _live(lab: LabOf, assumed: Assumptions) -> Tally:
    """Check the frames of a running broker until Ctrl-C. Connections that are open already have unknown histories."""
    from pulsarium.capture.check.checker import HistoryChecker
    from pulsarium.cli.lab.capture.file import records_now

    checker = HistoryChecker(replace(assumed, whole=False))
    source = records_now(lab)
    with closing_at_ctrl_c(), closing(source), suppress(KeyboardInterrupt):  # type: ignore[type-var]
        for number, record in source:
            checker.feed(number, record)
    return checker.end()


def _report(tally: Tally, how: str) -> str:
    if how == "json":
        return json.dumps(tally.to_json(), indent=2)
    if how == "text":
        return "\n".join(_lines(tally))
    from pulsarium.broker.config.version import VERSION
    from pulsarium.capture.check.promises import PROMISES
    from pulsarium.capture.reports import junit, sarif

    problems = [each.problem for each in tally.verdicts]
    if how == "sarif":
        return sarif("check", VERSION, PROMISES, problems)
    unjudged = {name: _unjudged(tally, name) for name in PROMISES if not tally.kept[name]}
    return junit("check", PROMISES, problems, unjudged)


def _unjudged(tally: Tally, promise: str) -> str:
    return "; ".join(f"{reason}: {count}" for reason, count in tally.doubts(promise)) or "the history has no case"


def _lines(tally: Tally) -> Iterator[str]:
    from pulsarium.capture.check.promises import PROMISES

    for verdict in tally.verdicts:
        yield str(verdict)
    if tally.verdicts:
        yield ""
    for name, promise in PROMISES.items():
        broken = tally.broken[name]
        yield f"{'BROKEN' if broken else 'ok':<6}  {name:<32}  kept {tally.kept[name]}, broken {broken}"
        for reason, count in tally.doubts(name):
            yield f"        not proven {count}: {reason}"
        if broken:
            yield f"        {promise.demands} [{promise.reference}]"
            yield f"        {promise.mend}"


def _promises() -> Iterator[str]:
    from pulsarium.capture.check.promises import PROMISES

    for each in PROMISES.values():
        yield f"{each.name} ({each.severity.value})\n  {each.demands}\n  Mend: {each.mend}\n  From: {each.reference}"
