"""What a consumer or reader may be told when it is opened."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any, Generic
from uuid import uuid4

from pulsarium.client.consumer.interceptors import ConsumerInterceptor
from pulsarium.client.consumer.last_entry import PayloadToMessageIdConverter
from pulsarium.client.consumer.policies import (
    ConsumerBatchReceivePolicy,
    ConsumerDeadLetterPolicy,
    RedeliveryBackoff,
)
from pulsarium.client.consumer.start import Start
from pulsarium.client.entry.crypto import ConsumerCryptoFailureAction, KeyReader
from pulsarium.client.entry.decoding import Decoder
from pulsarium.client.entry.payload_processor import MessagePayloadProcessor
from pulsarium.client.errors import InvalidConfiguration, InvalidTopicName
from pulsarium.client.message_id import MessageId
from pulsarium.client.schema.schema import BYTES, Schema, T
from pulsarium.client.topics import full_name
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
    """Messages of each topic and partition that may wait here. 0, of a consumer on one topic without partitions: the
    broker is asked for each message when somebody wants it; then there must be no batches in the topic."""
    max_total_receiver_queue_size_across_partitions: int = 50000
    """Messages of all of them."""
    read_compacted: bool = False
    """Of a compacted topic only the newest message of each key."""
    start_message_id_inclusive: bool = False
    """A seek, or a reader's start, at a message delivers that message, too."""
    crypto_key_reader: KeyReader | None = None
    """Finds the keys that decrypt."""
    crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL
    """What becomes of a message that cannot be decrypted."""
    payload_to_message_id_converter: PayloadToMessageIdConverter | None = None
    """Computes the last message's id where the broker sends its entry (PIP-429); None: understands Pulsar's format."""
    message_payload_processor: MessagePayloadProcessor | None = None
    """Takes entries apart (PIP-96); None: understands Pulsar's format."""
    max_pending_chunked_message: int = 10
    """Messages of several chunks (PIP-37) of each topic and partition that may be incomplete here; with one more the
    oldest is given up. 0: any number."""
    auto_ack_oldest_chunked_message_on_queue_full: bool = False
    """What is given up then is acknowledged; else it is left for another delivery."""
    expire_time_of_incomplete_chunked_message: float = 60.0
    """After so long the chunks of a message that is still incomplete are acknowledged. 0: never."""
    auto_update_partitions_interval: float = 60.0
    """How often to look whether a topic has more partitions."""

    def __post_init__(self) -> None:
        if self.receiver_queue_size < 0:
            raise InvalidConfiguration(f"receiver_queue_size {self.receiver_queue_size} is negative")
        if self.max_pending_chunked_message < 0 or self.expire_time_of_incomplete_chunked_message < 0:
            raise InvalidConfiguration("a limit of chunked messages is negative")
        if self.auto_update_partitions_interval <= 0:
            raise InvalidConfiguration("auto_update_partitions_interval must be positive")

    def decoder(self) -> Decoder:
        """Of what is received."""
        return Decoder(self.crypto_key_reader, crypto_failure_action=self.crypto_failure_action)


