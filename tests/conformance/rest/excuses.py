"""What is known to differ (differs.toml): by route, how many calls, and why."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pulsarium.broker.admin.http.absent import absent_routes, anonymous
from pulsarium.broker.admin.routes import all_routes

from .recording import Call

FILE = Path(__file__).with_name("differs.toml")


@dataclass(frozen=True)
class Excuse:
    """At most `calls` of those whose `METHOD url [note]` holds the pattern are unequal, for `reason`."""

    pattern: str
    calls: int
    reason: str

    def fits(self, call: Call) -> bool:
        return re.search(self.pattern, str(call)) is not None


@dataclass(frozen=True)
class Absence:
    """Routes that Pulsar has and this broker has not, by a pattern of `METHOD path`, and why."""

    pattern: str
    reason: str


@dataclass(frozen=True)
class Excuses:
    differs: Sequence[Excuse]
    absent: Sequence[Absence]

    def of(self, call: Call) -> Excuse | None:
        return next((each for each in self.differs if each.fits(call)), None)

    def why_absent(self, call: Call) -> str | None:
        route = f"{call.method} {call.route}"
        return next((each.reason for each in self.absent if re.search(each.pattern, route)), None)


def load(path: Path = FILE) -> Excuses:
    table = tomllib.loads(path.read_text())
    return Excuses(
        [Excuse(each["calls_like"], each["unequal"], each["reason"]) for each in table.get("differs", ())],
        [Absence(each["routes_like"], each["reason"]) for each in table.get("absent", ())],
    )


def absent_calls(calls: Sequence[Call]) -> list[Call]:
    """Those of routes that Pulsar has and this broker has not."""
    absent = {(route.method, anonymous(route.path)) for route in absent_routes({route for route, _ in all_routes()})}
    return [call for call in calls if (call.method, anonymous(call.route)) in absent]


def undocumented(excuses: Excuses, page: str) -> list[str]:
    """The reasons whose words do not stand in `page` (docs/differences.md)."""
    text = " ".join(page.split())
    reasons = {each.reason for each in excuses.differs} | {each.reason for each in excuses.absent}
    return sorted(reason for reason in reasons if " ".join(reason.split()) not in text)
