"""One connection, record by record: the frames, the exchanges they end, what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType

from pulsarium.capture.file import Kind, Record
from pulsarium.capture.lint import (
    ack_rules,
    ack_set_rules,
    chunk_rules,
    connection_rules,
    consumer_rules,
    entry_rules,
    keep_alive_rules,
    opening_rules,
    producer_rules,
    request_rules,
    transaction_rules,
    version_rules,
)
from pulsarium.capture.lint.exchanges import Exchange, other
from pulsarium.capture.lint.frames import Conversation, Frame
from pulsarium.capture.lint.rule import RULES, Rule, Violation
from pulsarium.capture.lint.shared import Shared
from pulsarium.capture.lint.state import State
from pulsarium.proto.commands import Direction

RULE_MODULES = (
    connection_rules,
    version_rules,
    keep_alive_rules,
    request_rules,
    opening_rules,
    producer_rules,
    entry_rules,
    chunk_rules,
    consumer_rules,
    ack_rules,
    ack_set_rules,
    transaction_rules,
)
"""Imported for their rules."""

ALL_RULES: Mapping[str, Rule] = MappingProxyType(RULES)
"""By name."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What there is to say of one record."""

    frame: Frame | None = None
    exchanges: list[Exchange] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)


class Checker:
    """Feed it the records of one connection, in order.

    A connection whose opening was not captured breaks no rule: too much that they need is unknown. Where a fault of
    the lab struck, the client is judged by the frames that went as they were meant, and the broker no more.
    """

    def __init__(self, shared: Shared | None = None, *, judging: bool = True) -> None:
        """`shared`: one for all connections of a capture. `judging`: whether rules are looked at."""
        self._judging = judging
        self._state = State((shared or Shared()) if judging else None)
        self._begun = False
        self._opened = False
        self._faulted = False

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
                violations = list(self._ended(record))
                self._opened = False  # what comes after it crossed it
                return Seen(None, self._state.matcher.end(closed=True), violations)

    def end(self) -> list[Exchange]:
        """What still waits at the end of a capture."""
        return self._state.matcher.end(closed=False)

    def _begin(self, first: Record) -> None:
        self._begun = True
        if self._state.shared is not None and first.kind is not Kind.OPENED:
            self._state.shared.whole = False

    def _frame(self, record: Record) -> Seen:
        state = self._state
        frame = state.conversation.feed(record)
        if frame.faulted:
            self._strike(frame)
            if frame.sender is Direction.BROKER and record.note.get("arrived") is False:
                return Seen(frame)  # its client knows nothing of it
        found = [] if frame.faulted or not self._opened else list(self._judged(frame))
        return Seen(frame, state.apply(frame), found)

    def _strike(self, frame: Frame) -> None:
        self._faulted = True
        if frame.sender is Direction.CLIENT and frame.record.note.get("did") == "reordered":
            self._opened = False  # half the rules are about order

    def _judged(self, frame: Frame) -> Iterator[Violation]:
        state = self._state
        for rule in rules_for(frame.name, frame.sender):
            for detail in rule.check(state, frame):
                # A PING that comes while one waits blames who does not answer.
                side = other(frame.sender) if rule is keep_alive_rules.NO_PONG else frame.sender
                if side is Direction.CLIENT or not self._faulted:
                    yield Violation(rule, frame, detail, side)

    def _ended(self, closed: Record) -> Iterator[Violation]:
        """What can be said only now: what was not answered, and what was so wrong that nobody captured it."""
        reason = str(closed.note.get("reason", ""))
        broker_closed = closed.sender is Direction.BROKER
        if not self._opened or (reason and not broker_closed):
            return  # broken off: nobody could answer any more
        refused = connection_rules.refused_by(reason) if broker_closed else None
        if refused is not None and not self._faulted:
            frame = Frame(self._state.conversation.frames, closed, reason)
            yield Violation(refused, frame, reason, Direction.CLIENT)
        matcher = self._state.matcher
        waiting = sorted(matcher.waiting(), key=lambda each: each.number)
        for each in waiting:
            side = other(each.sender)
            if each.number not in matcher.excused and (side is Direction.CLIENT or not (reason or self._faulted)):
                for rule, detail in keep_alive_rules.unanswered(each, closed, waiting):
                    yield Violation(rule, each, detail, side)


@cache
def rules_for(command: str, sender: Direction) -> tuple[Rule, ...]:
    """Those that look at a command from one side."""
    return tuple(
        each
        for each in RULES.values()
        if (not each.on or command in each.on)
        and (each.about in (sender, Direction.BOTH) or each is keep_alive_rules.NO_PONG)
    )
