"""Check what the clients of a test experience against the promises of Pulsar."""

from __future__ import annotations

from collections.abc import Sequence

from pulsarium.broker.testing.captured import StartedCapture, StartsCaptures
from pulsarium.capture.check.checker import tally_of
from pulsarium.capture.check.judges import Assumptions
from pulsarium.capture.check.verdict import Tally, Verdict
from pulsarium.capture.lint.checker import all_opened
from pulsarium.capture.namespaces import topics_of


class BrokerChecker:
    """Record all connections, and judge the record as `pulsarium check` does.

    checker.start()
    ...
    checker.stop()
    checker.assert_kept()
    """

    def __init__(self, captures: StartsCaptures, tick_ms: int, namespace: str | None = None) -> None:
        """Create a checker of one namespace, or of all. `tick_ms` is the broker's delayedDeliveryTickTimeMillis."""
        self._captures = captures
        self._tick_ms = tick_ms
        self._namespace = namespace
        self._capture: StartedCapture | None = None

    def of(self, namespace: str | None) -> BrokerChecker:
        """Return another checker, of one namespace, or of all for None."""
        return BrokerChecker(self._captures, self._tick_ms, namespace)

    def start(self) -> None:
        """Record from now on, in memory, which keeps the newest 64 MB. An earlier record is dropped."""
        self.stop()
        self._capture = self._captures.start()

    def stop(self) -> None:
        """Stop recording. The record can still be judged."""
        if self._capture is not None:
            self._capture.stop()

    def tally(self, *, nothing_unseen: bool = False) -> Tally:
        """Judge the record so far: promises kept, broken, and not proven either way.

        `nothing_unseen` asserts that no message expired, and that nobody changed a subscription over REST.
        """
        records = () if self._capture is None else self._capture.records()
        if self._namespace is not None:
            records = topics_of(records, self._namespace)
        assumed = Assumptions(whole=all_opened(records), nothing_unseen=nothing_unseen, tick_ms=self._tick_ms)
        return tally_of(enumerate(records, 1), assumed)

    def verdicts(self, *, nothing_unseen: bool = False) -> Sequence[Verdict]:
        """Return the broken promises, each with its frames."""
        return self.tally(nothing_unseen=nothing_unseen).verdicts

    def assert_kept(self, *, nothing_unseen: bool = False) -> None:
        """Raise `AssertionError` when a promise was broken."""
        __tracebackhide__ = True
        broken = self.verdicts(nothing_unseen=nothing_unseen)
        if broken:
            raise AssertionError("\n".join(["a promise of Pulsar was broken:", *map(str, broken)]))
