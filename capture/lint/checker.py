"""Judge connections record by record: frames, finished exchanges and violations; and convert violations to JSON."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

from pulsarium.capture.file import CaptureError, CaptureRecord, EventKind
from pulsarium.capture.lint import connection_rules, consumer_rules, producer_rules, request_rules, scalable_rules
from pulsarium.capture.lint.exchanges import LintedExchange, other
from pulsarium.capture.lint.frames import Conversation, Frame
from pulsarium.capture.lint.rule import RULES, LintRule, Section, Violation
from pulsarium.capture.lint.shared import Shared
from pulsarium.capture.lint.state import LintedConnection
from pulsarium.proto.commands import Direction
from pulsarium.proto.text import printable

SECTIONS: tuple[Section, ...] = tuple(
    each
    for module in (connection_rules, request_rules, producer_rules, consumer_rules, scalable_rules)
    for each in vars(module).values()
    if isinstance(each, Section)
)
"""Sections of rules, in the order of the documentation."""

ALL_RULES: Mapping[str, LintRule] = MappingProxyType(RULES)
"""Rules by name."""


@dataclass(frozen=True, slots=True)
class RecordFindings:
    """Findings of one record."""

    frame: Frame | None = None
    exchanges: list[LintedExchange] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)


class Checker:
    """Checker of one connection, which gets the connection's records in order.

    A connection whose opening was not captured breaks no rule, because too much about it is unknown. After a fault of
    the lab, the client is judged by the frames without a fault, and the broker is not judged.
    """

    def __init__(self, shared: Shared | None = None, *, judging: bool = True) -> None:
        """Prepare a checker.

        `shared` is the state of all connections of a capture. Rules apply only with `judging`.
        """
        self._judging = judging
        self._state = LintedConnection((shared or Shared()) if judging else None)
        self._begun = False
        self._opened = False
        self._faulted = False

    @property
    def state(self) -> LintedConnection:
        """Return the state of the connection after the last record."""
        return self._state

    @property
    def conversation(self) -> Conversation:
        """Return the client and what both sides agreed on."""
        return self._state.conversation

    def feed(self, record: CaptureRecord) -> RecordFindings:
        if not self._begun:
            self._begin(record)
        match record.kind:
            case EventKind.FRAME:
                return self._frame(record)
            case EventKind.OPENED:
                self._opened = self._judging
                return RecordFindings()
            case EventKind.CLOSED:
                violations = list(self._ended(record))
                self._opened = False  # frames after the close crossed it
                return RecordFindings(None, self._state.matcher.end(closed=True), violations)

    def end(self) -> list[LintedExchange]:
        """Return the exchanges without an answer at the end of a capture."""
        return self._state.matcher.end(closed=False)

    def _begin(self, first: CaptureRecord) -> None:
        self._begun = True
        if self._state.shared is not None and first.kind is not EventKind.OPENED:
            self._state.shared.whole = False

    def _frame(self, record: CaptureRecord) -> RecordFindings:
        state = self._state
        frame = state.conversation.feed(record)
        if frame.faulted:
            self._strike(frame)
            if frame.sender is Direction.BROKER and record.note.get("arrived") is False:
                return RecordFindings(frame)  # the client never got this frame
        found = [] if frame.faulted or not self._opened else list(self._judged(frame))
        return RecordFindings(frame, state.apply(frame), found)

    def _strike(self, frame: Frame) -> None:
        self._faulted = True
        if frame.sender is Direction.CLIENT and frame.record.note.get("did") == "reordered":
            self._opened = False  # half of the rules are about order

    def _judged(self, frame: Frame) -> Iterator[Violation]:
        state = self._state
        for rule in rules_for(frame.name, frame.sender):
            for detail in rule.check(state, frame):
                # A PING that arrives while another one waits is the fault of the side that does not answer.
                side = other(frame.sender) if rule is connection_rules.NO_PONG else frame.sender
                if side is Direction.CLIENT or not self._faulted:
                    yield Violation(rule, frame, detail, side)

    def _ended(self, closed: CaptureRecord) -> Iterator[Violation]:
        """Yield violations that show at the close: unanswered requests, and frames too broken to be captured."""
        reason = str(closed.note.get("reason", ""))
        broker_closed = closed.sender is Direction.BROKER
        if not self._opened or (reason and not broker_closed):
            return  # after an abort no side could answer
        refused = connection_rules.refused_by(reason) if broker_closed else None
        if refused is not None and not self._faulted:
            frame = Frame(self._state.conversation.frames, closed, reason)
            yield Violation(refused, frame, reason, Direction.CLIENT)
        matcher = self._state.matcher
        waiting = sorted(matcher.waiting(), key=lambda each: each.number)
        for each in waiting:
            side = other(each.sender)
            if each.number not in matcher.excused and (side is Direction.CLIENT or not (reason or self._faulted)):
                for rule, detail in connection_rules.unanswered(each, closed, waiting):
                    yield Violation(rule, each, detail, side)


@cache
def rules_for(command: str, sender: Direction) -> tuple[LintRule, ...]:
    """Return the rules for a command from one side."""
    return tuple(
        each
        for each in RULES.values()
        if (not each.on or command in each.on)
        and (each.about in (sender, Direction.BOTH) or each is connection_rules.NO_PONG)
    )


_CLOSED_KEPT = 1000  # connections that are kept, because frames may arrive after the close


class Walk:
    """Checker of a capture, which gets the capture's records in order."""

    def __init__(self, *, judging: bool = False, whole: bool = True) -> None:
        """Prepare a checker of all connections.

        Rules apply only with `judging`. `whole` is the result of `all_opened`; without it, the checker finds out as
        records arrive.
        """
        self._judging = judging
        self._checkers: dict[int, Checker] = {}
        self._closed: deque[tuple[int, Checker]] = deque()
        self._shared = Shared(whole=whole)

    def feed(self, record: CaptureRecord) -> tuple[Checker, RecordFindings]:
        """Return the checker of the record's connection, and the record's findings."""
        checker = self._checkers.get(record.connection)
        if checker is None or record.kind is EventKind.OPENED:
            checker = self._checkers[record.connection] = Checker(self._shared, judging=self._judging)
        seen = checker.feed(record)
        if record.kind is EventKind.CLOSED:
            self._closed.append((record.connection, checker))
            if len(self._closed) > _CLOSED_KEPT:
                self._forget(*self._closed.popleft())
        return checker, seen

    def checker(self, connection: int) -> Checker | None:
        """Return the checker of a connection, or None."""
        return self._checkers.get(connection)

    def end(self) -> Iterator[tuple[Checker, RecordFindings]]:
        """Yield the exchanges without an answer, by connection."""
        for checker in self._checkers.values():
            yield checker, RecordFindings(exchanges=checker.end())

    def _forget(self, connection: int, checker: Checker) -> None:
        if self._checkers.get(connection) is checker:  # unless the connection id was opened again
            del self._checkers[connection]


