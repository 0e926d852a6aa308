"""Consumers: each is one client's end of a subscription."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pulsarium.broker.model.client import Client, Delivery
from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.broker.model.subscription.base import Subscription

INT_MAX = 2**31 - 1
KEPT = 0.9
"""Weight of the old value in the running average of messages an entry."""


@dataclass(frozen=True, slots=True)
class KeySharedOptions:
    """Options of KeySharedMeta in SUBSCRIBE: a KeySharedMode, and the inclusive hash ranges of a STICKY consumer.

    With `entry_buckets`, the ranges are those of all entry buckets, and the broker spreads them (PIP-486).
    """

    mode: int = pb.AUTO_SPLIT
    ranges: tuple[tuple[int, int], ...] = ()
    out_of_order: bool = False
    entry_buckets: bool = False


@dataclass(slots=True)
class ConsumerOptions:
    """Options of a consumer, from its SUBSCRIBE."""

    consumer_id: int
    name: str = ""
    type: int = 0
    priority_level: int = 0
    read_compacted: bool = False
    epoch: int | None = None
    key_shared: KeySharedOptions = field(default_factory=KeySharedOptions)
    metadata: dict[str, str] = field(default_factory=dict)
    auto_schema: bool = False  # the consumer takes messages of any schema (AUTO_CONSUME)


class Consumer:
    """A consumer: its permits, unacknowledged messages and counters."""

    __slots__ = (
        "acked",
        "acked_ms",
        "auto_schema",
        "blocked",
        "blocked_permits",
        "bytes_out",
        "client",
        "connected_ms",
        "consumed_ms",
        "consumer_id",
        "epoch",
        "first_consumed_flow_ms",
        "first_sent_ms",
        "flow_ms",
        "key_shared",
        "messages_out",
        "messages_per_entry",
        "metadata",
        "name",
        "partition",
        "pending",
        "permits",
        "priority_level",
        "read_compacted",
        "redelivered",
        "subscription",
        "type",
        "unacked",
    )

    def __init__(
        self, client: Client, subscription: Subscription, options: ConsumerOptions, partition: int, now_ms: int
    ) -> None:
        self.client = client
        self.subscription = subscription
        self.consumer_id = options.consumer_id
        self.name = options.name
        self.type = options.type
        self.priority_level = options.priority_level
        self.read_compacted = options.read_compacted
        self.epoch = options.epoch
        self.key_shared = options.key_shared
        self.metadata = options.metadata
        self.auto_schema = options.auto_schema
        self.partition = partition
        self.permits = 0
        self.unacked = 0
        self.blocked = False  # the consumer has reached maxUnackedMessagesPerConsumer
        self.blocked_permits = 0  # permits that came while the consumer was blocked
        self.pending: dict[Position, int] = {}  # unacknowledged messages of each entry; Shared types only
        self.messages_out = 0
        self.messages_per_entry = 0.0  # a running average
        self.bytes_out = 0
        self.connected_ms = now_ms
        self.acked = self.redelivered = 0  # for the rates of the stats, which count as Pulsar does
        self.acked_ms = 0
        self.consumed_ms = 0
        self.first_sent_ms = 0
        self.flow_ms = 0
        self.first_consumed_flow_ms = 0

    @property
    def can_receive(self) -> bool:
        return self.permits > 0 and not self.blocked and self.client.room > 0

    def add_permits(self, permits: int) -> None:
        """Add permits. They wrap as int32, as in Pulsar (cmd 11)."""
        if self.blocked:
            self.blocked_permits += permits
            return
        total = self.permits + permits
        self.permits = total if total <= INT_MAX else (total + 2**31) % 2**32 - 2**31

    def unblock(self) -> None:
        """Let the consumer receive again, and add the permits that came while it was blocked."""
        self.blocked = False
        permits, self.blocked_permits = self.blocked_permits, 0
        if permits:
            self.add_permits(permits)

    def deliver(self, deliveries: Sequence[Delivery], *, permits: int, messages: int, size: int) -> None:
        """Send entries, and count their permits, messages and bytes.

        A batch may drive the permits below zero (B-05). A partly acknowledged batch costs only its remaining messages
        (S54-16).
        """
        self.permits -= permits
        self.messages_out += messages
        average = messages / len(deliveries)
        if self.messages_per_entry >= 1:
            average = KEPT * self.messages_per_entry + (1 - KEPT) * average
        self.messages_per_entry = average
        self.bytes_out += size
        self.consumed_ms = self.subscription.topic.now_ms()
        if not self.first_sent_ms:
            self.first_sent_ms = self.consumed_ms
        self.client.messages(self.consumer_id, self.partition, self.epoch, deliveries)
