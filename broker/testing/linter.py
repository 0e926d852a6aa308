"""Find mistakes of the clients of a test."""

from __future__ import annotations

from collections.abc import Sequence

from pulsarium.broker.testing.captured import StartedCapture, StartsCaptures
from pulsarium.capture.file import CaptureRecord
from pulsarium.capture.lint.checker import BrokenRule, Walk, all_opened, finding_of
from pulsarium.capture.namespaces import connections_of


def assert_no_mistake(found: list[BrokenRule]) -> None:
    """Raise `AssertionError` when a client broke a rule."""
    __tracebackhide__ = True
    wrong = [str(each) for each in found if each.side == "client"]
    if wrong:
        raise AssertionError("\n".join(["a client broke rules of the protocol:", *wrong]))


class CaptureLinter:
    """Record all connections, and judge those that were opened since, or those of one namespace alone."""

    def __init__(self, captures: StartsCaptures, namespace: str | None = None) -> None:
        self._captures = captures
        self._namespace = namespace
        self._capture: StartedCapture | None = None
        self._running = False
        self._cleared_ns = 0

    def start(self) -> None:
        """Record from now on, in memory, which keeps the newest 64 MB. The record before a stop is dropped."""
        if not self._running:
            self._running, self._capture = True, self._captures.start()

    def stop(self) -> None:
        """Stop recording. The record can still be judged."""
        if self._capture is not None:
            self._running = False
            self._capture.stop()

    def clear(self) -> None:
        """Forget the broken rules so far. Recording goes on."""
        self._cleared_ns = max((record.monotonic_ns for record in self._records()), default=0)

    def violations(self) -> list[BrokenRule]:
        """Return the broken rules since the start or since `clear`, in order."""
        records = self._records()
        if self._namespace is not None:
            records = connections_of(records, self._namespace)
        walk = Walk(judging=True, whole=all_opened(records))
        found = list[BrokenRule]()
        for record in records:
            checker, seen = walk.feed(record)
            if record.monotonic_ns > self._cleared_ns:
                found += [finding_of(violation, checker.conversation) for violation in seen.violations]
        return found

    def _records(self) -> Sequence[CaptureRecord]:
        return () if self._capture is None else self._capture.records()

    def assert_clean(self) -> None:
        """Raise `AssertionError` when a client broke a rule."""
        __tracebackhide__ = True
        assert_no_mistake(self.violations())
