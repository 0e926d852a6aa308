"""Policies of consumers: how often a message is delivered, how long to wait before, and how many are taken at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from pulsarium.client.errors import InvalidConfiguration


class RedeliveryBackoff(Protocol):
    """Says how long to wait before a message is delivered again."""

    def next(self, redelivery_count: int) -> float:
        """Seconds, of a message that the broker had delivered again so many times already."""
        ...


@dataclass(frozen=True, kw_only=True)
class MultiplierRedeliveryBackoff:
    """`min_delay`, and `multiplier` times longer after each redelivery, up to `max_delay`; seconds.

    Only Shared and KeyShared subscriptions count redeliveries: on others it is always `min_delay`.
    """

    min_delay: float = 1.0
    """Before the first redelivery."""
    max_delay: float = 60.0
    """Before any."""
    multiplier: float = 2.0
    """Of one delay to the next."""

    def __post_init__(self) -> None:
        if not 0 <= self.min_delay <= self.max_delay:
            raise InvalidConfiguration("a backoff's min_delay is at least 0 and at most max_delay")
        if self.multiplier <= 1:
            raise InvalidConfiguration("a backoff's multiplier must be greater than 1")

    def next(self, redelivery_count: int) -> float:
        """Seconds, as RedeliveryBackoff says."""
        if redelivery_count <= 0 or self.min_delay == 0:
            return self.min_delay
        if redelivery_count > math.log(self.max_delay / self.min_delay, self.multiplier) + 1:
            return self.max_delay  # where the power may be too big a number
        return min(self.min_delay * self.multiplier**redelivery_count, self.max_delay)


@dataclass(frozen=True)
class ConsumerDeadLetterPolicy:
    """Where messages go that are delivered again and again (PIP-22), on Shared and KeyShared subscriptions."""

    max_redeliver_count: int
    """A message that was delivered again so many times goes to the dead letter topic instead of coming once more."""
    dead_letter_topic: str | None = None
    """None: `<topic>-<subscription>-DLQ`, of a partitioned topic one for each partition, as Java has it."""
    retry_letter_topic: str | None = None
    """Where `reconsume_later` puts messages; None: `<topic>-<subscription>-RETRY`."""
    initial_subscription_name: str | None = None
    """A subscription of the dead letter topic to be created with it, so that nothing in it gets lost (PIP-124)."""

    def __post_init__(self) -> None:
        if self.max_redeliver_count < 1:
            raise InvalidConfiguration("max_redeliver_count must be greater than 0")


@dataclass(frozen=True)
class ConsumerBatchReceivePolicy:
    """When `batch_receive` has enough. What is 0 or less does not count."""

    max_num_message: int = -1
    """Messages; the receiver queue is at least as big."""
    max_num_bytes: int = 10 * 1024 * 1024
    """Bytes of contents; a bigger message comes alone."""
    timeout: float = 0.1
    """Seconds, after which it takes what there is."""

    def __post_init__(self) -> None:
        if max(self.max_num_message, self.max_num_bytes, self.timeout) <= 0:
            raise InvalidConfiguration("a batch receive policy needs max_num_message, max_num_bytes or a timeout")
