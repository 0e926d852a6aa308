"""`pulsarium lint`: check captures and live connections against the rules of the protocol."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pulsarium.cli.grouped import GroupedCommand
from pulsarium.cli.lab.broker import LabOf, of_broker
from pulsarium.cli.lab.reports import BROKEN, files_of, judging, write_report
from pulsarium.cli.refusal import RequestRefused, RunRefused

if TYPE_CHECKING:
    from pulsarium.capture.lint.checker import BrokenRule


@click.command(cls=GroupedCommand)
@click.argument("captures", nargs=-1, metavar="CAPTURE...", type=click.Path(exists=True, path_type=Path))
@click.option("--live", is_flag=True, help="Print the findings of a running broker.")
@click.option(
    "--start", "action", flag_value="start", help="Check all connections that are opened from now on (with --live)."
)
@click.option("--stop", "action", flag_value="stop", help="Stop checking, and print the findings (with --live).")
@click.option("--clear", "action", flag_value="clear", help="Print the findings, and clear them (with --live).")
@click.option("--rules", is_flag=True, help="List the rules.")
@click.option("--side", type=click.Choice(["client", "broker"]), help="Show only the mistakes of this side.")
@click.option(
    "--format", "how", type=click.Choice(["text", "json", "html", "sarif", "junit"]), default="text", show_default=True
)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write the report to FILE."
)
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even when a rule was broken.")
@of_broker
def lint(
    lab: LabOf,
    captures: Sequence[Path],
    live: bool,
    action: str | None,
    rules: bool,
    side: str | None,
    how: str,
    out: Path | None,
    exit_zero: bool,
) -> None:
    """List the protocol rules that were broken, each with its frame, its source in Pulsar, and how to mend the client.

    CAPTURE is a file of pulsarium capture or serve --capture, or a folder of such files. The exit code is 1 when a rule
    was broken, and 2 when a capture cannot be read or the broker does not answer.

    \b
      pulsarium lint run.pulscap
      pulsarium lint captures/ --format html --out report.html
      pulsarium lint --rules

    \b
    On a running broker:
      pulsarium lint --live --start
      ... run the client ...
      pulsarium lint --live --stop
    """
    if rules + live + bool(captures) != 1:
        raise RequestRefused("lint: pass a CAPTURE, or --live, or --rules")
    if action and not live:
        raise RequestRefused(f"lint: --{action} needs --live")
    if rules and how in ("sarif", "junit"):
        raise RequestRefused(f"lint: --rules has no --format {how}; pass text, json or html")
    if rules:
        write_report(_rules(how), out)
        return
    with judging():
        if action == "start":
            lab.call("POST", "violations/start")
            click.echo("The broker checks all connections that are opened from now on.")
            return
        if live:
            found, counts = _of_broker(lab, action)
        else:
            found = [each for path in files_of(captures) for each in _of_file(path)]
            counts = Counter(each.rule for each in found)
    if side is not None:
        found = [each for each in found if each.side == side]
        counts = Counter({name: count for name, count in counts.items() if any(each.rule == name for each in found)})
    write_report(_report(found, counts, how), out)
    if counts and not exit_zero:
        sys.exit(BROKEN)


def _of_file(path: Path) -> Iterator[BrokenRule]:
    from pulsarium.capture.lint.checker import Walk, all_opened, finding_of
    from pulsarium.cli.lab.capture.file import records_of

    walk = Walk(judging=True, whole=all_opened(record for _, record in records_of(path)))
    for _, record in records_of(path):
        checker, seen = walk.feed(record)
        for violation in seen.violations:
            yield finding_of(violation, checker.conversation, str(path))


def _of_broker(lab: LabOf, action: str | None) -> tuple[list[BrokenRule], Counter[str]]:
    from pulsarium.capture.lint.checker import BrokenRule

    said = lab.call("GET", "violations")
    if not said["running"] and not said["counts"]:
        raise RunRefused("the broker checks no connections yet: run pulsarium lint --live --start first")
    if action == "stop":
        said = lab.call("POST", "violations/stop")
    elif action == "clear":
        lab.call("DELETE", "violations")
    return [BrokenRule.from_json(each) for each in said["violations"]], Counter(said["counts"])


def _report(found: list[BrokenRule], counts: Counter[str], how: str) -> str:
    if how == "json":
        shown = {"counts": dict(counts), "violations": [each.to_json() for each in found]}
        return json.dumps(shown, indent=2)
    if how == "html":
        from pulsarium.cli.lab.lint.page import page

        return page(found, counts)
    if how in ("sarif", "junit"):
        return _for_tools(found, how)
    return "\n".join(_lines(found, counts))


def _for_tools(found: list[BrokenRule], how: str) -> str:
    from pulsarium.broker.config.version import VERSION
    from pulsarium.capture.lint.checker import ALL_RULES
    from pulsarium.capture.reports import Problem, junit, sarif

    problems = [Problem(each.rule, str(each), each.capture, ((each.connection, each.frame),)) for each in found]
    return junit("lint", ALL_RULES, problems) if how == "junit" else sarif("lint", VERSION, ALL_RULES, problems)


def _lines(found: list[BrokenRule], counts: Counter[str]) -> Iterator[str]:
    from pulsarium.capture.lint.checker import ALL_RULES

    for each in found:
        yield str(each)
    if found:
        yield ""
    for name, count in counts.most_common():
        rule = ALL_RULES[name]
        yield f"{count} x {name}: {rule.demands} [{rule.reference}]"
        yield f"    {rule.mend}"
    if not counts:
        yield "No rule was broken."


def _rules(how: str) -> str:
    from pulsarium.capture.lint.checker import ALL_RULES, rule_to_json

    known = [rule_to_json(each) for each in ALL_RULES.values()]
    if how == "json":
        return json.dumps(known, indent=2)
    if how == "html":
        from pulsarium.cli.lab.lint.page import rules_page

        return rules_page()
    return "\n\n".join(_rule_text(each) for each in known)


def _rule_text(rule: dict[str, Any]) -> str:
    return (
        f"{rule['rule']} ({rule['severity']}, {rule['about']})\n  {rule['demands']}\n  Mend: {rule['mend']}\n"
        f"  From: {rule['reference']}"
    )
