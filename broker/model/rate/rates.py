"""Rate limits: publish rates of topics, brokers and resource groups, and dispatch rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from pulsarium.broker.clock import Timeline, Timer
from pulsarium.broker.config.keys import Config
from pulsarium.broker.model.errors import NotAllowedError
from pulsarium.broker.model.policy.policies import ConsumerSubscribeRate, DispatchRate, PublishRate

RESOLUTION = 0.016  # seconds between two updates of the tokens, as in Pulsar
SLACK = 1e-6  # tolerance for sums of times, in seconds or tokens
SHORTEST_WAIT = 1e-3  # seconds


def nothing_more() -> float:
    """Return 0, for a rate without an addition."""
    return 0.0


class TokenBucket:
    """A token bucket with `rate` tokens in a `period` of seconds, and at most that many at once. It begins full.

    Taking more tokens than there are is allowed, and leaves a debt. `more` is added to the rate at each update. An
    update adds tokens for all the time since the last one, and is at least `resolution` seconds after it.
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
        self._rest = 0.0  # seconds left over from the last update, too few for another token
        self.tokens = self.rate

    @property
    def rate(self) -> int:
        """Return the current tokens a period, at least 1.

        Clients state how many messages an entry has, at times less than 0.
        """
        return max(1, self._rate + int(self._more()))

    def take(self, count: int) -> None:
        """Take tokens."""
        self._look()
        self.tokens -= count

    def available(self) -> int:
        """Return how many tokens there are now. 0 or less is none."""
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
        """Return how many seconds after an update the next one can add tokens."""
        return max(self._resolution, self._period / rate - self._rest)

    def seconds_until(self, count: int) -> float:
        """Return in how many seconds `count` tokens are there, if none is taken. 0 is now."""
        missing = min(count, self.rate) - self.available()
        if missing <= 0:
            return 0.0
        rate, passed = self.rate, self._clock.monotonic() - self._seen
        return max(SHORTEST_WAIT, max(self._step(rate), missing * self._period / rate - self._rest) - passed)


REFILL = 0.01  # share of a second's tokens that must be there before a connection resumes


class RatedPublisher(Protocol):
    """A connection that publishes."""

    def pause_reading(self) -> None:
        """Pause the connection's commands, until `resume_reading` was called as often."""
        ...

    def resume_reading(self) -> None:
        """Resume the connection, beginning with commands that came meanwhile."""
        ...


