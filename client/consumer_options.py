"""What a consumer or reader may be told when it is opened."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from pulsarium.client.crypto import ConsumerCryptoFailureAction, KeyReader
from pulsarium.client.last_entry import PayloadToMessageIdConverter
from pulsarium.client.message_id import MessageId
from pulsarium.client.payload_processor import MessagePayloadProcessor
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


@dataclass(frozen=True, kw_only=True)
class ConsumerOptions:
    """Everything beyond topic and subscription. Names as in the official Python client, times in seconds."""

    consumer_type: ConsumerType = ConsumerType.Exclusive
    initial_position: InitialPosition = InitialPosition.Latest
    consumer_name: str = ""
    receiver_queue_size: int = 1000
    """Messages that may wait here; at least 1."""
    read_compacted: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    negative_ack_redelivery_delay: float = 60.0
    batch_index_ack_enabled: bool = False
    """Tell the broker of each acknowledged message of a batch (PIP-54); else only when all of them are."""
    ack_receipt_enabled: bool = False
    """Acknowledging waits for the broker's word that it is kept."""
    start_message_id_inclusive: bool = False
    """A seek to a message delivers that message again, too."""
    replicate_subscription_state_enabled: bool = False
    key_shared_policy: ConsumerKeySharedPolicy | None = None
    crypto_key_reader: KeyReader | None = None
    crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL
    payload_to_message_id_converter: PayloadToMessageIdConverter | None = None
    """Computes the last message's id where the broker sends its entry (PIP-429); None: understands Pulsar's format."""
    message_payload_processor: MessagePayloadProcessor | None = None
    """Takes entries apart (PIP-96); None: understands Pulsar's format."""

    # of readers
    durable: bool = True
    start_message_id: MessageId | None = None

    def __post_init__(self) -> None:
        if self.receiver_queue_size < 1:
            raise ValueError(f"receiver_queue_size {self.receiver_queue_size} is not positive")
