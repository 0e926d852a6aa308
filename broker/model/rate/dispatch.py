"""Limit how fast messages go out, perhaps relative to how fast they come in."""

from __future__ import annotations

from typing import Protocol

from pulsarium.broker.clock import Clock
from pulsarium.broker.config.keys import Config
from pulsarium.broker.model.policy.policies import DispatchRate
from pulsarium.broker.model.rate.token_bucket import TokenBucket, nothing_more


class Counts(Protocol):
    """A topic that counts what comes in."""

    messages_in: int
    bytes_in: int


class PublishAverage:
    """Tell how fast messages came in to a topic of late, for dispatch rates that are relative to it.

    That is over the last whole interval of statsUpdateFrequencyInSecs, or the time since somebody last asked, if
    that is longer. Costs nothing while nobody asks.
    """

    def __init__(self, topic: Counts, clock: Clock, config: Config) -> None:
        self._topic = topic
        self._clock = clock
        self._config = config
        self._since = clock.monotonic()
        self._counts = (0, 0)
        self._averages = (0.0, 0.0)

    def messages(self) -> float:
        """Return how many came a second."""
        return self._now()[0]

    def bytes(self) -> float:
        """Return how many came a second."""
        return self._now()[1]

    def _now(self) -> tuple[float, float]:
        now = self._clock.monotonic()
        passed = now - self._since
        if passed >= self._config.statsUpdateFrequencyInSecs:
            before, self._counts = self._counts, (self._topic.messages_in, self._topic.bytes_in)
            self._averages = (self._counts[0] - before[0]) / passed, (self._counts[1] - before[1]) / passed
            self._since = now
        return self._averages


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