class PublishLimiter:
    """A publish rate limit, which pauses connections and refuses nothing.

    A message that comes too fast is accepted. Then its connection pauses until there are tokens again, with all its
    producers and other requests. Paused connections resume in turn, each as long as there are tokens left.
    """

    def __init__(self, clock: Timeline) -> None:
        self._clock = clock
        self._rate = PublishRate()
        self._buckets: list[tuple[TokenBucket, int]] = []  # each with the tokens that let a connection resume
        self._messages: TokenBucket | None = None
        self._bytes: TokenBucket | None = None
        self._waiting: list[RatedPublisher] = []  # in the order of their pauses
        self._timer: Timer | None = None

    @property
    def is_active(self) -> bool:
        """Return whether there is any limit."""
        return bool(self._buckets)

    def holds(self, client: RatedPublisher) -> bool:
        """Return whether the limit pauses a connection."""
        return client in self._waiting

    def update(self, rate: PublishRate) -> None:
        """Change the rate. The buckets begin with the tokens of one second."""
        if rate == self._rate:
            return
        self._rate = rate
        self._messages, self._bytes = self._bucket(rate.messages), self._bucket(rate.bytes)
        buckets = ((self._messages, rate.messages), (self._bytes, rate.bytes))
        self._buckets = [(bucket, max(1, int(each * REFILL))) for bucket, each in buckets if bucket is not None]
        if self._waiting:
            self._wait(0.0)  # the new rate may end the pause sooner

    def _bucket(self, rate: int) -> TokenBucket | None:
        return TokenBucket(self._clock, rate) if rate > 0 else None

    def published(self, client: RatedPublisher, messages: int, size: int) -> None:
        """Take tokens for published messages of `size` bytes, and pause the connection if too few are left."""
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
        """Return in how many seconds a connection may resume."""
        return max((bucket.seconds_until(count) for bucket, count in self._buckets), default=0.0)

    def _wait(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_later(seconds, self._go_on)

    def _go_on(self) -> None:
        self._timer = None
        while self._waiting and not (seconds := self._seconds()):
            self._waiting.pop(0).resume_reading()  # the connection may publish at once, and pause again
        if self._waiting and self._timer is None:
            self._wait(seconds)


class Counts(Protocol):
    """A topic that counts published messages and bytes."""

    messages_in: int
    bytes_in: int


class PublishAverage:
    """The recent publish rate of a topic, for dispatch rates that are relative to it.

    The rate is that of the last whole interval of statsUpdateFrequencyInSecs, or of the time since the last call, if
    that is longer. It costs nothing while it is not used.
    """

    def __init__(self, topic: Counts, clock: Timeline, config: Config) -> None:
        self._topic = topic
        self._clock = clock
        self._config = config
        self._since = clock.monotonic()
        self._counts = (0, 0)
        self._averages = (0.0, 0.0)

    def messages(self) -> float:
        """Return messages a second."""
        return self._now()[0]

    def bytes(self) -> float:
        """Return bytes a second."""
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
    """The tokens of one dispatch rate limit.

    All tokens of a period come at once, which is also their maximum. Messages beyond the limit leave a debt.
    """

    def __init__(self, clock: Timeline, average: PublishAverage | None = None) -> None:
        self._clock = clock
        self._average = average  # for relativeToPublishRate
        self._rate = DispatchRate()
        self.messages: TokenBucket | None = None
        self.bytes: TokenBucket | None = None

    @property
    def is_active(self) -> bool:
        """Return whether there is any limit."""
        return self.messages is not None or self.bytes is not None

    def update(self, rate: DispatchRate) -> None:
        """Change the rate."""
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
        """Take tokens for delivered messages."""
        if self.messages is not None:
            self.messages.take(messages)
        if self.bytes is not None:
            self.bytes.take(size)

    def seconds(self) -> float:
        """Return in how many seconds messages may be delivered."""
        return max(0.0 if bucket is None else bucket.seconds_until(1) for bucket in (self.messages, self.bytes))


class Limits:
    """A publish and a dispatch rate limit, at first without rates."""

    def __init__(self, clock: Timeline) -> None:
        self.publish = PublishLimiter(clock)
        self.dispatch = DispatchLimiter(clock)


class BrokerLimits(Limits):
    """Limits of a broker.

    Their keys are brokerPublisherThrottlingMaxMessageRate and -ByteRate, and dispatchThrottlingRateInMsg and -InByte.
    """

    def update(self, config: Config) -> None:
        """Apply the current settings."""
        self.publish.update(
            PublishRate(config.brokerPublisherThrottlingMaxMessageRate, config.brokerPublisherThrottlingMaxByteRate)
        )
        self.dispatch.update(DispatchRate(config.dispatchThrottlingRateInMsg, config.dispatchThrottlingRateInByte))


FOLDER = "/admin/resourcegroups"


class ResourceGroupRecords(Protocol):
    """The metadata in which resource groups are stored."""

    def get(self, folder: str, *names: str) -> Any:
        """Return a record, or None."""


class ResourceGroups:
    """The limits of resource groups.

    Topics of all brokers take tokens from one bucket, so that the rate is the group's as a whole. Brokers of Pulsar
    reach this by exchanging their usage.
    """

    def __init__(self, clock: Timeline, records: ResourceGroupRecords, *, limit_dispatch: bool) -> None:
        self._clock = clock
        self._records = records
        self._limit_dispatch = limit_dispatch
        self._no_limits = Limits(clock)
        self._limits: dict[str, Limits] = {}

    def limits_of(self, name: str) -> Limits:
        """Return the current limits of a group. "" and an unknown group have none."""
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


MANY_BUCKETS = 1_000  # above this number, full ones are removed


class SubscribeRate:
    """Limit how often one consumer may subscribe. A consumer is a host, a consumer name and an id."""

    def __init__(self, clock: Timeline, rate: ConsumerSubscribeRate) -> None:
        self._clock = clock
        self._rate = rate
        self._buckets: dict[tuple[str, str, int], TokenBucket] = {}

    def check(self, address: str, consumer_name: str, consumer_id: int) -> None:
        """Count a SUBSCRIBE, or raise `NotAllowedError` when it exceeds the rate."""
        rate = self._rate
        if rate.subscribes <= 0 or rate.period_seconds <= 0:
            return
        consumer = (address.partition(":")[0], consumer_name, consumer_id)
        bucket = self._buckets.get(consumer)
        if bucket is None:
            self._forget_idle()
            bucket = self._buckets[consumer] = TokenBucket(self._clock, rate.subscribes, rate.period_seconds)
        if bucket.available() <= 0:
            text, most = "Subscribe limited by subscribe rate limit per consumer.", rate.subscribes
            raise NotAllowedError(text, limit="subscribeRate", allowed=most, seconds=rate.period_seconds)
        bucket.take(1)

    def _forget_idle(self) -> None:
        """Remove full buckets, because a new bucket is full too."""
        if len(self._buckets) >= MANY_BUCKETS:
            limit = self._rate.subscribes
            self._buckets = {each: bucket for each, bucket in self._buckets.items() if bucket.available() < limit}
