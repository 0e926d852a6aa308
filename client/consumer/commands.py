"""Build the commands of a consumer. The connection adds the request id of those that the broker answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pulsarium.client.consumer.options import ConsumerOptions
from pulsarium.client.message_id import MessageId
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import TxnId

Type = pb.BaseCommand


def subscribe(topic: str, consumer_id: int, options: ConsumerOptions[Any], *, durable: bool) -> pb.BaseCommand:
    """Return SUBSCRIBE, without epoch and start, which change with each connection."""
    body = pb.CommandSubscribe(
        topic=topic,
        subscription=options.subscription_name,
        consumer_id=consumer_id,
        subType=options.consumer_type.value,
        initialPosition=options.initial_position.value,
        durable=durable,
        read_compacted=options.read_compacted,
        metadata=[pb.KeyValue(key=key, value=value) for key, value in options.properties.items()],
    )
    if options.schema.info is not None:
        body.schema.CopyFrom(options.schema.info.to_proto())
    if not options.creates_topic:
        body.force_topic_creation = False  # a deleted topic must not be created again
    if options.consumer_name:
        body.consumer_name = options.consumer_name
    if options.priority_level:
        body.priority_level = options.priority_level
    if options.replicate_subscription_state_enabled:
        body.replicate_subscription_state = True
    policy = options.key_shared_policy
    if policy is not None:
        body.keySharedMeta.keySharedMode = policy.key_shared_mode.value
        body.keySharedMeta.allowOutOfOrderDelivery = policy.allow_out_of_order_delivery
        if policy.entry_buckets:
            body.keySharedMeta.entryBucketDispatch = True
        for first, last in policy.sticky_ranges:
            body.keySharedMeta.hashRanges.add(start=first, end=last)
    return pb.BaseCommand(type=Type.SUBSCRIBE, subscribe=body)


def flow(consumer_id: int, permits: int) -> pb.BaseCommand:
    return pb.BaseCommand(type=Type.FLOW, flow=pb.CommandFlow(consumer_id=consumer_id, messagePermits=permits))


def ack(
    consumer_id: int,
    kind: pb.CommandAck.AckType,
    message_ids: Iterable[pb.MessageIdData],
    error: pb.CommandAck.ValidationError | None = None,
) -> pb.BaseCommand:
    """Return ACK of entries, with `error` for those that cannot be read. The broker answers only with a request id."""
    command = pb.BaseCommand(type=Type.ACK)
    body = command.ack  # filled in place: an argument of the constructor would be copied, with its ids
    body.consumer_id = consumer_id
    body.ack_type = kind
    body.message_id.extend(message_ids)
    if error is not None:
        body.validation_error = error
    return command


def ack_in(
    txn: TxnId, consumer_id: int, kind: pb.CommandAck.AckType, message_ids: Iterable[pb.MessageIdData]
) -> pb.BaseCommand:
    """Return ACK in a transaction."""
    command = ack(consumer_id, kind, message_ids)
    command.ack.txnid_most_bits, command.ack.txnid_least_bits = txn
    return command


def redeliver(
    consumer_id: int, entries: Iterable[tuple[int, int]] = (), consumer_epoch: int | None = None
) -> pb.BaseCommand:
    """Return REDELIVER_UNACKNOWLEDGED_MESSAGES, for these entries, or for all without entries."""
    body = pb.CommandRedeliverUnacknowledgedMessages(consumer_id=consumer_id)
    body.message_ids.extend(MessageId(*entry).to_data() for entry in entries)
    if consumer_epoch is not None:
        body.consumer_epoch = consumer_epoch
    return pb.BaseCommand(type=Type.REDELIVER_UNACKNOWLEDGED_MESSAGES, redeliverUnacknowledgedMessages=body)


def negative_ack(
    consumer_id: int, refused: Iterable[pb.MessageIdData], returned: Iterable[tuple[int, int]] = ()
) -> pb.BaseCommand:
    """Return NEGATIVE_ACK (PIP-493) of refused messages, and of entries that the application has not seen."""
    body = pb.CommandNegativeAck(consumer_id=consumer_id, negative_acked=refused)
    body.returned.extend(MessageId(*entry).to_data() for entry in returned)
    return pb.BaseCommand(type=Type.NEGATIVE_ACK, negativeAck=body)


def get_last_message_id(consumer_id: int) -> pb.BaseCommand:
    body = pb.CommandGetLastMessageId(consumer_id=consumer_id)
    return pb.BaseCommand(type=Type.GET_LAST_MESSAGE_ID, getLastMessageId=body)


def unsubscribe(consumer_id: int, *, force: bool) -> pb.BaseCommand:
    body = pb.CommandUnsubscribe(consumer_id=consumer_id, force=force)
    return pb.BaseCommand(type=Type.UNSUBSCRIBE, unsubscribe=body)


def close(consumer_id: int) -> pb.BaseCommand:
    return pb.BaseCommand(type=Type.CLOSE_CONSUMER, close_consumer=pb.CommandCloseConsumer(consumer_id=consumer_id))
