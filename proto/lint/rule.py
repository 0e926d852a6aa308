"""What a rule is, and the table of all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pulsarium.proto.commands import Direction
from pulsarium.proto.lint.frames import Frame
from pulsarium.proto.lint.state import State

Check = Callable[[State, Frame], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Rule:
    """demands: what has to be, in words for people. reference: where Pulsar says so. check: what is wrong with a frame,
    if anything, in the state before it."""

    name: str
    demands: str
    reference: str
    check: Check


@dataclass(frozen=True, slots=True)
class Violation:
    """frame: the one that breaks the rule, or the request that lacks its answer. detail: what was there in its place.
    side: whose fault it is.
    """

    rule: Rule
    frame: Frame
    detail: str
    side: Direction


RULES: dict[str, Rule] = {}
"""By name. Filled by the modules of rules, which `checker` imports."""


def rule(name: str, demands: str, reference: str) -> Callable[[Check], Check]:
    """Makes a function a rule."""

    def register(check: Check) -> Check:
        assert name not in RULES, name
        RULES[name] = Rule(name, demands, reference, check)
        return check

    return register
