"""Open producers and consumers again after the broker closed them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pulsarium.broker.clock import Timeline, Timer
from pulsarium.broker.web.websocket.link import BrokerFailure
from pulsarium.proto.generated import PulsarApi_pb2 as pb

FIRST: Final = 0.1  # seconds before the second attempt
LONGEST: Final = 30.0
FINAL: Final = frozenset(
    {
        pb.AuthenticationError,
        pb.AuthorizationError,
        pb.TopicNotFound,
        pb.SubscriptionNotFound,
        pb.TopicTerminatedError,
        pb.IncompatibleSchema,
        pb.ProducerFenced,
        pb.InvalidTopicName,
        pb.NotAllowedError,
    }
)


def is_final(failed: BrokerFailure) -> bool:
    """Return whether no retry overcomes an error."""
    return failed.code in FINAL


class Retry:
    """Attempts that come later and later: at once, then after 0.1 s, and up to 30 s."""

    def __init__(self, clock: Timeline, attempt: Callable[[], None]) -> None:
        self._clock = clock
        self._attempt = attempt
        self._delay = 0.0
        self._timer: Timer | None = None

    def later(self) -> None:
        """Start the timer of the next attempt."""
        self.stop()
        self._timer = self._clock.call_later(self._delay, self._attempt)
        self._delay = min(max(FIRST, self._delay * 2), LONGEST)

    def succeeded(self) -> None:
        """Begin with the shortest delay again."""
        self._delay = 0.0

    def stop(self) -> None:
        """Stop the timer of the next attempt."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
