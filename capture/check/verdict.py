"""Verdicts on promises, and their counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from pulsarium.capture.check.history import FramePlace, TopicHistory
from pulsarium.capture.check.promises import PROMISES
from pulsarium.capture.lint.rule import Requirement
from pulsarium.capture.reports import Problem

_MOST_VERDICTS = 10_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """A broken promise.

    frames: the frames that show it, the decisive one last. capture: file of the history, or "".
    """

    promise: str
    detail: str
    topic: str
    subscription: str
    frames: tuple[FramePlace, ...]
    capture: str = ""

    @property
    def requirement(self) -> Requirement:
        return PROMISES[self.promise]

    def __str__(self) -> str:
        where = f"{self.topic}, subscription {self.subscription!r}" if self.subscription else self.topic
        head = f"{self.capture}: " if self.capture else ""
        return f"{head}{self.promise}: {self.detail} ({where}): {', then '.join(map(str, self.frames))}"

    @property
    def problem(self) -> Problem:
        """Return the verdict for reports."""
        return Problem(self.promise, str(self), self.capture, tuple((each[1], each[2]) for each in self.frames))

    def to_json(self) -> dict[str, Any]:
        """Return the verdict with the texts of its promise."""
        rule = self.requirement
        frames = [each._asdict() for each in self.frames]
        return asdict(self) | {
            "frames": frames,
            "demands": rule.demands,
            "reference": rule.reference,
            "mend": rule.mend,
        }


class Tally:
    """Counts of a history: promises kept, broken, and not proven either way, each with its reason."""

    def __init__(self) -> None:
        self.kept: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()
        self.unproven: Counter[tuple[str, str]] = Counter()
        """Counts by promise and reason."""
        self.verdicts: list[Verdict] = []
        """The first broken promises. `broken` counts all."""

    def keep(self, promise: Requirement) -> None:
        self.kept[promise.name] += 1

    def doubt(self, promise: Requirement, reason: str) -> None:
        """Count a promise that the capture cannot prove kept or broken."""
        self.unproven[promise.name, reason] += 1

    def breach(
        self, promise: Requirement, detail: str, topic: TopicHistory, subscription: str, *frames: FramePlace
    ) -> None:
        """Add a broken promise, or a doubt when a fault of the lab touched the topic."""
        if topic.faulted:
            self.doubt(promise, "a fault of the lab changed frames of the topic")
            return
        self.broken[promise.name] += 1
        if len(self.verdicts) < _MOST_VERDICTS:
            self.verdicts.append(Verdict(promise.name, detail, topic.name, subscription, frames))

    def doubts(self, promise: str) -> Iterator[tuple[str, int]]:
        """Yield the reasons for which a promise is not proven, with their counts."""
        for (name, reason), count in self.unproven.items():
            if name == promise:
                yield reason, count

    def add(self, other: Tally) -> None:
        """Add the counts and verdicts of another history."""
        self.kept += other.kept
        self.broken += other.broken
        self.unproven += other.unproven
        self.verdicts += other.verdicts

    def to_json(self) -> dict[str, Any]:
        """Return all promises with their counts, and the verdicts."""
        return {
            "promises": {
                name: {
                    "kept": self.kept[name],
                    "broken": self.broken[name],
                    "notProven": dict(self.doubts(name)),
                }
                for name in PROMISES
            },
            "verdicts": [each.to_json() for each in self.verdicts],
        }
