"""Define rules and the table of all rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from pulsarium.capture.lint.frames import Frame
from pulsarium.capture.lint.state import LintedConnection
from pulsarium.proto.commands import Direction

Check = Callable[[LintedConnection, Frame], Iterator[str]]


class Severity(Enum):
    """Severity of a broken rule."""

    ERROR = "error"
    """The other side refuses, drops or closes; or messages are lost, duplicated or unreadable."""
    WARNING = "warning"
    """Today's brokers accept it, but it does not have the expected effect, or works by chance."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement on clients or brokers: a rule of the linter, or a promise that the history checker checks.

    name: permanent name. demands: requirement, in one sentence. reference: source in Pulsar. mend: advice for the side
    at fault. about: side that can be at fault.
    """

    name: str
    demands: str
    reference: str
    mend: str
    about: Direction
    severity: Severity


@dataclass(frozen=True, slots=True)
class LintRule(Requirement):
    """A rule of the protocol.

    on: commands to check; empty for all frames. check: function that yields the violations of a frame, in the state
    before the frame.
    """

    on: frozenset[str]
    check: Check


@dataclass(frozen=True, slots=True)
class Violation:
    """A frame that breaks a rule.

    frame: frame that breaks the rule, or request without an answer. detail: what the frame has instead. side: side at
    fault.
    """

    rule: LintRule
    frame: Frame
    detail: str
    side: Direction


RULES: dict[str, LintRule] = {}
"""Rules by name. The modules of rules, which `checker` imports, fill the table."""


class Section:
    """A group of rules in the documentation.

    It registers functions as rules; `on` applies to rules that name no command.
    """

    def __init__(self, title: str, on: Iterable[str] = ()) -> None:
        self.title = title
        self.rules: list[LintRule] = []
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
            RULES[name] = LintRule(name, demands, reference, mend, about, severity, frozenset(on or self._on), check)
            self.rules.append(RULES[name])
            return check

        return register
