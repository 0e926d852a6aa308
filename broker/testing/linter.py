"""The linter, for tests that run in another thread than the broker."""

from __future__ import annotations

from collections.abc import Sequence

from pulsarium.broker.lab.linter import Linter
from pulsarium.broker.server import RunningCluster
from pulsarium.broker.testing.thread import LoopThread
from pulsarium.capture.lint.finding import Finding


class BrokerLinter:
    """Says what clients do wrong on connections that are opened while it runs."""

    def __init__(self, thread: LoopThread[RunningCluster], linter: Linter) -> None:
        self._thread = thread
        self._linter = linter

    def start(self) -> None:
        """Judge new connections from now on; what was found before stays until `clear`."""
        self._thread.call(self._linter.start)

    def stop(self) -> None:
        """Judge no more."""
        self._thread.call(self._linter.stop)

    def violations(self) -> Sequence[Finding]:
        """What was found, in order; of each rule the first ones."""
        return self._thread.call(self._linter.violations)

    def clear(self) -> None:
        """Forget what was found."""
        self._thread.call(self._linter.clear)

    def assert_clean(self) -> None:
        """No rule was broken by a client. Raises AssertionError."""
        __tracebackhide__ = True
        found = [str(each) for each in self.violations() if each.side == "client"]
        if found:
            raise AssertionError("\n".join(["a client broke rules of the protocol:", *found]))
