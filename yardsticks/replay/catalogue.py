"""The recordings to replay, and the list of scenarios that must be equal or are known to differ."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from yardsticks.recorder.releases import TRANSCRIPTS

DIFFERENCES = TRANSCRIPTS.parent.parent / "docs" / "differences.md"


class CatalogueError(ValueError):
    """The list or a request names a scenario that does not exist. The text is for the user."""


@dataclass(frozen=True)
class Scenario:
    """A recording. `seconds` is the time that the recorded broker took, without preparations."""

    number: int
    name: str
    profile: str
    purpose: str
    seconds: float


@dataclass(frozen=True)
class Known:
    """A scenario that is known to differ, for `reason`, in these `answers` and no others.

    An answer has its name from compare.py: `- [stream] answer` for an answer of Pulsar that may be missing,
    `+ [stream] answer` for an additional one, with all fields. The last field limits the difference to one profile.
    """

    name: str
    answers: tuple[str, ...]
    reason: str
    behaviour: str | None = None

    def and_also(self, other: Known) -> Known:
        """Return the answers and the reasons of both, for one scenario."""
        return replace(self, answers=self.answers + other.answers, reason=f"{self.reason}; {other.reason}")

    def unlisted(self, differences: Iterable[str]) -> list[str]:
        """Return the differences that are not listed, or occur more often than they are listed."""
        return list((Counter(differences) - Counter(self.answers)).elements())


@dataclass(frozen=True)
class Catalogue:
    """The scenarios and their known differences. `required` maps an issue to its scenario numbers."""

    scenarios: tuple[Scenario, ...]
    required: Mapping[int, frozenset[int]]
    quick: frozenset[int]
    differs: tuple[Known, ...]

    def known(self, behaviour: str) -> Mapping[str, Known]:
        """Return how each scenario may differ when a broker of that profile plays it, by its name."""
        found: dict[str, Known] = {}
        for each in self.differs:
            if each.behaviour in (None, behaviour):
                found[each.name] = found[each.name].and_also(each) if each.name in found else each
        return found

    def all_required(self) -> frozenset[int]:
        return frozenset().union(*self.required.values())

    def of_profile(self, profile: str) -> list[Scenario]:
        return [s for s in self.scenarios if s.profile == profile]

    def named(self, words: Iterable[str], profile: str) -> list[Scenario]:
        """Return the scenarios that a user means by `37`, `025-033` or a part of a name.

        Raise `CatalogueError` for a word that fits no scenario.
        """
        chosen: dict[int, Scenario] = {}
        for word in words:
            found = [s for s in self.of_profile(profile) if _fits(word, s)]
            if not found:
                raise CatalogueError(f"no scenario of profile {profile!r} fits {word!r} (--list shows them all)")
            chosen.update((s.number, s) for s in found)
        return [chosen[n] for n in sorted(chosen)]


def _fits(word: str, scenario: Scenario) -> bool:
    if re.fullmatch(r"\d+(-\d+)?", word):
        return scenario.number in numbers([word])
    return word in scenario.name


def numbers(ranges: Iterable[str]) -> frozenset[int]:
    """Return the numbers in ranges: 1, 2, 3 and 7 for `["001-003", "7"]`. Raise `CatalogueError` for other texts."""
    out: set[int] = set()
    for text in ranges:
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
        if match is None:
            raise CatalogueError(f"{text!r} is neither a number nor a range like 025-033")
        out.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return frozenset(out)


def load(folder: Path = TRANSCRIPTS) -> Catalogue:
    """Read the recordings and scenarios.toml. Raise `CatalogueError` when they contradict each other."""
    scenarios = tuple(_recording(path) for path in sorted(folder.glob("[0-9]*.jsonl")))
    table = tomllib.loads((folder / "scenarios.toml").read_text())
    required = {int(issue): numbers(ranges) for issue, ranges in table["required"].items()}
    differs = tuple(
        Known(d["scenario"], tuple(d["answers"]), d["reason"], d.get("profile")) for d in table.get("differs", ())
    )
    catalogue = Catalogue(scenarios, required, numbers(table["quick"]["scenarios"]), differs)
    recorded = {s.number for s in scenarios}
    if strangers := (catalogue.all_required() | catalogue.quick) - recorded:
        raise CatalogueError(f"scenarios.toml asks for what was never recorded: {sorted(strangers)}")
    if unknown := {each.name for each in differs} - {s.name for s in scenarios}:
        raise CatalogueError(f"scenarios.toml excuses what was never recorded: {sorted(unknown)}")
    return catalogue


def _recording(path: Path) -> Scenario:
    lines = path.read_text().splitlines()
    head = json.loads(lines[0])
    return Scenario(
        number=int(path.name[:3]),
        name=path.stem,
        profile=head["config"]["profile"],
        purpose=head["purpose"],
        seconds=json.loads(lines[-1])["t"] / 1000,
    )


def undocumented(differs: Iterable[Known], page: str) -> list[str]:
    """Return the excused scenarios that `page` (docs/differences.md) lacks, or that it gives another reason for."""
    text = " ".join(page.split())
    return [k.name for k in differs if k.name not in text or " ".join(k.reason.split()) not in text]
