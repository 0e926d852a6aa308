"""Rates that are kept to: of publishing, by topic, broker and resource group, and of dispatch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from pulsarium.broker.clock import Clock, Timeline, Timer
from pulsarium.broker.config.keys import Config
from pulsarium.broker.model.policy.policies import DispatchRate, PublishRate

RESOLUTION = 0.016  # seconds between two looks at what came, as in Pulsar
SLACK = 1e-6  # seconds, or tokens, by which times that are added up may be short
SHORTEST_WAIT = 1e-3  # seconds


def nothing_more() -> float:
    """A rate that is what it says."""
    return 0.0


class TokenBucket:
    """`rate` tokens a `period` (seconds), and at most so many at once; it begins full.

    Who takes more than there are is let through, and leaves a debt. `more` is added to the rate as it is at each look.
    New tokens come at once for all the time since the last look, which is at least `resolution` (seconds) ago.
    """

    __slots__ = ("_clock", "_more", "_period", "_rate", "_resolution", "_rest", "_seen", "tokens")

    def __init__(
        self,
        clock: Timeline,
        rate: int,
        period: float = 1.0,
        resolution: float = RESOLUTION,
        more: Callable[[], float] = nothing_more,
    ) -> None:
        self._clock = clock
        self._rate = rate
        self._period = period
        self._resolution = resolution
        self._more = more
        self._seen = clock.monotonic()
        self._rest = 0.0  # seconds of before, which were not enough for one more token
        self.tokens = self.rate

    @property
    def rate(self) -> int:
        """Tokens a period as of now. Never none: clients say how many messages an entry has, at times less than 0."""
        return max(1, self._rate + int(self._more()))

    def take(self, count: int) -> None:
        """Something passed."""
        self._look()
        self.tokens -= count

    def available(self) -> int:
        """How many tokens there are now; 0 or less: none."""
        self._look()
        return self.tokens

    def _look(self) -> None:
        now, rate = self._clock.monotonic(), self.rate
        passed = now - self._seen
        if passed + SLACK < self._step(rate):
            return
        came = math.floor((passed + self._rest) * rate / self._period + SLACK)
        self._seen = now
        self._rest += passed - came * self._period / rate
        self.tokens = min(self.tokens + came, rate)

    def _step(self, rate: int) -> float:
        """How long after a look the next one can find something."""
        return max(self._resolution, self._period / rate - self._rest)

    def seconds_until(self, count: int) -> float:
        """How long until there are so many tokens, if nobody takes any; 0: there are."""
        missing = min(count, self.rate) - self.available()
        if missing <= 0:
            return 0.0
        rate, passed = self.rate, self._clock.monotonic() - self._seen
        return max(SHORTEST_WAIT, max(self._step(rate), missing * self._period / rate - self._rest) - passed)


REFILL = 0.01  # of a second's tokens, which must be there before anybody goes on


class Publisher(Protocol):
    """A connection that publishes."""

    def pause_reading(self) -> None:
        """Take no more commands of it, until `resume_reading` was called as often."""
        ...

    def resume_reading(self) -> None:
        """Go on, with what came meanwhile first."""
        ...


class PublishLimiter:
    """Nothing is refused: what comes too fast is taken, and its connection pauses until there are tokens again.

    So do all producers of that connection, whatever they publish to, and everything else that its client asks. Those
    that wait go on in turn, each as long as there are tokens left.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rate = PublishRate()
        self._buckets: list[tuple[TokenBucket, int]] = []  # and how many tokens let a connection go on
        self._messages: TokenBucket | None = None
        self._bytes: TokenBucket | None = None
        self._waiting: list[Publisher] = []  # in the order they came
        self._timer: Timer | None = None

    @property
    def is_active(self) -> bool:
        """Whether there is any limit."""
        return bool(self._buckets)

    def update(self, rate: PublishRate) -> None:
        """The rate is another one from now on: there are as many tokens as it gives a second."""
        if rate == self._rate:
            return
        self._rate = rate
        self._messages, self._bytes = self._bucket(rate.messages), self._bucket(rate.bytes)
        buckets = ((self._messages, rate.messages), (self._bytes, rate.bytes))
        self._buckets = [(bucket, max(1, int(each * REFILL))) for bucket, each in buckets if bucket is not None]
        if self._waiting:
            self._wait(0.0)  # what was waited for may come sooner now

    def _bucket(self, rate: int) -> TokenBucket | None:
        return TokenBucket(self._clock, rate) if rate > 0 else None

    def published(self, client: Publisher, messages: int, size: int) -> None:
        """A connection published so many messages, of `size` bytes together."""
        enough = True
        if self._messages is not None:
            self._messages.take(messages)
            enough = self._messages.tokens > 0
        if self._bytes is not None:
            self._bytes.take(size)
            enough = enough and self._bytes.tokens > 0
        if not enough:
            client.pause_reading()
            self._waiting.append(client)
            if self._timer is None:
                self._wait(self._seconds())

    def _seconds(self) -> float:
        """How long until somebody may go on."""
        return max((bucket.seconds_until(count) for bucket, count in self._buckets), default=0.0)

    def _wait(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_later(seconds, self._go_on)

    def _go_on(self) -> None:
        self._timer = None
        while self._waiting and not (seconds := self._seconds()):
            self._waiting.pop(0).resume_reading()  # which may publish at once, and wait again
        if self._waiting and self._timer is None:
            self._wait(seconds)


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
        """Return how many messages came a second."""
        return self._now()[0]

    def bytes(self) -> float:
        """Return how many bytes came a second."""
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


class Limits:
    """Limit how fast messages come in and go out; without a rate at first."""

    def __init__(self, clock: Clock) -> None:
        self.publish = PublishLimiter(clock)
        self.dispatch = DispatchLimiter(clock)


class BrokerLimits(Limits):
    """brokerPublisherThrottlingMaxMessageRate and -ByteRate, dispatchThrottlingRateInMsg and -InByte."""

    def update(self, config: Config) -> None:
        """Be as the settings are."""
        self.publish.update(
            PublishRate(config.brokerPublisherThrottlingMaxMessageRate, config.brokerPublisherThrottlingMaxByteRate)
        )
        self.dispatch.update(DispatchRate(config.dispatchThrottlingRateInMsg, config.dispatchThrottlingRateInByte))


FOLDER = "/admin/resourcegroups"


class Records(Protocol):
    """Read groups from the metadata."""

    def get(self, folder: str, *names: str) -> Any: ...


class ResourceGroups:
    """The limits of each group that topics belong to.

    Topics of all brokers take from one bucket, so that the rate is the group's wherever they are; brokers of Pulsar get
    there by telling each other what they use.
    """

    def __init__(self, clock: Clock, records: Records, *, limit_dispatch: bool) -> None:
        self._clock = clock
        self._records = records
        self._limit_dispatch = limit_dispatch
        self._no_limits = Limits(clock)
        self._limits: dict[str, Limits] = {}

    def limits_of(self, name: str) -> Limits:
        """Return the limits of a group, as they are now; "" and a group that is not there have none."""
        group: Mapping[str, Any] | None = self._records.get(FOLDER, name) if name else None
        if group is None:
            return self._no_limits
        if name not in self._limits:
            self._limits[name] = Limits(self._clock)
        limits = self._limits[name]
        limits.publish.update(PublishRate(group.get("publishRateInMsgs") or 0, group.get("publishRateInBytes") or 0))
        if self._limit_dispatch:
            rate = DispatchRate(group.get("dispatchRateInMsgs") or 0, group.get("dispatchRateInBytes") or 0)
            limits.dispatch.update(rate)
        return limits
