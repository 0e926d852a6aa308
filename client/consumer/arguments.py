"""Options of consumers, readers and table views, each with its type and its text.

`ReceivingOptions` and the classes below it have their defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from typing_extensions import TypedDict

from pulsarium.client.consumer.interceptors import ConsumerInterceptor
from pulsarium.client.consumer.last_entry import PayloadToMessageIdConverter
from pulsarium.client.consumer.options import (
    ConsumerKeySharedPolicy,
    ConsumerType,
    InitialPosition,
    OrderedNegativeAckMode,
    RegexSubscriptionMode,
)
from pulsarium.client.consumer.policies import (
    ConsumerBatchReceivePolicy,
    ConsumerDeadLetterPolicy,
    RedeliveryBackoff,
)
from pulsarium.client.entry.crypto import ConsumerCryptoFailureAction, KeyReader
from pulsarium.client.entry.decoding import MessagePayloadProcessor


class _Queue(TypedDict, total=False):
    """Options of the queue.

    Attributes:
        receiver_queue_size: The most messages of each topic and partition that wait in the client. With 0, the
            consumer requests each message when the application receives; it can have one topic without partitions and
            without batches then.
    """

    receiver_queue_size: int


class _Compacted(TypedDict, total=False):
    """Options of compacted topics.

    Attributes:
        read_compacted: Receive only the newest message of each key from the compacted part of a topic.
    """

    read_compacted: bool


class _Decrypting(TypedDict, total=False):
    """Options of decryption.

    Attributes:
        crypto_key_reader: The reader of the decryption keys.
        crypto_failure_action: The treatment of a message that cannot be decrypted.
    """

    crypto_key_reader: KeyReader | None
    crypto_failure_action: ConsumerCryptoFailureAction


class _Positions(TypedDict, total=False):
    """Options of positions and partitions.

    Attributes:
        max_total_receiver_queue_size_across_partitions: The most messages that wait in the client for all topics and
            partitions together.
        start_message_id_inclusive: Deliver the message at the target of a seek, or at a reader's start, too.
        payload_to_message_id_converter: Computes the id of the last message from its entry (PIP-429). With None, only
            Pulsar's own format is understood.
        auto_update_partitions_interval: The time between two looks for new partitions.
    """

    max_total_receiver_queue_size_across_partitions: int
    start_message_id_inclusive: bool
    payload_to_message_id_converter: PayloadToMessageIdConverter | None
    auto_update_partitions_interval: float


class _Splitting(TypedDict, total=False):
    """Options of entries with several messages, and of messages with several entries.

    Attributes:
        message_payload_processor: Splits entries into messages (PIP-96). With None, only Pulsar's own format is
            understood.
        max_pending_chunked_message: The most incomplete chunked messages (PIP-37) of each topic and partition. At the
            limit, the oldest one is discarded. 0 is no limit.
        auto_ack_oldest_chunked_message_on_queue_full: Acknowledge the chunks that `max_pending_chunked_message`
            discards. Otherwise the broker redelivers them.
        expire_time_of_incomplete_chunked_message: The time after which the chunks of an incomplete message are
            acknowledged. 0 is never.
    """

    message_payload_processor: MessagePayloadProcessor | None
    max_pending_chunked_message: int
    auto_ack_oldest_chunked_message_on_queue_full: bool
    expire_time_of_incomplete_chunked_message: float


class _Named(TypedDict, total=False):
    """Options that the stats show.

    Attributes:
        consumer_name: The name in the stats, by which a Failover subscription sorts its consumers. With "", the broker
            chooses one.
        properties: Properties that the topic's stats show.
    """

    consumer_name: str
    properties: Mapping[str, str]


class _Fetching(TypedDict, total=False):
    """Options of `batch_receive`.

    Attributes:
        batch_receive_policy: The limits at which `batch_receive` returns.
    """

    batch_receive_policy: ConsumerBatchReceivePolicy


class _Subscribing(TypedDict, total=False):
    """Options of a subscription.

    Attributes:
        initial_position: The position at which a new subscription begins.
        ack_receipt_enabled: Wait at each acknowledgement until the broker has confirmed it.
    """

    initial_position: InitialPosition
    ack_receipt_enabled: bool


class _Sharing(TypedDict, total=False):
    """Options of subscriptions whose messages are shared.

    Attributes:
        priority_level: The priority of the consumer in a Shared or Failover subscription. The lowest number comes
            first.
        negative_ack_redelivery_delay: The time before a negatively acknowledged message is redelivered.
        negative_ack_redelivery_backoff: Computes this delay from the message's redelivery count, in place of
            `negative_ack_redelivery_delay`.
        dead_letter_policy: The treatment of messages that are redelivered too often, on Shared and KeyShared
            subscriptions. With None, they are redelivered without end.
        acknowledgement_group_time: The longest time that an acknowledgement waits to be sent with others. With 0, it
            is sent at once.
    """

    priority_level: int
    negative_ack_redelivery_delay: float
    negative_ack_redelivery_backoff: RedeliveryBackoff | None
    dead_letter_policy: ConsumerDeadLetterPolicy | None
    acknowledgement_group_time: float


class _Starting(TypedDict, total=False):
    """Options of readers.

    Attributes:
        start_message_from_rollback_duration: Begin with the messages of this many last seconds, in place of
            `start_message_id`.
        reader_name: The name in the stats.
        subscription_role_prefix: A prefix of the name of the reader's subscription. The subscriptionAuthMode Prefix
            requires the role as prefix.
    """

    start_message_from_rollback_duration: int
    reader_name: str | None
    subscription_role_prefix: str | None


class RawReaderArguments(_Queue, _Compacted, _Positions, _Starting, total=False):
    """Options of `Client.create_raw_reader`."""


class ReaderArguments(_Queue, _Compacted, _Decrypting, _Positions, _Splitting, _Starting, total=False):
    """Options of `Client.create_reader`."""


class TableViewArguments(_Queue, _Compacted, _Decrypting, _Positions, _Splitting, total=False):
    """Options of `Client.create_table_view`.

    Attributes:
        subscription_name: The name of the view's subscription, which lasts as long as the view.
    """

    subscription_name: str | None


class CheckpointArguments(_Queue, _Compacted, _Decrypting, _Named, _Fetching, total=False):
    """Options of `ScalableTopics.create_checkpoint_consumer`."""


class NamespaceArguments(_Queue, _Compacted, _Decrypting, _Named, _Subscribing, total=False):
    """Options of `ScalableTopics.subscribe_namespace`."""


class StreamArguments(_Queue, _Compacted, _Decrypting, _Named, _Subscribing, _Fetching, total=False):
    """Options of `ScalableTopics.subscribe_stream`."""


class QueueArguments(_Queue, _Decrypting, _Named, _Subscribing, _Sharing, _Fetching, total=False):
    """Options of `ScalableTopics.subscribe_queue`."""


class ConsumerArguments(
    _Queue,
    _Compacted,
    _Decrypting,
    _Positions,
    _Splitting,
    _Named,
    _Subscribing,
    _Sharing,
    _Fetching,
    total=False,
):
    """Options of `Client.subscribe`.

    Attributes:
        consumer_type: The subscription type, which shares the messages among the consumers.
        ordered_negative_ack: Whether negative acknowledgements keep the order of keys on KeyShared subscriptions, as
            the draft PIP-493 proposes. No release of Pulsar can do that.
        unacked_messages_timeout: The time after which an unacknowledged message is redelivered, with all messages of
            its batch. At least 1 second. None is never. Ignored with `ack_timeout_redelivery_backoff`.
        ack_timeout_redelivery_backoff: Computes this time from the message's redelivery count.
        retry_enable: Allow `reconsume_later`, and subscribe to the retry letter topic. By default, a message is
            redelivered at most 16 times. The retry letter topic and the dead letter topic have the name of the
            alphabetically first topic, followed by `-<subscription>-RETRY` and `-<subscription>-DLQ`. The
            `dead_letter_policy` may change these defaults.
        start_paused: Request no messages before `Consumer.resume`.
        interceptors: Interceptors of received and acknowledged messages, called in this order.
        max_acknowledgement_group_size: The number of waiting acknowledgements at which they are sent.
        batch_index_ack_enabled: Acknowledge each message of a batch on the broker (PIP-54). Otherwise a batch is
            acknowledged when all its messages are.
        replicate_subscription_state_enabled: Replicate the subscription's position to the other clusters (PIP-33).
        key_shared_policy: The distribution of hash ranges in a Key_Shared subscription.
        pattern_auto_discovery_period: The time between two looks for topics that match a pattern.
        regex_subscription_mode: The kind of topics that a pattern can match.
    """

    consumer_type: ConsumerType
    ordered_negative_ack: OrderedNegativeAckMode
    unacked_messages_timeout: float | None
    ack_timeout_redelivery_backoff: RedeliveryBackoff | None
    retry_enable: bool
    start_paused: bool
    interceptors: Sequence[ConsumerInterceptor]
    max_acknowledgement_group_size: int
    batch_index_ack_enabled: bool
    replicate_subscription_state_enabled: bool
    key_shared_policy: ConsumerKeySharedPolicy | None
    pattern_auto_discovery_period: float
    regex_subscription_mode: RegexSubscriptionMode
