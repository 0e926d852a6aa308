"""Texts about a finding: the least script, why Pulsar may do so, and how to run the script again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from pulsarium.broker.lab.explore.kinds import KINDS, ONLY_BROKER
from pulsarium.broker.lab.explore.script import Decision, Script
from pulsarium.broker.lab.explore.search import ExploredFailure, Search
from pulsarium.broker.lab.faults.actions import Answer, Close
from pulsarium.capture.lines import CaptureLines
from pulsarium.capture.lint.checker import Walk


def about(finding: ExploredFailure) -> Iterator[str]:
    """Yield what failed, how surely, and the least script with its reasons."""
    yield f"failed: {finding.outcome.failure}"
    if finding.repeats:
        seeded = f" of the seed {finding.seed}" if finding.seed else ""
        yield (
            f"repeated: {finding.repeated} of {finding.repeats} more runs{seeded} failed, "
            f"{finding.same} with the same decisions"
        )
    if not finding.script:
        yield "least script: none. The run fails also when the broker chooses nothing."
        return
    yield f"{'least script' if finding.repeats else 'script'}: {_count(len(finding.script), 'decision')}"
    for decision in finding.script:
        kind = KINDS[decision.kind]
        yield f"  {decision}"
        yield f"      {kind.does}"
        yield f"      Legal: {kind.legal}"


def frames(finding: ExploredFailure, around: int = 8) -> Iterator[str]:
    """Yield the decoded frames around the last decision of the failing run."""
    records = finding.outcome.records
    marked = [number for number, record in enumerate(records) if record.note.get("legal")]
    last = marked[-1] if marked else len(records) - 1
    lines, walk = CaptureLines(), Walk()
    for number, record in enumerate(records[: last + around + 1]):
        line = lines.of(number, record, walk.feed(record)[1])
        if number >= last - around:
            yield line


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def pytest_mark(script: Script) -> str:
    """Return the mark that repeats a script in pytest."""
    inside = ", ".join(f'"{decision}"' for decision in script)
    return f"@pytest.mark.pulsar(explore=[{inside}])"


def explore_command(script: Script, command: Sequence[str], options: Sequence[str] = ()) -> str:
    """Return the command that repeats a script. `options` say what the command runs in front of."""
    chosen = [word for decision in script for word in ("--decide", str(decision))]
    return shlex.join(["pulsarium", "explore", *options, *chosen, "--", *command])


def fault_commands(script: Script) -> Sequence[str]:
    """Return `pulsarium fault add` lines that do the same, or none when a decision is more than a plain fault."""
    lines = [_fault_command(decision) for decision in script]
    return [line for line in lines if line] if all(lines) else []


def _fault_command(decision: Decision) -> str:
    kind = KINDS[decision.kind]
    if isinstance(kind.action, Answer):
        words = ["answer", "--error", str(kind.action.error)]
    elif isinstance(kind.action, Close):
        words = ["close"]
    else:
        return ""
    if decision.command in kind.after:
        words.append("--after-work")
    if decision.at:
        words += ["--skip", str(decision.at)]
    return shlex.join(["pulsarium", "fault", "add", decision.command, *words])


def summary(search: Search) -> Iterator[str]:
    """Yield the number of runs, and the kinds that were chosen, with the coverage of their places."""
    coverage = search.coverage
    yield f"{_count(search.done, 'run')}, {coverage.covered} of {_count(coverage.places, 'place')} covered"
    for kind, (times, covered, places) in sorted(coverage.by_kind().items()):
        yield f"  {kind:<20} chosen {times:>5} times, at {covered} of {_count(places, 'place')}"


def totals(search: Search) -> Iterator[str]:
    """Yield the number of distinct failures, and of the failed runs that show no other one."""
    yield ""
    yield _count(len(search.findings), "distinct failure")
    if search.repeated:
        yield f"{_count(search.repeated, 'more run')} failed, but not without the decisions of these scripts"


def left_out() -> str:
    """Return which kinds an exploration through a proxy leaves out."""
    return f"Left out, because only a broker of Pulsarium can make them: {', '.join(ONLY_BROKER)}."


def listed() -> Iterator[str]:
    """Yield the table of kinds, for people."""
    for kind in KINDS.values():
        yield f"{kind.name} (rate {kind.rate:g}{', not with --proxy' if kind.only_broker else ''})"
        yield f"  {kind.does}"
        yield f"  Legal: {kind.legal}"
        at = [*kind.before, *(f"{command} (after the work)" for command in kind.after)]
        yield f"  At: {', '.join(at) if at else 'the start of the broker'}"
        if kind.values:
            yield f"  Value: {' or '.join(f'{value:g}' for value in kind.values)} {kind.unit}"
