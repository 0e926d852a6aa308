"""Wait for the effects of a change that go on after its commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial


class EndEffect:
    """The effect of a transaction's end on a participant, which may follow the commit in several turns."""

    __slots__ = ("_then", "over")

    def __init__(self) -> None:
        self.over = False
        self._then: list[Callable[[], None]] = []

    def then(self, done: Callable[[], None]) -> None:
        """Call `done` when the effect is complete, which must not be the case yet."""
        self._then.append(done)

    def complete(self) -> None:
        """Note that nothing more follows."""
        self.over = True
        for done in self._then:
            done()


def after_all(effects: Iterable[EndEffect], done: Callable[[], None]) -> None:
    """Call `done` when all these effects are complete, now or later."""
    left = iter(effects)
    for effect in left:
        if not effect.over:
            effect.then(partial(after_all, left, done))
            return
    done()
