"""What a consumer or reader may be told when it is opened."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any, Generic

from pulsarium.client.consumer.last_entry import PayloadToMessageIdConverter
from pulsarium.client.entry.crypto import ConsumerCryptoFailureAction, KeyReader
from pulsarium.client.entry.payload_processor import MessagePayloadProcessor
from pulsarium.client.errors import InvalidConfiguration, InvalidTopicName
from pulsarium.client.message_id import MessageId
from pulsarium.client.schema.schema import BYTES, Schema, T
from pulsarium.proto.generated import PulsarApi_pb2 as pb


class ConsumerType(enum.Enum):
    """Who of a subscription's consumers gets which message."""

    Exclusive = pb.CommandSubscribe.Exclusive
    Shared = pb.CommandSubscribe.Shared
    Failover = pb.CommandSubscribe.Failover
    KeyShared = pb.CommandSubscribe.Key_Shared


class InitialPosition(enum.Enum):
    """Where a subscription begins that is not there yet."""

    Latest = pb.CommandSubscribe.Latest
    Earliest = pb.CommandSubscribe.Earliest


class KeySharedMode(enum.Enum):
    """Who decides which key hashes a KeyShared consumer gets: the broker, or its `sticky_ranges`."""

    AutoSplit = pb.AUTO_SPLIT
    Sticky = pb.STICKY


@dataclass(frozen=True, kw_only=True)
class ConsumerKeySharedPolicy:
    """How a KeyShared subscription shares keys; ranges of hashes are inclusive, within 0..65535."""

    key_shared_mode: KeySharedMode = KeySharedMode.AutoSplit
    allow_out_of_order_delivery: bool = False
    sticky_ranges: tuple[tuple[int, int], ...] = ()


class RegexSubscriptionMode(enum.Enum):
    """Which topics of its namespace a pattern is held against, where it does not begin with a domain."""

    PersistentOnly = pb.CommandGetTopicsOfNamespace.PERSISTENT
    NonPersistentOnly = pb.CommandGetTopicsOfNamespace.NON_PERSISTENT
    AllTopics = pb.CommandGetTopicsOfNamespace.ALL

    @classmethod
    def of_domain(cls, domain: str) -> RegexSubscriptionMode:
        """Of `persistent` or `non-persistent`; InvalidTopicName for another."""
        modes = {"persistent": cls.PersistentOnly, "non-persistent": cls.NonPersistentOnly}
        if domain not in modes:
            raise InvalidTopicName(f"{domain}:// is no domain of topics")
        return modes[domain]


@dataclass(frozen=True, kw_only=True)
class ReceivingOptions(Generic[T]):
    """What consumers and readers take. Names as in the official Python client, times in seconds."""

    schema: Schema[T] = BYTES
    """What `Message.value` is; told to the broker."""
    receiver_queue_size: int = 1000
    """Messages of each topic and partition that may wait here; at least 1."""
    max_total_receiver_queue_size_across_partitions: int = 50000
    """Messages of all of them."""
    read_compacted: bool = False
    start_message_id_inclusive: bool = False
    """A seek, or a reader's start, at a message delivers that message, too."""
    crypto_key_reader: KeyReader | None = None
    crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL
    payload_to_message_id_converter: PayloadToMessageIdConverter | None = None
    """Computes the last message's id where the broker sends its entry (PIP-429); None: understands Pulsar's format."""
    message_payload_processor: MessagePayloadProcessor | None = None
    """Takes entries apart (PIP-96); None: understands Pulsar's format."""
    auto_update_partitions_interval: float = 60.0
    """How often to look whether a topic has more partitions."""

    def __post_init__(self) -> None:
        if self.receiver_queue_size < 1:
            raise InvalidConfiguration(f"receiver_queue_size {self.receiver_queue_size} is not positive")
        if self.auto_update_partitions_interval <= 0:
            raise InvalidConfiguration("auto_update_partitions_interval must be positive")


@dataclass(frozen=True)
class ConsumerOptions(ReceivingOptions[T]):
    """What `subscribe` takes."""

    topic: str | Sequence[str] | re.Pattern[str]
    """One with its partitions, several, or a pattern; that one may begin with `persistent://tenant/namespace/`."""
    subscription_name: str
    _: KW_ONLY
    consumer_type: ConsumerType = ConsumerType.Exclusive
    initial_position: InitialPosition = InitialPosition.Latest
    consumer_name: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    negative_ack_redelivery_delay: float = 60.0
    batch_index_ack_enabled: bool = False
    """Tell the broker of each acknowledged message of a batch (PIP-54); else only when all of them are."""
    ack_receipt_enabled: bool = False
    """Acknowledging waits for the broker's word that it is kept."""
    replicate_subscription_state_enabled: bool = False
    key_shared_policy: ConsumerKeySharedPolicy | None = None
    pattern_auto_discovery_period: float = 60.0
    """How often to look which topics match a pattern."""
    regex_subscription_mode: RegexSubscriptionMode = RegexSubscriptionMode.PersistentOnly

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pattern_auto_discovery_period <= 0:
            raise InvalidConfiguration("pattern_auto_discovery_period must be positive")


@dataclass(frozen=True)
class ReaderOptions(ReceivingOptions[T]):
    """What `create_reader` takes."""

    topic: str
    """With its partitions, where it has some."""
    start_message_id: MessageId
    """Reading begins behind it; of partitioned topics the earliest or the latest."""
    _: KW_ONLY
    reader_name: str | None = None

    def consumer_options(self, subscription_name: str) -> ConsumerOptions[T]:
        """Of the consumer that the reader stands on."""
        common: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(ReceivingOptions)}
        return ConsumerOptions(self.topic, subscription_name, consumer_name=self.reader_name or "", **common)
