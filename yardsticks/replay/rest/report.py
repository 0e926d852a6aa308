"""Report the result of playing recorded calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import median

from .comparison import differences
from .excuses import Excuses
from .player import Played
from .recording import Call


@dataclass(frozen=True)
class Verdict:
    """A call, and the differences of its answer from the recorded one."""

    played: Played
    differences: Sequence[str]

    @property
    def call(self) -> Call:
        return self.played.call


@dataclass(frozen=True)
class Findings:
    """Results of a replay. `verdicts` has the calls whose status is the same in all recordings of Pulsar."""

    verdicts: Sequence[Verdict]
    absent: Sequence[Call]
    seconds: float

    @property
    def unequal(self) -> list[Verdict]:
        return [each for each in self.verdicts if each.differences]

    @property
    def differences(self) -> list[str]:
        """Name each field that differs: `GET /path [note]: field: ours, Pulsar theirs`."""
        return [line for verdict in self.verdicts for line in lines(verdict)]

    @property
    def share(self) -> float:
        """Return the percentage of equal calls."""
        return 100 * (1 - len(self.unequal) / max(1, len(self.verdicts)))


def judge(played: Sequence[Played], absent: Sequence[Call]) -> Findings:
    """Compare what was played."""
    verdicts = [Verdict(each, differences(each.call, each.answer)) for each in played if each.call.counts]
    return Findings(verdicts, absent, median(each.seconds for each in played) if played else 0.0)


def lines(verdict: Verdict) -> list[str]:
    return [f"{verdict.call}: {difference}" for difference in verdict.differences]


def unexcused(findings: Findings, excuses: Excuses) -> list[str]:
    """Return the differences that are not listed, and the absent routes without a reason."""
    return excuses.unlisted(findings.differences) + [
        f"no reason is given for the absent {call}" for call in findings.absent if not excuses.why_absent(call)
    ]


def table(findings: Findings, resources: Collection[str]) -> str:
    """Write a line a resource: `1040 of 1045  persistent`."""
    total = Counter(each.call.resource for each in findings.verdicts)
    unequal = Counter(each.call.resource for each in findings.unequal)
    absent = Counter(call.resource for call in findings.absent)
    lines = []
    for name in sorted(total.keys() | absent.keys()):
        if not resources or name in resources:
            text = f"{total[name] - unequal[name]:5} of {total[name]:5}  {name}"
            lines.append(text + (f"  ({absent[name]} calls of absent routes)" if absent[name] else ""))
    return "\n".join(lines)


def absences(findings: Findings, excuses: Excuses) -> str:
    """Count the calls that were left out, by the reason."""
    reasons = Counter(excuses.why_absent(call) or "NO REASON GIVEN" for call in findings.absent)
    return "\n".join(f"{count:5} calls left out: {reason}" for reason, count in sorted(reasons.items()))


def summary(findings: Findings, wrong: Sequence[str], took: float) -> str:
    equal = len(findings.verdicts) - len(findings.unequal)
    text = f"{equal} of {len(findings.verdicts)} calls equal ({findings.share:.1f}%), "
    text += f"half of them within {1000 * findings.seconds:.1f} ms, {took:.0f} s"
    return text + (f"; NOT AS LISTED: {len(wrong)}" if wrong else "")
