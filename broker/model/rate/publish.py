"""How fast messages come in to a topic, or to a broker: who publishes too fast is not read from for a while."""

from __future__ import annotations

from typing import Protocol

from pulsarium.broker.clock import Clock, Timer
from pulsarium.broker.model.policy.policies import PublishRate
from pulsarium.broker.model.rate.token_bucket import TokenBucket

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
