"""Known differences (differs.toml): each answer, with its fields and values, and the reason."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pulsarium.broker.web.http.pulsar_routes import absent_routes, anonymous
from pulsarium.broker.web.routes import all_routes

from .recording import Call

FILE = Path(__file__).with_name("differs.toml")


@dataclass(frozen=True)
class Excuse:
    """`answers` that differ for `reason` with exactly these values. Values `like` these patterns change by chance.

    The report names an answer `GET /path [note]: field: ours, Pulsar theirs`. With `ours`, the reason is a difference
    of this broker, which docs/differences.md lists. Otherwise the replay differs, for example by another client.
    """

    reason: str
    answers: tuple[str, ...] = ()
    like: tuple[str, ...] = ()
    ours: bool = True


@dataclass(frozen=True)
class Absence:
    """Routes of Pulsar that this broker lacks, as a pattern of `METHOD path`, and the reason."""

    pattern: str
    reason: str


@dataclass(frozen=True)
class Excuses:
    """The differences that are excused, and the calls that are absent."""

    differs: Sequence[Excuse]
    absent: Sequence[Absence]

    def unlisted(self, differences: Iterable[str]) -> list[str]:
        """Return the differences that are not listed, or occur more often than they are listed."""
        by_chance = [re.compile(pattern) for each in self.differs for pattern in each.like]
        certain = [said for said in differences if not any(pattern.fullmatch(said) for pattern in by_chance)]
        return list((Counter(certain) - self._listed()).elements())

    def idle(self, differences: Iterable[str]) -> list[str]:
        """Return the listed differences that did not occur."""
        return list((self._listed() - Counter(differences)).elements())

    def reason_of(self, difference: str) -> str | None:
        """Return the reason for a listed difference, or None."""
        for each in self.differs:
            if difference in each.answers or any(re.fullmatch(pattern, difference) for pattern in each.like):
                return each.reason
        return None

    def _listed(self) -> Counter[str]:
        return Counter(answer for each in self.differs for answer in each.answers)

    def why_absent(self, call: Call) -> str | None:
        route = f"{call.method} {call.route}"
        return next((each.reason for each in self.absent if re.search(each.pattern, route)), None)


def load(path: Path = FILE) -> Excuses:
    table = tomllib.loads(path.read_text())
    return Excuses(
        [*_excuses(table, "differs", ours=True), *_excuses(table, "replayed", ours=False)],
        [Absence(each["routes_like"], each["reason"]) for each in table.get("absent", ())],
    )


def _excuses(table: Mapping[str, Any], kind: str, *, ours: bool) -> Iterator[Excuse]:
    for each in table.get(kind, ()):
        yield Excuse(each["reason"], tuple(each.get("answers", ())), tuple(each.get("like", ())), ours)


def absent_calls(calls: Sequence[Call]) -> list[Call]:
    """Return the calls of routes that Pulsar has and this broker has not."""
    absent = {(route.method, anonymous(route.path)) for route in absent_routes({route for route, _ in all_routes()})}
    return [call for call in calls if (call.method, anonymous(call.route)) in absent]


def undocumented(excuses: Excuses, page: str) -> list[str]:
    """Return the reasons of this broker whose words do not stand in `page` (docs/differences.md)."""
    text = " ".join(page.split())
    reasons = {each.reason for each in excuses.differs if each.ours} | {each.reason for each in excuses.absent}
    return sorted(reason for reason in reasons if " ".join(reason.split()) not in text)