def all_opened(records: Iterable[CaptureRecord]) -> bool:
    """Return whether a capture has the opening of all its connections.

    Messages of a connection without it may be acknowledged on another connection long before its first frame.
    """
    opened: set[int] = set()
    with suppress(CaptureError):  # read as far as possible
        for record in records:
            if record.kind is EventKind.OPENED:
                opened.add(record.connection)
            elif record.connection not in opened:
                return False
    return True


_LONGEST = 300
"""Most characters of a text, because texts may come from an unknown peer."""


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A broken rule.

    side: side at fault, `client` or `broker`. frame: number of the frame in its connection, from 0. at_ms: time in
    milliseconds since the epoch. capture: file of the finding, or "".
    """

    rule: str
    severity: str
    side: str
    detail: str
    client: str
    client_version: str
    connection: int
    frame: int
    command: str
    topic: str
    at_ms: int
    capture: str = ""

    def __str__(self) -> str:
        who = " ".join(filter(None, (self.client, self.client_version))) or "unknown client"
        where = f"connection {self.connection}, frame {self.frame}" + (f", {self.topic}" if self.topic else "")
        head = f"{self.capture}: " if self.capture else ""
        return f"{head}{self.side} {self.severity} {self.rule}: {self.detail} ({who}; {where})"

    def to_json(self) -> dict[str, Any]:
        """Return the finding with the texts of its rule."""
        found = ALL_RULES[self.rule]
        return asdict(self) | {"demands": found.demands, "reference": found.reference, "mend": found.mend}

    @staticmethod
    def from_json(said: dict[str, Any]) -> BrokenRule:
        """Return the finding that `to_json` wrote. Raise `KeyError` for anything else."""
        return BrokenRule(**{name: said[name] for name in BrokenRule.__slots__})


def finding_of(violation: Violation, talk: Conversation, capture: str = "") -> BrokenRule:
    frame = violation.frame
    return BrokenRule(
        rule=violation.rule.name,
        severity=violation.rule.severity.value,
        side=violation.side.value,
        detail=_short(violation.detail),
        client=_short(talk.client),
        client_version=_short(talk.client_version),
        connection=frame.record.connection,
        frame=frame.number,
        command=frame.name,
        topic=_short(frame.topic or ""),
        at_ms=frame.record.wall_ns // 1_000_000,
        capture=capture,
    )


def rule_to_json(rule: LintRule) -> dict[str, Any]:
    """Return the texts of a rule."""
    return {
        "rule": rule.name,
        "severity": rule.severity.value,
        "about": rule.about.value,
        "demands": rule.demands,
        "reference": rule.reference,
        "mend": rule.mend,
    }


def _short(text: str) -> str:
    text = printable(text[: _LONGEST + 1])
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
