"""Check the clients of a running broker against the rules of the protocol."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pulsarium.broker.lab.tap import SessionTap, Taps
from pulsarium.broker.logs import PartLog
from pulsarium.capture.file import CaptureRecord, EventKind
from pulsarium.capture.lint.checker import BrokenRule, Checker, finding_of
from pulsarium.capture.lint.shared import Shared
from pulsarium.proto.commands import Direction

log = PartLog("linter")

KEPT = 200
"""Findings of one rule that are stored. Later ones are only counted."""


class Linter:
    """Check every connection that is opened while the linter runs.

    Connections that were open before are not checked, because their earlier frames are unknown.
    """

    def __init__(self, taps: Taps) -> None:
        self._taps = taps
        self._checkers: dict[int, Checker] = {}
        self._shared = Shared()
        self._findings: list[BrokenRule] = []
        self._begun = False
        self.running = False
        self.counts: Counter[str] = Counter()
        """Broken rules by name, with a count since the linter was started or cleared."""

    def start(self) -> None:
        """Check all connections from now on. Earlier findings stay until `clear`."""
        if self.running:
            return
        self._shared = Shared()
        self._checkers.clear()
        self.running, self._begun = True, False
        self._taps.observe(self)
        self._begun = True

    def stop(self) -> None:
        """Stop checking."""
        if self.running:
            self.running = False
            self._taps.forget(self)
            self._checkers.clear()

    def violations(self) -> list[BrokenRule]:
        """Return the findings in order, at most the first 200 of each rule."""
        return list(self._findings)

    def clear(self) -> None:
        """Delete all findings."""
        self._findings.clear()
        self.counts.clear()

    # Observer

    def opened(self, tap: SessionTap) -> None:
        if self._begun:
            checker = self._checkers[tap.number] = Checker(self._shared)
            checker.feed(self._record(EventKind.OPENED, tap, Direction.CLIENT))
        else:
            self._checkers[tap.number] = Checker(self._shared)
            self._shared.whole = False

    def frame(self, tap: SessionTap, sender: Direction, data: bytes, note: Mapping[str, Any]) -> None:
        tap.session.findings += self._judge(self._record(EventKind.FRAME, tap, sender, data, note))

    def closed(self, tap: SessionTap, sender: Direction, reason: str) -> None:
        self._judge(self._record(EventKind.CLOSED, tap, sender, note={"reason": reason} if reason else {}))
        self._checkers.pop(tap.number, None)  # frames of the broker after the end are not checked

    def _record(
        self,
        kind: EventKind,
        tap: SessionTap,
        sender: Direction,
        data: bytes = b"",
        note: Mapping[str, Any] | None = None,
    ) -> CaptureRecord:
        clock = self._taps.cluster.clock
        # Rules about time need the machine's clock: a client's time goes on while the broker's clock is frozen.
        monotonic, wall = int(clock.machine.monotonic() * 1e9), clock.now_ms() * 1_000_000
        return CaptureRecord(kind, tap.number, sender, monotonic, wall, data, len(data), note or {})

    def _judge(self, record: CaptureRecord) -> int:
        """Judge a record, and return how many rules it breaks."""
        checker = self._checkers.get(record.connection)
        if checker is None:
            return 0
        try:
            violations = checker.feed(record).violations
        except Exception as error:  # a bug of the linter must not end the connection
            log.error("the linter failed and skips a connection", connection=record.connection, exception=error)
            del self._checkers[record.connection]
            return 0
        for violation in violations:
            name = violation.rule.name
            self.counts[name] += 1
            if self.counts[name] <= KEPT:
                found = finding_of(violation, checker.conversation)
                self._findings.append(found)
                log.info("a client broke a rule of the protocol", finding=str(found))
        return len(violations)
