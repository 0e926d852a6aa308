"""SUBSCRIBE, UNSUBSCRIBE, CLOSE_CONSUMER."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pulsarium.broker.commands.naming import check_metadata, parse_name, text_of, texts_of
from pulsarium.broker.commands.registry import handles
from pulsarium.broker.logs import Log
from pulsarium.broker.model.errors import (
    BrokerServiceError,
    NamingError,
    NotAllowedError,
    OwnerMustAnswerError,
    SubscriptionNotFoundError,
)
from pulsarium.broker.model.ledger.position import Position, signed
from pulsarium.broker.model.subscription.base import Subscription
from pulsarium.broker.model.subscription.consumer import ConsumerOptions
from pulsarium.broker.model.topic.non_persistent import NonPersistentTopic
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.broker.session.session import Session

log = Log("subscribe")

STRICT_NAME = re.compile(r"[\w\-=:.]+", re.ASCII)
Earliest = pb.CommandSubscribe.Earliest


@handles(pb.BaseCommand.SUBSCRIBE)
def subscribe(session: Session, cmd: pb.CommandSubscribe, trailing: bytes) -> None:
    """Attach a consumer to a subscription, which is made when there is none (C-01 to C-13)."""
    request_id, consumer_id = cmd.request_id, cmd.consumer_id
    if consumer_id in session.consumers:
        session.success(request_id)
        return
    if consumer_id in session.pending_consumers:
        session.error(request_id, pb.ServiceNotReady, "Consumer is already present on the connection")
        return
    try:
        check_metadata(cmd.metadata, session.broker.config.maxConsumerMetadataSize)
        subscription = _subscription(session, cmd)
    except BrokerServiceError as error:
        session.error(request_id, error.code, error.text)
        return
    options = ConsumerOptions(
        consumer_id=consumer_id,
        name=text_of(cmd.consumer_name),
        type=cmd.subType,
        priority_level=cmd.priority_level,
        read_compacted=cmd.read_compacted,
        epoch=cmd.consumer_epoch if cmd.HasField("consumer_epoch") and _keeps_order(cmd.subType) else None,
        metadata=texts_of(cmd.metadata),
    )
    session.pending_consumers.add(consumer_id)
    _add(session, cmd, subscription, options)


def _keeps_order(type: int) -> bool:
    return type in (pb.CommandSubscribe.Exclusive, pb.CommandSubscribe.Failover)


def _subscription(session: Session, cmd: pb.CommandSubscribe) -> Subscription:
    broker = session.broker
    name, subscription = parse_name(cmd.topic), text_of(cmd.subscription)
    _check_type(session, cmd, persistent=name.is_persistent)
    if not subscription:
        raise NamingError("Empty subscription name")
    if broker.config.strictlyVerifySubscriptionName and not STRICT_NAME.fullmatch(subscription):
        raise NamingError(
            f"Please let the subscription only contains '/w(a-zA-Z_0-9)' or '_', the current value is {subscription}"
        )
    topic = broker.topics.find_or_create(name, create=cmd.force_topic_creation, absent=f"Topic {name} does not exist")
    if isinstance(topic, NonPersistentTopic):
        return topic.subscribe(subscription)
    assert isinstance(topic, PersistentTopic)
    earliest = cmd.initialPosition == Earliest
    rollback = cmd.start_message_rollback_duration_sec
    if not cmd.durable:
        start = None
        if cmd.HasField("start_message_id"):
            start = Position(signed(cmd.start_message_id.ledgerId), signed(cmd.start_message_id.entryId))
        return topic.open_reader(subscription, start, earliest=earliest, rollback_seconds=rollback)
    if subscription not in topic.subscriptions and not broker.config.allowAutoSubscriptionCreation:
        raise SubscriptionNotFoundError(f"Subscription {subscription} does not exist")
    return topic.subscribe(
        subscription,
        earliest=earliest,
        rollback_seconds=rollback,
        properties=texts_of(cmd.subscription_properties),
        replicated=cmd.replicate_subscription_state if cmd.HasField("replicate_subscription_state") else None,
    )


def _check_type(session: Session, cmd: pb.CommandSubscribe, *, persistent: bool) -> None:
    if cmd.read_compacted and not (persistent and _keeps_order(cmd.subType)):
        raise NotAllowedError("readCompacted only allowed on failover or exclusive subscriptions")
    enabled = session.broker.config.subscriptionTypesEnabled
    type_name = pb.CommandSubscribe.SubType.Name(cmd.subType)
    if type_name not in enabled:
        raise NotAllowedError(f"Topic[{cmd.topic}] doesn't support {type_name} sub type!")
    if cmd.subType == pb.CommandSubscribe.Key_Shared:  # not built yet: as with subscriptionKeySharedEnable=false
        raise NotAllowedError("Key-Shared subscription is disabled by broker.")


def _add(session: Session, cmd: pb.CommandSubscribe, subscription: Subscription, options: ConsumerOptions) -> None:
    request_id = cmd.request_id
    try:
        consumer = subscription.add_consumer(session, options)
    except OwnerMustAnswerError as owned:
        refusal = owned.refusal
        request = pb.CommandSubscribe()
        request.CopyFrom(cmd)  # the next command is parsed into the same message

        def answered(alive: bool) -> None:
            if alive:
                _refused(session, options, request_id, refusal)
            elif not session.closed:  # from the start: a reader's subscription went with its owner
                session.pending_consumers.discard(options.consumer_id)
                subscribe(session, request, b"")

        owned.owner.check_liveness(answered)
        return
    except BrokerServiceError as error:
        _refused(session, options, request_id, error)
        return

    def kept(error: Exception | None) -> None:
        session.pending_consumers.discard(options.consumer_id)
        if session.closed:
            if consumer in subscription.consumers:
                subscription.remove_consumer(consumer)
            return
        if error is not None:
            if consumer in subscription.consumers:
                subscription.remove_consumer(consumer)
            session.not_kept(request_id, error)
            return
        if consumer not in subscription.consumers:  # unloaded or reset meanwhile
            session.error(request_id, pb.ServiceNotReady, "Topic is temporarily unavailable")
            return
        session.consumers[options.consumer_id] = consumer
        log.info(
            "consumer opened",
            peer=session,
            consumer=options.name,
            topic=subscription.topic.name,
            subscription=subscription.name,
            type=subscription.type_name,
        )
        session.success(request_id)

    session.broker.turn.after_commit(kept)


def _refused(session: Session, options: ConsumerOptions, request_id: int, error: BrokerServiceError) -> None:
    session.pending_consumers.discard(options.consumer_id)
    if not session.closed:
        session.error(request_id, error.code, error.text)


@handles(pb.BaseCommand.UNSUBSCRIBE)
def unsubscribe(session: Session, cmd: pb.CommandUnsubscribe, trailing: bytes) -> None:
    """Delete the subscription of a consumer, if it is the only one or the request forces it."""
    request_id = cmd.request_id
    consumer = session.consumers.get(cmd.consumer_id)
    if consumer is None:
        session.error(request_id, pb.MetadataError, "Consumer not found")
        return
    subscription = consumer.subscription
    if len(subscription.consumers) > 1 and not cmd.force:
        text = "Unconnected or shared consumer attempting to unsubscribe"
        session.error(request_id, pb.MetadataError, text)
        return
    del session.consumers[cmd.consumer_id]
    subscription.remove_consumer(consumer)
    if subscription.name in subscription.topic.subscriptions:  # a reader's is gone with its consumer
        subscription.topic.unsubscribe(subscription.name)
    log.info("subscription deleted", peer=session, topic=subscription.topic.name, subscription=subscription.name)
    session.success_when_kept(request_id)


@handles(pb.BaseCommand.CLOSE_CONSUMER)
def close_consumer(session: Session, cmd: pb.CommandCloseConsumer, trailing: bytes) -> None:
    """Close a consumer; an unknown one is closed already."""
    consumer = session.consumers.pop(cmd.consumer_id, None)
    if consumer is not None:
        consumer.subscription.remove_consumer(consumer)
        log.info("consumer closed", peer=session, consumer=consumer.name, topic=consumer.subscription.topic.name)
    session.success(cmd.request_id)
