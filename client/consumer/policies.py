"""Policies of consumers: redelivery delays, dead letters, and the limits of `batch_receive`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from pulsarium.client.errors import InvalidConfiguration


class RedeliveryBackoff(Protocol):
    """The delay before a message is redelivered."""

    def next(self, redelivery_count: int) -> float:
        """Return the delay in seconds.

        Args:
            redelivery_count: The number of redeliveries before this one.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class MultiplierRedeliveryBackoff:
    """A delay that begins with `min_delay`, and grows by `multiplier` with each redelivery, up to `max_delay`.

    Only Shared and KeyShared subscriptions count redeliveries. On others, the delay is always `min_delay`.
    """

    min_delay: float = 1.0
    """Seconds before the first redelivery."""
    max_delay: float = 60.0
    """The greatest delay, in seconds."""
    multiplier: float = 2.0
    """The factor between one delay and the next, greater than 1."""

    def __post_init__(self) -> None:
        if not 0 <= self.min_delay <= self.max_delay:
            raise InvalidConfiguration("min_delay of a backoff must be at least 0 and at most max_delay")
        if self.multiplier <= 1:
            raise InvalidConfiguration("multiplier of a backoff must be greater than 1")

    def next(self, redelivery_count: int) -> float:
        """Return the delay in seconds.

        Args:
            redelivery_count: The number of redeliveries before this one.
        """
        if redelivery_count <= 0 or self.min_delay == 0:
            return self.min_delay
        if redelivery_count > math.log(self.max_delay / self.min_delay, self.multiplier) + 1:
            return self.max_delay  # the power may exceed a float
        return min(self.min_delay * self.multiplier**redelivery_count, self.max_delay)


@dataclass(frozen=True)
class ConsumerDeadLetterPolicy:
    """The topics of messages that are delivered too often (PIP-22), on Shared and KeyShared subscriptions."""

    max_redeliver_count: int
    """The number of redeliveries after which a message goes to the dead letter topic."""
    dead_letter_topic: str | None = None
    """The dead letter topic, or None for `<topic>-<subscription>-DLQ`. As in Java, each partition then has its own."""
    retry_letter_topic: str | None = None
    """The topic of `reconsume_later`, or None for `<topic>-<subscription>-RETRY`."""
    initial_subscription_name: str | None = None
    """A subscription that is created with the dead letter topic, so that no message in it is lost (PIP-124)."""

    def __post_init__(self) -> None:
        if self.max_redeliver_count < 1:
            raise InvalidConfiguration("max_redeliver_count must be greater than 0")


@dataclass(frozen=True)
class ConsumerBatchReceivePolicy:
    """The limits of `batch_receive`, which returns at the first one that is reached. 0 or less is no limit."""

    max_num_message: int = -1
    """The number of messages. The receiver queue is at least as large."""
    max_num_bytes: int = 10 * 1024 * 1024
    """The size of all contents, in bytes. A larger message is returned alone."""
    timeout: float = 0.1
    """Seconds after which `batch_receive` returns the messages that have arrived."""

    def __post_init__(self) -> None:
        if max(self.max_num_message, self.max_num_bytes, self.timeout) <= 0:
            raise InvalidConfiguration("a batch receive policy needs max_num_message, max_num_bytes or timeout")
