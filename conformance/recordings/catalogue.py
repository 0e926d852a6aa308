"""Find recorded scenarios: those of a release, and those that a user names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pulsarium.conformance.recordings.releases import Release


class CatalogueError(ValueError):
    """A request names a scenario that does not exist. The text is for the user."""


@dataclass(frozen=True)
class Recorded:
    """A recorded scenario. `seconds` is the time that the recorded broker took, without preparations."""

    number: int
    name: str
    profile: str
    purpose: str
    seconds: float


def recorded(release: Release, profile: str | None = None) -> Sequence[Recorded]:
    """Return the recorded scenarios of a release, all or those of a profile."""
    found = [_recorded(path) for path in release.paths().values()]
    return [each for each in found if profile in (None, each.profile)]


def _recorded(path: Path) -> Recorded:
    lines = path.read_text().splitlines()
    head = json.loads(lines[0])
    return Recorded(
        number=int(path.name[:3]),
        name=path.stem,
        profile=head["config"]["profile"],
        purpose=head["purpose"],
        seconds=json.loads(lines[-1])["t"] / 1000,
    )


def named(scenarios: Iterable[Recorded], words: Iterable[str]) -> Sequence[Recorded]:
    """Return the scenarios that a user means by `37`, `025-033` or a part of a name; all without a word.

    Raise `CatalogueError` for a word that fits no scenario.
    """
    scenarios, chosen = list(scenarios), dict[int, Recorded]()
    for word in words:
        found = [each for each in scenarios if _fits(word, each)]
        if not found:
            raise CatalogueError(f"no recorded scenario fits {word!r}")
        chosen.update((each.number, each) for each in found)
    return [chosen[number] for number in sorted(chosen)] if chosen else scenarios


def _fits(word: str, scenario: Recorded) -> bool:
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
