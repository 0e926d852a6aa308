"""Throttle dispatch to a subscription by the dispatch rates of its broker, its topic and its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from pulsarium.broker.clock import Timer
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.broker.model.policy.policies import DispatchRate
from pulsarium.broker.model.rate.rates import DispatchLimiter, PublishAverage

BACKOFF = 1.0  # seconds before a throttled dispatcher tries again (MESSAGE_RATE_BACKOFF_MS)
READ_OVERHEAD = 64  # bytes that a read adds to the size of each entry
LARGEST_READ = 5 << 20  # dispatcherMaxReadSizeBytes


class Throttle:
    """The dispatch limits of a subscription, which its dispatcher asks before each read.

    Without tokens, the subscription is dispatched again after whole seconds, once tokens are back. A limit counts
    messages, but a read asks for entries. So batches may exceed the limit, unless each batch counts as one message
    (dispatchThrottlingOnBatchMessageEnabled).
    """

    def __init__(
        self, cursor: ManagedCursor, stores: Stores, average: PublishAverage, dispatch_soon: Callable[[], None]
    ) -> None:
        self._cursor = cursor
        self._clock = stores.clock
        self._config = stores.config
        self._dispatch_soon = dispatch_soon
        self._own = DispatchLimiter(self._clock, average)
        self._limiters: list[tuple[str, DispatchLimiter]] = []
        self._timer: Timer | None = None
        self.events: dict[str, int] = {}  # how often each limit shortened a read, by its name in the stats
        self.until = 0.0  # end of the current pause, in the clock's monotonic seconds
        self.limited_by = ""  # the limit that caused the pause: Broker, Topic or Subscription

    def changed(self, rate: DispatchRate, others: Iterable[tuple[str, DispatchLimiter]]) -> Throttle | None:
        """Set the subscription's own rate and the limits of `others`.

        Return the throttle itself, or None without limits.
        """
        self._own.update(rate)
        every = (*others, ("Subscription", self._own))
        self._limiters = [(whose, limiter) for whose, limiter in every if limiter.is_active]
        if self._timer is not None:  # the changed limits may end the pause sooner
            self.stop()
            self._dispatch_soon()
        return self if self._limiters else None

    def entries(self, most: int) -> int:
        """Return how many of `most` entries may be read now. After 0, the subscription is dispatched again later."""
        if self._is_exempt():
            return most
        for whose, limiter in self._limiters:
            if limiter.messages is not None and (messages := limiter.messages.available()) < most:
                self._count("Msg", whose)
                most = messages
            if limiter.bytes is not None and (size := limiter.bytes.available()) < LARGEST_READ:
                self._count("Bytes", whose)
                most = min(most, self._entries_in(size))
            if most <= 0:
                self._go_on_later(whose, limiter.seconds())
                return 0
        return most

    def _is_exempt(self) -> bool:
        """Return whether a subscription that keeps up is exempt (dispatchThrottlingOnNonBacklogConsumerEnabled)."""
        if self._config.dispatchThrottlingOnNonBacklogConsumerEnabled:
            return False
        cursor = self._cursor
        unread = cursor.ledger.count_after(cursor.ledger.previous(cursor.read_position))
        return unread < self._config.managedLedgerCursorBackloggedThreshold

    def _entries_in(self, size: int) -> int:
        """Estimate how many entries fit into `size` bytes, by the average entry of the ledger; at least one."""
        if size <= 0:
            return 0
        cursor = self._cursor
        ledger = cursor.ledger.ledgers.get(cursor.read_position.ledger_id)
        if ledger is None or not ledger.count:
            return 1
        return max(1, size // (max(1, ledger.size // ledger.count) + READ_OVERHEAD))

    def _count(self, unit: str, whose: str) -> None:
        name = f"dispatchThrottled{unit}EventsBy{whose}Limit"
        self.events[name] = self.events.get(name, 0) + 1

    def delivered(self, entries: int, messages: int, size: int) -> None:
        """Take tokens for delivered entries."""
        if not self._is_exempt():
            counted = entries if self._config.dispatchThrottlingOnBatchMessageEnabled else messages
            for _, limiter in self._limiters:
                limiter.take(counted, size)

    def _go_on_later(self, whose: str, seconds: float) -> None:
        if self._timer is None:
            wait = BACKOFF * max(1, math.ceil(seconds / BACKOFF - 1e-6))
            self.limited_by = whose
            self.until = self._clock.monotonic() + wait
            self._timer = self._clock.call_later(wait, self._go_on)

    def _go_on(self) -> None:
        self._timer = None
        self._dispatch_soon()

    def stop(self) -> None:
        """Cancel the pause, because no consumer is left."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
