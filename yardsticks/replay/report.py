"""Report a replay: a line for each scenario, the differences on request, and whether the replay counts as passed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pulsarium.conformance.recordings import replay
from pulsarium.conformance.recordings.replay import Verdict

from .expectations import Known


def line(verdict: Verdict, known: Mapping[str, Known]) -> str:
    """Return a line such as `equal    12 of 12  001-connect-versions`, with the remark of a known difference."""
    text = verdict.line
    if excuse := known.get(verdict.scenario.name):
        text += "  (equal now: take it off the list)" if verdict.equal else f"  (known: {excuse.reason})"
        if unlisted := excuse.unlisted(verdict.answers):
            text += f"  NOT LISTED: {len(unlisted)} of the answers that differ"
    return text + ("  (played again, alone)" if verdict.plays > 1 else "")


def details(verdict: Verdict) -> str:
    """Return the trouble and the differences as text."""
    return "\n".join(text for text in (verdict.trouble, verdict.words, *verdict.answers) if text)


def good(verdict: Verdict, known: Mapping[str, Known]) -> bool:
    """Return whether all answers are equal, or each difference is a known one of the scenario."""
    excuse = known.get(verdict.scenario.name)
    return verdict.equal or (excuse is not None and not verdict.trouble and not excuse.unlisted(verdict.answers))


def failures(verdicts: Sequence[Verdict], known: Mapping[str, Known]) -> list[Verdict]:
    """Return the verdicts that are not good."""
    return [v for v in verdicts if not good(v, known)]


def summary(verdicts: Sequence[Verdict], failed: Sequence[Verdict], seconds: float) -> str:
    text = f"{replay.summary(verdicts)}, {seconds:.0f} s"
    if again := second_plays(verdicts):
        text += f"; {again}"
    return text + (f"; NOT AS REQUIRED: {', '.join(v.scenario.name for v in failed)}" if failed else "")


def second_plays(verdicts: Sequence[Verdict]) -> str:
    """Return which scenarios had to be played again, in words, or an empty string."""
    names = [verdict.scenario.name for verdict in verdicts if verdict.plays > 1]
    return f"played twice: {', '.join(names)}" if names else ""
