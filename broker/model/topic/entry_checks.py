"""What a topic's policies ask of each entry; a topic that they ask nothing of has no checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pulsarium.broker.config.keys import Config
from pulsarium.broker.model.errors import MetadataError, NotAllowedError
from pulsarium.broker.model.ledger.position import signed
from pulsarium.broker.model.policy.policies import Policies
from pulsarium.broker.model.rate.publish import Publisher, PublishLimiter
from pulsarium.proto.entry import parse_metadata


@dataclass(frozen=True, slots=True)
class EntryChecks:
    """Limits of 0 are none. They raise what a SEND is told, or EntryError where metadata must be read and cannot."""

    encrypted: bool
    max_size: int  # bytes of the whole entry, not only of its payload (W-05)
    max_delay_ms: int
    limiters: Sequence[PublishLimiter] = ()

    def check_encryption(self, entry: bytes) -> None:
        """What is refused here counts nowhere."""
        if self.encrypted and not parse_metadata(entry).encryption_keys:
            raise MetadataError("Messages must be encrypted")

    def count(self, client: Publisher, messages: int, size: int) -> None:
        """An entry came: its connection pauses where that was too fast."""
        for limiter in self.limiters:
            limiter.published(client, messages, size)

    def check_limits(self, entry: bytes, is_chunk: bool) -> None:
        """What is refused here is in the topic's counters."""
        if 0 < self.max_size < len(entry) and not is_chunk:
            raise NotAllowedError("Exceed maximum message size")
        if self.max_delay_ms > 0:
            metadata = parse_metadata(entry)
            delay = metadata.deliver_at_time - signed(metadata.publish_time)
            if metadata.HasField("deliver_at_time") and delay > self.max_delay_ms:
                raise NotAllowedError(f"Exceeds max allowed delivery delay of {self.max_delay_ms} milliseconds")


def entry_checks(
    policies: Policies, config: Config, *, persistent: bool, limiters: Sequence[PublishLimiter] = ()
) -> EntryChecks | None:
    """The checks of a topic. What is not below maxMessageSize is left to the frame limit, as in Pulsar."""
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
