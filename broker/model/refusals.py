"""The latest refusals of a cluster, for `pulsarium why`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

KEPT: Final = 256


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that was refused, at `ms` since the epoch. `about` names whom it concerns."""

    ms: int
    error: str
    reason: str
    about: Mapping[str, object]


class Refusals:
    """The latest refusals. Kept in memory."""

    def __init__(self) -> None:
        self._kept: deque[Refusal] = deque(maxlen=KEPT)
        self.listeners: list[Callable[[Refusal], None]] = []

    def note(self, refusal: Refusal) -> None:
        """Keep a refusal, in place of the same one just before: clients try again and again."""
        last = self._kept[-1] if self._kept else None
        if last is not None and (last.error, last.reason, last.about) == (refusal.error, refusal.reason, refusal.about):
            self._kept.pop()
        self._kept.append(refusal)
        for told in self.listeners:
            told(refusal)

    def clear(self) -> None:
        """Forget all refusals."""
        self._kept.clear()

    def of(self, **names: str) -> Iterator[Refusal]:
        """Yield the refusals with these facts, the newest first."""
        return (
            each for each in reversed(self._kept) if all(each.about.get(name) == value for name, value in names.items())
        )
