"""Reduce a script that fails to a least one: fewer decisions, then earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import TypeVar

from pulsarium.broker.lab.explore.script import Decision, Script

T = TypeVar("T")


def reduced(
    script: Script, fails: Callable[[Script], Generator[T, None, bool]], most: int = 100
) -> Generator[T, None, Script]:
    """Reduce a script that fails, with at most so many trials. The result has failed, unless nothing smaller did.

    `fails` tells whether a script fails, and yields what it needs run.
    """
    tried: dict[Script, bool] = {script: True}

    def has_failed(candidate: Script) -> Generator[T, None, bool]:
        if candidate not in tried:
            if len(tried) > most:
                return False
            tried[candidate] = yield from fails(candidate)
        return tried[candidate]

    smaller = True
    while smaller:
        smaller = False
        for candidate in candidates(script):
            if (yield from has_failed(candidate)):
                script, smaller = candidate, True
                break
    return script


def candidates(script: Script) -> Iterator[Script]:
    """Yield scripts that are smaller: without most decisions, without one, and with one that is earlier."""
    if script:
        yield ()
    if len(script) > 2:
        yield from ((decision,) for decision in script)
        half = len(script) // 2
        yield from (script[:half], script[half:])
    if len(script) > 1:
        yield from (script[:at] + script[at + 1 :] for at in range(len(script)))
    for at, decision in enumerate(script):
        for earlier in _earlier(decision, script):
            yield (*script[:at], earlier, *script[at + 1 :])


def _earlier(decision: Decision, script: Script) -> Iterator[Decision]:
    taken = {each[:3] for each in script}
    for index in sorted({0, decision.at // 2, decision.at - 1}):
        earlier = decision._replace(at=index)
        if 0 <= index < decision.at and earlier[:3] not in taken:
            yield earlier
