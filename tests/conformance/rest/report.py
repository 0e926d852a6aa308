"""What playing the recorded calls found, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import median

from .comparison import difference
from .excuses import Excuse, Excuses
from .player import Played
from .recording import Call, Level


@dataclass(frozen=True)
class Verdict:
    """A call and why its answer is not the recorded one; `why` is empty when it is."""

    played: Played
    why: str

    @property
    def call(self) -> Call:
        return self.played.call


@dataclass(frozen=True)
class Findings:
    """`verdicts` of the calls that count: those that all recordings of Pulsar answer alike."""

    verdicts: Sequence[Verdict]
    absent: Sequence[Call]
    seconds: float

    @property
    def unequal(self) -> list[Verdict]:
        return [each for each in self.verdicts if each.why]

    @property
    def share(self) -> float:
        """Percent of equal calls."""
        return 100 * (1 - len(self.unequal) / max(1, len(self.verdicts)))


def judge(played: Sequence[Played], absent: Sequence[Call], level: Level) -> Findings:
    """Compare what was played. A call whose recordings agree in its shape only counts with its shape."""
    verdicts = []
    for each in played:
        agreed: Level | None = "status" if each.call.agreed("status") else None
        for step in ("shape", "values", "texts"):
            if agreed and each.call.agreed(step):
                agreed = step
            if step == level:
                break
        if agreed and (agreed != "status" or each.call.varies == "shape"):
            verdicts.append(Verdict(each, difference(each.call, each.answer, agreed)))
    return Findings(verdicts, absent, median(each.seconds for each in played) if played else 0.0)


def unexcused(findings: Findings, excuses: Excuses) -> list[str]:
    """What differs and is not listed, or more often than listed, and absent routes that no reason is given for."""
    seen = _by_excuse(findings, excuses)
    said = [line(verdict, None) for verdict in findings.unequal if excuses.of(verdict.call) is None]
    said += [
        f"differs.toml: {seen[each]} calls like {each.pattern} are unequal, more than {each.calls}"
        for each in excuses.differs
        if seen[each] > each.calls
    ]
    return said + [
        f"no reason is given for the absent {call}" for call in findings.absent if not excuses.why_absent(call)
    ]


def idle(findings: Findings, excuses: Excuses) -> list[str]:
    """What is listed more often than it differs."""
    seen = _by_excuse(findings, excuses)
    return [
        f"differs.toml: only {seen[each]} calls like {each.pattern} are unequal now, not {each.calls}"
        for each in excuses.differs
        if seen[each] < each.calls
    ]


def _by_excuse(findings: Findings, excuses: Excuses) -> Counter[Excuse]:
    return Counter(excuse for verdict in findings.unequal if (excuse := excuses.of(verdict.call)))


def table(findings: Findings, resources: Collection[str]) -> str:
    """A line a resource: `1040 of 1045  persistent`."""
    total = Counter(each.call.resource for each in findings.verdicts)
    unequal = Counter(each.call.resource for each in findings.unequal)
    absent = Counter(call.resource for call in findings.absent)
    lines = []
    for name in sorted(total.keys() | absent.keys()):
        if not resources or name in resources:
            text = f"{total[name] - unequal[name]:5} of {total[name]:5}  {name}"
            lines.append(text + (f"  ({absent[name]} calls of absent routes)" if absent[name] else ""))
    return "\n".join(lines)


def line(verdict: Verdict, excuse: Excuse | None) -> str:
    return f"{verdict.call}: {verdict.why}" + (f"  (known: {excuse.reason})" if excuse else "")


def absences(findings: Findings, excuses: Excuses) -> str:
    """The routes that were left out, by the reason."""
    reasons = Counter(excuses.why_absent(call) or "NO REASON GIVEN" for call in findings.absent)
    return "\n".join(f"{count:5} calls left out: {reason}" for reason, count in sorted(reasons.items()))


def summary(findings: Findings, wrong: Sequence[str], took: float) -> str:
    equal = len(findings.verdicts) - len(findings.unequal)
    text = f"{equal} of {len(findings.verdicts)} calls equal ({findings.share:.1f}%), "
    text += f"half of them within {1000 * findings.seconds:.1f} ms, {took:.0f} s"
    return text + (f"; NOT AS LISTED: {len(wrong)}" if wrong else "")
