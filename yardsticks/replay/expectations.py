"""The answers in which our broker may differ from a recording, and the scenarios that everyday tests replay."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pulsarium.conformance.recordings.catalogue import CatalogueError, Recorded, numbers, recorded
from pulsarium.conformance.recordings.releases import PULSAR_4, Release

FOLDER = Path(__file__).with_name("expected")
DIFFERENCES = Path(__file__).parents[2] / "docs" / "differences.md"


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
class Expectations:
    """The recorded scenarios of a release, those that are `quick`, and the known differences."""

    scenarios: tuple[Recorded, ...]
    quick: frozenset[int]
    differs: tuple[Known, ...]

    def known(self, behaviour: str) -> Mapping[str, Known]:
        """Return how each scenario may differ when a broker of that profile plays it, by its name."""
        found: dict[str, Known] = {}
        for each in self.differs:
            if each.behaviour in (None, behaviour):
                found[each.name] = found[each.name].and_also(each) if each.name in found else each
        return found

    def of_profile(self, profile: str) -> list[Recorded]:
        return [each for each in self.scenarios if each.profile == profile]


def load(release: Release = PULSAR_4) -> Expectations:
    """Read what is expected of a release. Raise `CatalogueError` for a scenario that was never recorded."""
    table = tomllib.loads((FOLDER / f"{release.name}.toml").read_text())
    differs = tuple(
        Known(d["scenario"], tuple(d["answers"]), d["reason"], d.get("profile")) for d in table.get("differs", ())
    )
    if release.base:  # what the release answers as its base did may differ as it does there
        inherited = [each for each in load(release.base).differs if release.has(int(each.name[:3]))]
        differs += tuple(each for each in inherited if release.recording(each.name).parent != release.folder)
    expected = Expectations(tuple(recorded(release)), numbers(table["quick"]["scenarios"]), differs)
    strangers = {str(n) for n in expected.quick - {each.number for each in expected.scenarios}}
    if strangers := strangers | {each.name for each in differs} - {each.name for each in expected.scenarios}:
        raise CatalogueError(f"{release.name}.toml names what was never recorded: {', '.join(sorted(strangers))}")
    return expected


def undocumented(differs: Iterable[Known], page: str) -> list[str]:
    """Return the excused scenarios that `page` (docs/differences.md) lacks, or that it gives another reason for."""
    text = " ".join(page.split())
    return [k.name for k in differs if k.name not in text or " ".join(k.reason.split()) not in text]
