"""One connection, record by record: the frames, the exchanges they end, what is wrong with them."""

from __future__ import annotations

from dataclasses import dataclass, field

from pulsarium.proto.capture import Kind, Record
from pulsarium.proto.lint import connection_rules, consumer_rules, producer_rules, request_rules
from pulsarium.proto.lint.exchanges import Exchange, other
from pulsarium.proto.lint.frames import Conversation, Frame
from pulsarium.proto.lint.rule import RULES, Violation
from pulsarium.proto.lint.state import Deliveries, State

RULE_MODULES = (connection_rules, request_rules, producer_rules, consumer_rules)
"""Imported for their rules."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What there is to say of one record."""

    frame: Frame | None = None
    exchanges: list[Exchange] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)


class Checker:
    """Feed it the records of one connection, in order.

    A connection whose opening was not captured breaks no rule: too much that they need is unknown.
    """

    def __init__(self, deliveries: Deliveries | None = None, *, judging: bool = True) -> None:
        """`deliveries`: one for all connections of a capture. `judging`: whether rules are looked at."""
        self._judging = judging
        self._state = State((deliveries or Deliveries()) if judging else None)
        self._begun = False
        self._opened = False

    @property
    def conversation(self) -> Conversation:
        """Who talks, and what they agreed on."""
        return self._state.conversation

    def feed(self, record: Record) -> Seen:
        if not self._begun:
            self._begin(record)
        match record.kind:
            case Kind.FRAME:
                return self._frame(record)
            case Kind.OPENED:
                self._opened = self._judging
                return Seen()
            case Kind.CLOSED:
                violations = self._unanswered(record)
                self._opened = False  # what comes after it crossed it
                return Seen(None, self._state.matcher.end(closed=True), violations)

    def end(self) -> list[Exchange]:
        """What still waits at the end of a capture."""
        return self._state.matcher.end(closed=False)

    def _begin(self, first: Record) -> None:
        self._begun = True
        if self._state.deliveries is not None and first.kind is not Kind.OPENED:
            self._state.deliveries.whole = False

    def _frame(self, record: Record) -> Seen:
        state = self._state
        frame = state.conversation.feed(record)
        found: list[Violation] = []
        if self._opened:
            found = [
                Violation(rule, frame, detail, frame.sender)
                for rule in RULES.values()
                for detail in rule.check(state, frame)
            ]
        return Seen(frame, state.apply(frame), found)

    def _unanswered(self, closed: Record) -> list[Violation]:
        if not self._opened or closed.note.get("reason"):
            return []  # broken off: nobody could answer any more
        return [
            Violation(request_rules.UNANSWERED, frame, detail, other(frame.sender))
            for frame in sorted(self._state.matcher.waiting(), key=lambda each: each.number)
            if frame.number not in self._state.matcher.told
            for detail in request_rules.unanswered(frame, closed)
        ]
