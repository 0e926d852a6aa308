"""What a rule is, and the table of all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from pulsarium.capture.lint.frames import Frame
from pulsarium.capture.lint.state import State
from pulsarium.proto.commands import Direction

Check = Callable[[State, Frame], Iterator[str]]


class Severity(Enum):
    """How bad it is to break a rule."""

    ERROR = "error"
    """The other side refuses, drops or closes; or messages are lost, doubled or cannot be read."""
    WARNING = "warning"
    """Brokers of today let it pass, but it does not do what it looks like, or works by chance."""


@dataclass(frozen=True, slots=True)
class Rule:
    """name: what it is called for ever. demands: what has to be, in one sentence. reference: where Pulsar says so.
    mend: what whoever breaks it should do. about: who can break it. on: the commands it looks at; empty: all frames.
    check: what is wrong with a frame, if anything, in the state before it.
    """

    name: str
    demands: str
    reference: str
    mend: str
    about: Direction
    severity: Severity
    on: frozenset[str]
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


class Section:
    """Makes functions rules that the documentation shows together; `on` holds for those that name no command."""

    def __init__(self, title: str, on: Iterable[str] = ()) -> None:
        self.title = title
        self.rules: list[Rule] = []
        self._on = on

    def __call__(
        self,
        name: str,
        demands: str,
        reference: str,
        mend: str,
        *,
        on: Iterable[str] = (),
        about: Direction = Direction.CLIENT,
        severity: Severity = Severity.ERROR,
    ) -> Callable[[Check], Check]:
        def register(check: Check) -> Check:
            assert name not in RULES, name
            RULES[name] = Rule(name, demands, reference, mend, about, severity, frozenset(on or self._on), check)
            self.rules.append(RULES[name])
            return check

        return register
