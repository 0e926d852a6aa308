"""Options of consumers, readers and table views."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any, Generic
from uuid import uuid4

from pulsarium.client.choices import check_choices
from pulsarium.client.consumer.intercepting import InterceptsConsumer
from pulsarium.client.consumer.last_entry import PayloadToMessageIdConverter
from pulsarium.client.consumer.policies import (
    ConsumerBatchReceivePolicy,
    ConsumerDeadLetterPolicy,
    RedeliveryBackoff,
)
from pulsarium.client.consumer.start import Start
from pulsarium.client.entry.crypto import ConsumerCryptoFailureAction, KeyReader
from pulsarium.client.entry.decoding import Decoder, MessagePayloadProcessor
from pulsarium.client.errors import InvalidConfiguration, InvalidTopicName
from pulsarium.client.message_id import MessageId
from pulsarium.client.schema.schema import BYTES, Schema, T
from pulsarium.client.topics import full_name
from pulsarium.proto.generated import PulsarApi_pb2 as pb


class ConsumerType(enum.Enum):
    """The type of a subscription, which decides which of its consumers receives a message."""

    Exclusive = pb.CommandSubscribe.Exclusive
    Shared = pb.CommandSubscribe.Shared
    Failover = pb.CommandSubscribe.Failover
    KeyShared = pb.CommandSubscribe.Key_Shared


IN_ORDER = frozenset({ConsumerType.Exclusive, ConsumerType.Failover})


class InitialPosition(enum.Enum):
    """The position of a new subscription: after the last message, or at the first one."""

    Latest = pb.CommandSubscribe.Latest
    Earliest = pb.CommandSubscribe.Earliest


class KeySharedMode(enum.Enum):
    """The assignment of key hashes to KeyShared consumers.

    The broker assigns them (AutoSplit), or `sticky_ranges` of each consumer (Sticky).
    """

    AutoSplit = pb.AUTO_SPLIT
    Sticky = pb.STICKY


@dataclass(frozen=True, kw_only=True)
class ConsumerKeySharedPolicy:
    """The key assignment of a KeyShared consumer. Ranges of hashes are inclusive, within 0..65535."""

    key_shared_mode: KeySharedMode = KeySharedMode.AutoSplit
    allow_out_of_order_delivery: bool = False
    sticky_ranges: tuple[tuple[int, int], ...] = ()
    entry_buckets: bool = False
    """The ranges are the entry buckets of a segment, which the broker divides among the consumers (PIP-486)."""

    def __post_init__(self) -> None:
        check_choices(self)


class OrderedNegativeAckMode(enum.Enum):
    """The order of keys after negative acknowledgements on KeyShared subscriptions (PIP-493, a draft).

    BestEffort keeps the order on brokers that can. Required refuses other brokers, and receives nothing from a broker
    that cannot any more.
    """

    Disabled = "disabled"
    BestEffort = "best effort"
    Required = "required"


class RegexSubscriptionMode(enum.Enum):
    """The domains of topics that a pattern is matched against, unless the pattern begins with a domain."""

    PersistentOnly = pb.CommandGetTopicsOfNamespace.PERSISTENT
    NonPersistentOnly = pb.CommandGetTopicsOfNamespace.NON_PERSISTENT
    AllTopics = pb.CommandGetTopicsOfNamespace.ALL

    @classmethod
    def of_domain(cls, domain: str) -> RegexSubscriptionMode:
        """Return the mode for `persistent` or `non-persistent`. Raise `InvalidTopicName` for another domain."""
        modes = {"persistent": cls.PersistentOnly, "non-persistent": cls.NonPersistentOnly}
        if domain not in modes:
            raise InvalidTopicName(f"{domain}:// is no domain of topics: use persistent:// or non-persistent://")
        return modes[domain]


@dataclass(frozen=True, kw_only=True)
class ReceivingOptions(Generic[T]):
    """Options of consumers and readers, as documented in `Client.subscribe`."""

    schema: Schema[T] = BYTES  # type: ignore[assignment]  # mypy: T may be another
    receiver_queue_size: int = 1000
    max_total_receiver_queue_size_across_partitions: int = 50000
    read_compacted: bool = False
    start_message_id_inclusive: bool = False
    crypto_key_reader: KeyReader | None = None
    crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL
    payload_to_message_id_converter: PayloadToMessageIdConverter | None = None
    message_payload_processor: MessagePayloadProcessor | None = None
    max_pending_chunked_message: int = 10
    auto_ack_oldest_chunked_message_on_queue_full: bool = False
    expire_time_of_incomplete_chunked_message: float = 60.0
    auto_update_partitions_interval: float = 60.0

    def __post_init__(self) -> None:
        check_choices(self)
        if self.receiver_queue_size < 0:
            raise InvalidConfiguration(f"receiver_queue_size {self.receiver_queue_size} is negative")
        if self.max_pending_chunked_message < 0 or self.expire_time_of_incomplete_chunked_message < 0:
            raise InvalidConfiguration("a limit of chunked messages must not be negative")
        if self.auto_update_partitions_interval <= 0:
            raise InvalidConfiguration("auto_update_partitions_interval must be positive")

    def decoder(self) -> Decoder:
        """Return the decoder of received entries."""
        return Decoder(self.crypto_key_reader, crypto_failure_action=self.crypto_failure_action)


@dataclass(frozen=True)
class ConsumerOptions(ReceivingOptions[T]):
    """Options of `Client.subscribe`, which documents them."""

    topic: str | Sequence[str] | re.Pattern[str]
    subscription_name: str
    _: KW_ONLY
    consumer_type: ConsumerType = ConsumerType.Exclusive
    initial_position: InitialPosition = InitialPosition.Latest
    consumer_name: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    priority_level: int = 0
    negative_ack_redelivery_delay: float = 60.0
    negative_ack_redelivery_backoff: RedeliveryBackoff | None = None
    ordered_negative_ack: OrderedNegativeAckMode = OrderedNegativeAckMode.Disabled
    unacked_messages_timeout: float | None = None
    ack_timeout_redelivery_backoff: RedeliveryBackoff | None = None
    dead_letter_policy: ConsumerDeadLetterPolicy | None = None
    retry_enable: bool = False
    batch_receive_policy: ConsumerBatchReceivePolicy = field(default_factory=ConsumerBatchReceivePolicy)
    start_paused: bool = False
    interceptors: Sequence[InterceptsConsumer] = ()
    acknowledgement_group_time: float = 0.01
    max_acknowledgement_group_size: int = 1000
    batch_index_ack_enabled: bool = False
    ack_receipt_enabled: bool = False
    replicate_subscription_state_enabled: bool = False
    key_shared_policy: ConsumerKeySharedPolicy | None = None
    pattern_auto_discovery_period: float = 60.0
    regex_subscription_mode: RegexSubscriptionMode = RegexSubscriptionMode.PersistentOnly

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pattern_auto_discovery_period <= 0:
            raise InvalidConfiguration("pattern_auto_discovery_period must be positive")
        if self.negative_ack_redelivery_delay < 0 or self.acknowledgement_group_time < 0:
            raise InvalidConfiguration("negative_ack_redelivery_delay or acknowledgement_group_time is negative")
        if self.max_acknowledgement_group_size < 1:
            raise InvalidConfiguration("max_acknowledgement_group_size must be positive")
        if self.priority_level < 0:
            raise InvalidConfiguration("priority_level is negative")
        if self.unacked_messages_timeout is not None and self.unacked_messages_timeout < 1:
            raise InvalidConfiguration("unacked_messages_timeout must be at least 1 second")
        if self.key_shared_policy is not None and self.consumer_type is not ConsumerType.KeyShared:
            raise InvalidConfiguration("key_shared_policy needs consumer_type KeyShared")
        is_loose = self.key_shared_policy is not None and self.key_shared_policy.allow_out_of_order_delivery
        if self.ordered_negative_ack is OrderedNegativeAckMode.Required and (
            is_loose or self.consumer_type is not ConsumerType.KeyShared
        ):
            raise InvalidConfiguration("ordered_negative_ack Required needs consumer_type KeyShared, in order")
        if self.dead_letter_policy is not None and self.consumer_type in IN_ORDER and not self.retry_enable:
            raise InvalidConfiguration("dead_letter_policy needs consumer_type Shared or KeyShared, or retry_enable")
        if self.receiver_queue_size == 0 and (self.retry_enable or not isinstance(self.topic, str)):
            raise InvalidConfiguration("receiver_queue_size must be positive with several topics")

    @property
    def creates_topic(self) -> bool:
        """Return whether the consumer may create a topic that does not exist."""
        return not isinstance(self.topic, re.Pattern)


@dataclass(frozen=True)
class ReaderOptions(ReceivingOptions[T]):
    """Options of `Client.create_reader`, which documents them."""

    topic: str
    start_message_id: MessageId | None = None
    _: KW_ONLY
    start_message_from_rollback_duration: int = 0
    reader_name: str | None = None
    subscription_role_prefix: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.start_message_id is None) == (self.start_message_from_rollback_duration <= 0):
            raise InvalidConfiguration("a reader takes either start_message_id or start_message_from_rollback_duration")
        if self.receiver_queue_size == 0:
            raise InvalidConfiguration("receiver_queue_size of a reader must be positive")

    def start(self) -> Start:
        """Return the start of the reader."""
        if self.start_message_id is None:
            return Start(MessageId.earliest, rollback_duration=self.start_message_from_rollback_duration)
        return Start(self.start_message_id, self.start_message_id_inclusive)

    def consumer_options(self) -> ConsumerOptions[T]:
        """Return the options of the reader's consumer."""
        prefix = "" if self.subscription_role_prefix is None else f"{self.subscription_role_prefix}-"
        name = f"{prefix}reader-{uuid4().hex[:10]}"
        return ConsumerOptions(self.topic, name, consumer_name=self.reader_name or "", **common_to(self))


@dataclass(frozen=True)
class TableViewOptions(ReceivingOptions[T]):
    """Options of `Client.create_table_view`, which documents them."""

    topic: str
    _: KW_ONLY
    read_compacted: bool = True
    subscription_name: str | None = None

    def start(self) -> Start:
        """Return the start of the view, the earliest message."""
        return Start(MessageId.earliest)

    def consumer_options(self) -> ConsumerOptions[T]:
        """Return the options of the view's consumer."""
        common = common_to(self)
        if not full_name(self.topic).startswith("persistent:"):
            common["read_compacted"] = False
        return ConsumerOptions(self.topic, self.subscription_name or f"reader-{uuid4().hex[:10]}", **common)


def common_to(options: ReceivingOptions[Any]) -> dict[str, Any]:
    """Return the options of `ReceivingOptions`, as keyword arguments for other options."""
    return {one.name: getattr(options, one.name) for one in fields(ReceivingOptions)}