@dataclass(frozen=True)
class ConsumerOptions(ReceivingOptions[T]):
    """What `subscribe` takes."""

    topic: str | Sequence[str] | re.Pattern[str]
    """One with its partitions, several, or a pattern; that one may begin with `persistent://tenant/namespace/`."""
    subscription_name: str
    """Made by its first consumer."""
    _: KW_ONLY
    schema: Schema[T] = BYTES  # again: else pyright takes it for bytes in what `arguments_of` makes
    consumer_type: ConsumerType = ConsumerType.Exclusive
    """Who of its consumers gets which message."""
    initial_position: InitialPosition = InitialPosition.Latest
    """Where it begins, if it is made by this."""
    consumer_name: str = ""
    """Shown in the stats, and what Failover chooses by; "": the broker finds one."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Shown in the stats."""
    priority_level: int = 0
    """Of a Shared or Failover subscription those get messages first who have the lowest number."""
    negative_ack_redelivery_delay: float = 60.0
    """How long a negatively acknowledged message waits."""
    negative_ack_redelivery_backoff: RedeliveryBackoff | None = None
    """Says in its place how long a negatively acknowledged message waits, by how often it was delivered before."""
    unacked_messages_timeout: float | None = None
    """How long a received message may be unacknowledged before it is delivered again, of a batch all of it; at least 1
    second, None: for ever. Without `ack_timeout_redelivery_backoff`."""
    ack_timeout_redelivery_backoff: RedeliveryBackoff | None = None
    """Says how long that is, by how often the message was delivered before."""
    dead_letter_policy: ConsumerDeadLetterPolicy | None = None
    """Where messages go that are delivered again too often; None: nowhere."""
    retry_enable: bool = False
    """`reconsume_later` may be called, and the retry letter topic is subscribed to, too. The topics are the names'
    first in the alphabet with `-<subscription>-RETRY` and `-DLQ`, and 16 the most redeliveries, unless
    `dead_letter_policy` says otherwise."""
    batch_receive_policy: ConsumerBatchReceivePolicy = field(default_factory=ConsumerBatchReceivePolicy)
    """When `batch_receive` has enough."""
    start_paused: bool = False
    """Ask for no messages before `Consumer.resume`."""
    interceptors: Sequence[ConsumerInterceptor] = ()
    """See and change what is received, and see what is acknowledged; in this order."""
    acknowledgement_group_time: float = 0.01
    """How long an acknowledgement may wait to go out with others; 0: it goes at once."""
    max_acknowledgement_group_size: int = 1000
    """Acknowledgements that wait; with so many they go out."""
    batch_index_ack_enabled: bool = False
    """Tell the broker of each acknowledged message of a batch (PIP-54); else only when all of them are."""
    ack_receipt_enabled: bool = False
    """Acknowledging waits for the broker's word that it is kept."""
    replicate_subscription_state_enabled: bool = False
    """Keep its position in step in the other clusters (PIP-33)."""
    key_shared_policy: ConsumerKeySharedPolicy | None = None
    """How KeyShared shares the keys."""
    pattern_auto_discovery_period: float = 60.0
    """How often to look which topics match a pattern."""
    regex_subscription_mode: RegexSubscriptionMode = RegexSubscriptionMode.PersistentOnly
    """Which kind of topics a pattern is held against."""

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
            raise InvalidConfiguration("unacked_messages_timeout is at least 1 second")
        if self.key_shared_policy is not None and self.consumer_type is not ConsumerType.KeyShared:
            raise InvalidConfiguration("a key_shared_policy is for KeyShared")
        if self.receiver_queue_size == 0 and (self.retry_enable or not isinstance(self.topic, str)):
            raise InvalidConfiguration("receiver_queue_size must be positive with several topics")


@dataclass(frozen=True)
class ReaderOptions(ReceivingOptions[T]):
    """What `create_reader` takes."""

    topic: str
    """With its partitions, where it has some."""
    start_message_id: MessageId | None = None
    """Reading begins behind it; of partitioned topics the earliest or the latest."""
    _: KW_ONLY
    schema: Schema[T] = BYTES  # again: else pyright takes it for bytes in what `arguments_of` makes
    start_message_from_rollback_duration: int = 0
    """In its place: begin with what is not older than so many seconds."""
    reader_name: str | None = None
    """Shown in the stats."""
    subscription_role_prefix: str | None = None
    """Put in front of the name of the reader's subscription: subscriptionAuthMode Prefix wants the role there."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.start_message_id is None) == (self.start_message_from_rollback_duration <= 0):
            raise InvalidConfiguration("a reader takes either a start_message_id or a duration to roll back")
        if self.receiver_queue_size == 0:
            raise InvalidConfiguration("receiver_queue_size of a reader must be positive")

    def start(self) -> Start:
        """Where reading begins."""
        if self.start_message_id is None:
            return Start(MessageId.earliest, rollback_duration=self.start_message_from_rollback_duration)
        return Start(self.start_message_id, self.start_message_id_inclusive)

    def consumer_options(self) -> ConsumerOptions[T]:
        """Of the consumer that the reader stands on."""
        prefix = "" if self.subscription_role_prefix is None else f"{self.subscription_role_prefix}-"
        name = f"{prefix}reader-{uuid4().hex[:10]}"
        return ConsumerOptions(self.topic, name, consumer_name=self.reader_name or "", **common_to(self))


@dataclass(frozen=True)
class TableViewOptions(ReceivingOptions[T]):
    """What `create_table_view` takes."""

    topic: str
    """With its partitions, where it has some."""
    _: KW_ONLY
    schema: Schema[T] = BYTES  # again: else pyright takes it for bytes in what `arguments_of` makes
    read_compacted: bool = True
    """Of each key the last message that compaction left, and what came since; not of topics that are not kept."""
    subscription_name: str | None = None
    """Of the subscription that lasts as long as the view."""

    def start(self) -> Start:
        """Where reading begins."""
        return Start(MessageId.earliest)

    def consumer_options(self) -> ConsumerOptions[T]:
        """Of the consumer that the view stands on."""
        common = common_to(self)
        if not full_name(self.topic).startswith("persistent:"):
            common["read_compacted"] = False
        return ConsumerOptions(self.topic, self.subscription_name or f"reader-{uuid4().hex[:10]}", **common)


def common_to(options: ReceivingOptions[Any]) -> dict[str, Any]:
    """What one kind of options has in common with the others, as arguments."""
    return {one.name: getattr(options, one.name) for one in fields(ReceivingOptions)}
