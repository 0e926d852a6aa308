"""The acts on a lab, in order: what was done, by whom, what it has hit, and how to undo it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.model.news import Kind, acting

KEPT: Final = 100
PROGRAM: Final = "program"


@dataclass(frozen=True, slots=True)
class Undo:
    """The REST call that undoes an act, while `possible` returns True."""

    method: str
    path: str
    possible: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Act:
    """An act on the lab. `hits` returns how many frames or connections it has hit so far."""

    number: int
    ms: int
    by: str
    what: str
    topic: str
    command_line: str
    undo: Undo | None
    hits: Callable[[], int] | None

    def to_json(self) -> dict[str, Any]:
        """Return the act as REST shows it."""
        undo = self.undo if self.undo is not None and self.undo.possible() else None
        return {
            "number": self.number,
            "ms": self.ms,
            "by": self.by,
            "what": self.what,
            "topic": self.topic or None,
            "commandLine": self.command_line or None,
            "hits": 0 if self.hits is None else self.hits(),
            "undo": None if undo is None else {"method": undo.method, "path": undo.path},
        }


class LabActs:
    """The latest acts on a lab. `usually` is who acts when nobody says so."""

    def __init__(self, cluster: Cluster) -> None:
        self.usually = PROGRAM
        self._cluster = cluster
        self._numbers = count(1)
        self._acts: deque[Act] = deque(maxlen=KEPT)
        self._unloaded = 0  # topics of the newest act, if it unloads topics
        cluster.news.listen(self._unloads, Kind.UNLOADED)

    def __iter__(self) -> Iterator[Act]:
        """Yield the acts, the newest first."""
        return reversed(self._acts)

    def note(
        self,
        what: str,
        *,
        topic: str = "",
        command_line: str = "",
        undo: Undo | None = None,
        hits: Callable[[], int] | None = None,
    ) -> None:
        """Note an act. `command_line` does it again."""
        self._unloaded = 0
        now_ms, by = self._cluster.clock.now_ms(), acting() or self.usually
        self._acts.append(Act(next(self._numbers), now_ms, by, what, topic, command_line, undo, hits))
        self._cluster.news.tell(Kind.LAB_ACT, what=what, by=by, topic=topic)

    def _unloads(self, kind: Kind, about: Mapping[str, object]) -> None:
        """Note topics that somebody unloads. Those of one call are one act."""
        if not acting():
            return
        count, topic = self._unloaded, str(about["topic"])
        if count:
            self._acts[-1] = replace(self._acts[-1], what=f"unloaded {count + 1} topics", topic="")
        else:
            self.note(f"unloaded {topic}", topic=topic)
        self._unloaded = count + 1


def acts_of(cluster: Cluster) -> LabActs:
    """Return the acts on the lab of a cluster, which its lab has attached."""
    return cluster.attached(LabActs)
