"""Checks that policies add to each published entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pulsarium.broker.config.keys import Config
from pulsarium.broker.model.errors import MetadataError, NotAllowedError
from pulsarium.broker.model.policy.policies import Policies
from pulsarium.broker.model.rate.rates import PublishLimiter, RatedPublisher
from pulsarium.proto.entry import parse_metadata
from pulsarium.proto.numbers import signed


@dataclass(frozen=True, slots=True)
class EntryChecks:
    """Checks of published entries, where a limit of 0 is no limit.

    Each check raises the error for the SEND, or `EntryError` for unreadable metadata.
    """

    encrypted: bool
    max_size: int  # in bytes of the whole entry, not only of its payload
    max_delay_ms: int
    limiters: Sequence[PublishLimiter] = ()

    def check_encryption(self, entry: bytes) -> None:
        """Raise `MetadataError` for an unencrypted entry. Refused entries are not in the topic's counters."""
        if self.encrypted and not parse_metadata(entry).encryption_keys:
            raise MetadataError("Messages must be encrypted", limit="encryptionRequired")

    def count(self, client: RatedPublisher, messages: int, size: int) -> None:
        """Take tokens for an entry. The connection pauses if it publishes too fast."""
        for limiter in self.limiters:
            limiter.published(client, messages, size)

    def check_limits(self, entry: bytes, is_chunk: bool) -> None:
        """Raise `NotAllowedError` for an entry beyond a limit. Refused entries are in the topic's counters."""
        if 0 < self.max_size < len(entry) and not is_chunk:
            raise NotAllowedError(
                "Exceed maximum message size", limit="maxMessageSize", allowed=self.max_size, size=len(entry)
            )
        if self.max_delay_ms > 0:
            metadata = parse_metadata(entry)
            delay = metadata.deliver_at_time - signed(metadata.publish_time)
            if metadata.HasField("deliver_at_time") and delay > self.max_delay_ms:
                text = f"Exceeds max allowed delivery delay of {self.max_delay_ms} milliseconds"
                raise NotAllowedError(text, limit="delayedDelivery", delay=delay)


def entry_checks(
    policies: Policies, config: Config, *, persistent: bool, limiters: Sequence[PublishLimiter] = ()
) -> EntryChecks | None:
    """Return the checks of a topic, or None without any.

    The frame limit takes the place of a policy that is not below maxMessageSize, as in Pulsar.
    """
    delay = policies.delayed_delivery
    size = policies.max_message_size
    checks = EntryChecks(
        encrypted=policies.encryption_required,
        max_size=size if size < config.maxMessageSize else 0,
        max_delay_ms=delay.max_delay_ms if delay.active and persistent else 0,
        limiters=tuple(limiter for limiter in limiters if limiter.is_active),
    )
    needed = checks.encrypted or checks.max_size > 0 or checks.max_delay_ms > 0 or checks.limiters
    return checks if needed else None
