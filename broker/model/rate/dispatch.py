"""How fast messages go out: of a broker, of a topic, of a subscription."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

from pulsarium.broker.clock import Clock, Timer
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.broker.model.policy.policies import DispatchRate, Policies
from pulsarium.broker.model.rate.publish_average import PublishAverage
from pulsarium.broker.model.rate.token_bucket import TokenBucket, nothing_more

if TYPE_CHECKING:
    from pulsarium.broker.model.rate.broker_limits import Limits

BACKOFF = 1.0  # seconds after which a dispatcher asks again (MESSAGE_RATE_BACKOFF_MS)
READ_OVERHEAD = 64  # bytes that an entry counts for in a read, beside its own
LARGEST_READ = 5 << 20  # dispatcherMaxReadSizeBytes


class DispatchLimiter:
    """The tokens of one limit. Like those of a scheduled refill they come once a period, which is also how many there
    are at most. What was sent in excess is owed."""

    def __init__(self, clock: Clock, average: PublishAverage | None = None) -> None:
        self._clock = clock
        self._average = average  # what relativeToPublishRate is relative to
        self._rate = DispatchRate()
        self.messages: TokenBucket | None = None
        self.bytes: TokenBucket | None = None

    @property
    def is_active(self) -> bool:
        """Whether there is any limit."""
        return self.messages is not None or self.bytes is not None

    def update(self, rate: DispatchRate) -> None:
        """The rate is another one from now on."""
        if rate == self._rate:
            return
        self._rate = rate
        average = self._average if rate.relative else None
        more = (nothing_more, nothing_more) if average is None else (average.messages, average.bytes)
        period = max(rate.period_seconds, 1)
        self.messages, self.bytes = (
            TokenBucket(self._clock, each, period, resolution=period, more=relative) if each > 0 else None
            for each, relative in zip((rate.messages, rate.bytes), more, strict=True)
        )

    def take(self, messages: int, size: int) -> None:
        """So much was delivered."""
        if self.messages is not None:
            self.messages.take(messages)
        if self.bytes is not None:
            self.bytes.take(size)

    def seconds(self) -> float:
        """How long until anything may be delivered."""
        return max(0.0 if bucket is None else bucket.seconds_until(1) for bucket in (self.messages, self.bytes))


class LimitedTopic(Protocol):
    """A topic, as far as it limits what goes out."""

    @property
    def stores(self) -> Stores: ...

    @property
    def policies(self) -> Policies: ...

    @property
    def publish_average(self) -> PublishAverage: ...

    @property
    def dispatch_limit(self) -> DispatchLimiter: ...

    @property
    def broker_limits(self) -> Limits: ...

    @property
    def group_limits(self) -> Limits: ...


class Limited(Protocol):
    """A subscription that is dispatched again once there are tokens."""

    @property
    def name(self) -> str: ...

    @property
    def topic(self) -> LimitedTopic: ...

    @property
    def cursor(self) -> ManagedCursor: ...

    def dispatch_soon(self) -> None: ...


class Throttle:
    """What the dispatcher of a subscription asks before it reads, while any limit is there.

    Where there are no tokens it is dispatched again, in whole seconds, once there are. A limit is of messages, but what
    is asked for are entries: batches may take more than there is, unless each counts as one message
    (dispatchThrottlingOnBatchMessageEnabled).
    """

    def __init__(self, subscription: Limited) -> None:
        topic = subscription.topic
        self._subscription = subscription
        self._clock = topic.stores.clock
        self._config = topic.stores.config
        self._own = DispatchLimiter(self._clock, topic.publish_average)
        self._limiters: list[tuple[str, DispatchLimiter]] = []
        self._timer: Timer | None = None
        self.events: dict[str, int] = {}  # how often each of the limits shortened a read, by its name in the stats
        self.until_ms = 0  # when it goes on
        self.limited_by = ""  # Broker, Topic or Subscription

    def changed(self) -> Throttle | None:
        """The limits may be others now: itself, if there are any."""
        topic = self._subscription.topic
        self._own.update(topic.policies.dispatch_rate_of(self._subscription.name))
        every = (
            ("Broker", topic.broker_limits.dispatch),
            ("ResourceGroup", topic.group_limits.dispatch),
            ("Topic", topic.dispatch_limit),
            ("Subscription", self._own),
        )
        self._limiters = [(whose, limiter) for whose, limiter in every if limiter.is_active]
        if self._timer is not None:  # what was waited for may come sooner now
            self.stop()
            self._subscription.dispatch_soon()
        return self if self._limiters else None

    def entries(self, most: int) -> int:
        """How many of `most` entries may be read now; 0: none, until it is dispatched again."""
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
        """Whether who keeps up with the topic is not limited (dispatchThrottlingOnNonBacklogConsumerEnabled)."""
        if self._config.dispatchThrottlingOnNonBacklogConsumerEnabled:
            return False
        cursor = self._subscription.cursor
        unread = cursor.ledger.count_after(cursor.ledger.previous(cursor.read_position))
        return unread < self._config.managedLedgerCursorBackloggedThreshold

    def _entries_in(self, size: int) -> int:
        """About how many entries so many bytes are, by the average of the ledger that is read; at least one."""
        if size <= 0:
            return 0
        cursor = self._subscription.cursor
        ledger = cursor.ledger.ledgers.get(cursor.read_position.ledger_id)
        if ledger is None or not ledger.count:
            return 1
        return max(1, size // (max(1, ledger.size // ledger.count) + READ_OVERHEAD))

    def _count(self, unit: str, whose: str) -> None:
        name = f"dispatchThrottled{unit}EventsBy{whose}Limit"
        self.events[name] = self.events.get(name, 0) + 1

    def delivered(self, entries: int, messages: int, size: int) -> None:
        """Entries went out, with so many messages and bytes."""
        if not self._is_exempt():
            counted = entries if self._config.dispatchThrottlingOnBatchMessageEnabled else messages
            for _, limiter in self._limiters:
                limiter.take(counted, size)

    def _go_on_later(self, whose: str, seconds: float) -> None:
        if self._timer is None:
            wait = BACKOFF * max(1, math.ceil(seconds / BACKOFF - 1e-6))
            self.limited_by = whose
            self.until_ms = self._clock.now_ms() + round(wait * 1000)
            self._timer = self._clock.call_later(wait, self._go_on)

    def _go_on(self) -> None:
        self._timer = None
        self._subscription.dispatch_soon()

    def stop(self) -> None:
        """Nobody is there to deliver to."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
