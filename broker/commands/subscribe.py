"""Handle SUBSCRIBE, UNSUBSCRIBE and CLOSE_CONSUMER."""

from __future__ import annotations

import re
from functools import partial

from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.commands.naming import check_metadata, parse_name, texts_of
from pulsarium.broker.commands.registry import handles
from pulsarium.broker.commands.schema import judged
from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.cursor.records import NO_SUBSCRIPTION_PROPERTIES, SubscriptionProperties
from pulsarium.broker.model.errors import (
    BrokerServiceError,
    NamingError,
    OwnerMustAnswerError,
    SubscriptionNotFoundError,
)
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.schema.data import SchemaData
from pulsarium.broker.model.subscription.base import Consumer, Subscription
from pulsarium.broker.model.subscription.options import NO_RANGES, ConsumerOptions, HashRanges, KeySharedOptions
from pulsarium.broker.model.topic.base import Joining
from pulsarium.broker.model.topic.joining import IN_ORDER, check_consumer, check_schema
from pulsarium.broker.session.session import Session
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.numbers import signed
from pulsarium.proto.text import text_of
from pulsarium.proto.topic_name import TopicName

log = PartLog("subscribe")

AT_ONCE = 1000  # entries of a list
STRICT_NAME = re.compile(r"[\w\-=:.]+", re.ASCII)


@handles(pb.BaseCommand.SUBSCRIBE, needs=topic_operation("CONSUME"))
def subscribe(session: Session, cmd: pb.CommandSubscribe, trailing: bytes) -> None:
    """Add a consumer to a subscription, and create the subscription if needed."""
    if max(len(cmd.keySharedMeta.hashRanges), len(cmd.subscription_properties)) > AT_ONCE:
        session.gate.handle_aside(partial(Lists, cmd), partial(_judge, session, cmd))
    else:
        _judge(session, cmd, Lists(cmd))


class Lists:
    """The lists of a SUBSCRIBE, which may take long to read."""

    __slots__ = ("properties", "ranges")

    def __init__(self, cmd: pb.CommandSubscribe) -> None:
        sent, pairs = cmd.keySharedMeta.hashRanges, cmd.subscription_properties
        self.ranges = HashRanges((each.start, each.end) for each in sent) if sent else NO_RANGES
        self.properties = SubscriptionProperties(texts_of(pairs)) if pairs else NO_SUBSCRIPTION_PROPERTIES
        _ = self.properties.encoded


def _judge(session: Session, cmd: pb.CommandSubscribe, lists: Lists) -> None:
    if cmd.HasField("schema"):
        judged(session, cmd.topic, cmd.schema, partial(_subscribe, session, cmd, lists))
    else:
        _subscribe(session, cmd, lists, None)


def _subscribe(session: Session, cmd: pb.CommandSubscribe, lists: Lists, schema: SchemaData | None) -> None:
    pending = session.pending_consumers.get(cmd.consumer_id)
    if cmd.consumer_id in session.consumers:
        session.success(cmd.request_id)
    elif pending is None:
        PendingConsumer(session, cmd, lists, schema).start(cmd)
    elif pending.abandoned:
        pending.close()
        session.error(cmd.request_id, pb.UnknownError, "Consumer that failed is already present on the connection")
    else:
        session.error(cmd.request_id, pb.ServiceNotReady, "Consumer is already present on the connection")


class PendingConsumer:
    """A SUBSCRIBE without an answer yet: its commit is under way, or the present owner is asked for a sign of life.

    CLOSE_CONSUMER and the end of the connection cancel it, and then no answer follows (transcript 137). With the
    profile's `abandoned_consumers_refuse`, CLOSE_CONSUMER leaves the id taken until the answer would be due.
    """

    def __init__(self, session: Session, cmd: pb.CommandSubscribe, lists: Lists, schema: SchemaData | None) -> None:
        self._session = session
        self._lists = lists
        self._schema = schema
        self._request_id = cmd.request_id
        self._consumer_id = cmd.consumer_id
        self._consumer: Consumer | None = None
        self._about = session.concerned(pb.BaseCommand.SUBSCRIBE, cmd)
        self.abandoned = False
        session.pending_consumers[cmd.consumer_id] = self

    def start(self, cmd: pb.CommandSubscribe) -> None:
        """Join the subscription, and answer after the commit."""
        session = self._session
        subscription: Subscription | None = None
        try:
            check_metadata(cmd.metadata, session.broker.config.maxConsumerMetadataSize)
            subscription = _subscription(session, cmd, self._lists.properties, self._schema)
            self._consumer = subscription.add_consumer(session, self._options(cmd, subscription.topic.name))
        except OwnerMustAnswerError as owned:
            self._ask(owned, cmd)
        except BrokerServiceError as error:
            if subscription is not None:
                subscription.forget_if_unused()
            self._refuse(error)
        else:
            session.broker.turn.after_commit(self._kept)

    def _options(self, cmd: pb.CommandSubscribe, topic: TopicName) -> ConsumerOptions:
        has_epoch = cmd.HasField("consumer_epoch") and cmd.subType in IN_ORDER and topic.is_persistent
        return ConsumerOptions(
            consumer_id=cmd.consumer_id,
            name=text_of(cmd.consumer_name),
            type=cmd.subType,
            priority_level=cmd.priority_level,
            read_compacted=cmd.read_compacted,
            epoch=cmd.consumer_epoch if has_epoch else None,
            key_shared=KeySharedOptions(
                cmd.keySharedMeta.keySharedMode,
                self._lists.ranges,
                cmd.keySharedMeta.allowOutOfOrderDelivery,
                cmd.keySharedMeta.entryBucketDispatch,
            ),
            metadata=texts_of(cmd.metadata),
            auto_schema=self._schema is not None and self._schema.type == "AUTO_CONSUME",
        )

    def _ask(self, owned: OwnerMustAnswerError, cmd: pb.CommandSubscribe) -> None:
        refusal = owned.refusal
        request = pb.CommandSubscribe()
        request.CopyFrom(cmd)  # because the next command is parsed into the same message

        def answered(alive: bool) -> None:
            if self._is_over():
                return
            if alive:
                self._refuse(refusal)
            else:  # start again: a reader's subscription ended with its owner
                self.start(request)

        owned.owner.check_liveness(answered)

    def _refuse(self, error: BrokerServiceError) -> None:
        self._end()
        self._session.refuse(self._request_id, error, **self._about)

    def _kept(self, error: Exception | None) -> None:
        if self._is_over():
            return
        session, consumer = self._session, self._consumer
        assert consumer is not None
        subscription = consumer.subscription
        if error is not None:
            self.close()
            session.not_kept(self._request_id, error, **self._about)
            return
        self._end()
        if consumer.left:  # the topic was unloaded or the cursor reset
            session.error(self._request_id, pb.ServiceNotReady, "Topic is temporarily unavailable", **self._about)
            return
        moved_to = subscription.topic.moved_to
        if moved_to is not None and not subscription.has_backlog:
            subscription.remove_consumer(consumer)
            session.close_consumer(self._consumer_id, moved_to)
            return
        session.consumers[self._consumer_id] = consumer
        log.info(
            "consumer opened",
            peer=session,
            consumer=consumer.name,
            topic=subscription.topic.name,
            subscription=subscription.name,
            type=subscription.type_name,
        )
        session.success(self._request_id)

    def _is_over(self) -> bool:
        """Return whether the SUBSCRIBE was canceled. Release the id of an abandoned one."""
        canceled = self._session.pending_consumers.get(self._consumer_id) is not self
        if self.abandoned and not canceled:
            self._end()
        return canceled or self.abandoned

    def _end(self) -> None:
        del self._session.pending_consumers[self._consumer_id]

    def abandon(self) -> None:
        """Leave the subscription, because CLOSE_CONSUMER came before the answer."""
        self.close()
        if self._session.profile.abandoned_consumers_refuse:
            self._session.pending_consumers[self._consumer_id] = self
            self.abandoned = True

    def close(self) -> None:
        """Leave the subscription, and forget the SUBSCRIBE."""
        self._end()
        if self._consumer is not None and not self._consumer.left:
            self._consumer.subscription.remove_consumer(self._consumer)


def _subscription(
    session: Session, cmd: pb.CommandSubscribe, properties: SubscriptionProperties, schema: SchemaData | None
) -> Subscription:
    """Return the subscription to join, created if needed. Raise `BrokerServiceError` when the request is refused."""
    broker = session.broker
    name, subscription = parse_name(session, cmd.topic), text_of(cmd.subscription)
    if subscription and broker.config.strictlyVerifySubscriptionName and not STRICT_NAME.fullmatch(subscription):
        raise NamingError(
            f"Please let the subscription only contains '/w(a-zA-Z_0-9)' or '_', the current value is {subscription}"
        )
    topic = broker.find_or_create(name, create=cmd.force_topic_creation, absent=f"Topic {name} does not exist")
    topic.check_max_consumers(session.address)
    creates = cmd.durable and name.is_persistent and subscription not in topic.subscriptions
    if creates and not topic.policies.auto_subscription:
        raise SubscriptionNotFoundError("Subscription does not exist", limit="allowAutoSubscriptionCreation")
    if schema is not None:
        check_schema(broker.schemas, topic, schema)
    check_consumer(topic, subscription, cmd.subType, read_compacted=cmd.read_compacted)
    start = None
    if cmd.HasField("start_message_id"):
        start = Position(signed(cmd.start_message_id.ledgerId), signed(cmd.start_message_id.entryId))
    joining = Joining(
        session.address,
        text_of(cmd.consumer_name),
        cmd.consumer_id,
        durable=cmd.durable,
        start=start,
        earliest=cmd.initialPosition == pb.CommandSubscribe.Earliest,
        rollback_seconds=max(signed(cmd.start_message_rollback_duration_sec), 0),
        properties=properties,
        replicated=cmd.replicate_subscription_state,
    )
    return topic.join(subscription, joining)


@handles(pb.BaseCommand.UNSUBSCRIBE)
def unsubscribe(session: Session, cmd: pb.CommandUnsubscribe, trailing: bytes) -> None:
    """Delete the consumer's subscription, if the consumer is the only one or the request forces the deletion."""
    request_id = cmd.request_id
    consumer = session.consumers.get(cmd.consumer_id)
    if consumer is None:
        session.error(request_id, pb.MetadataError, "Consumer not found")
        return
    subscription = consumer.subscription
    force = cmd.force and session.profile.unsubscribes_by_force
    if not force and not subscription.may_be_dropped_by(consumer):
        text = "Unconnected or shared consumer attempting to unsubscribe"
        session.error(request_id, pb.MetadataError, text)
        return
    del session.consumers[cmd.consumer_id]
    subscription.remove_consumer(consumer)
    if subscription.name in subscription.topic.subscriptions:  # a reader's subscription ends with its consumer
        subscription.topic.unsubscribe(subscription.name)
    log.info("subscription deleted", peer=session, topic=subscription.topic.name, subscription=subscription.name)
    consumer_id = consumer.consumer_id

    def kept(error: Exception | None) -> None:
        if error is None:
            session.success(request_id)
        else:
            session.not_kept(request_id, error)
            session.close_consumer(consumer_id)  # so that the client subscribes again, and can retry

    session.broker.turn.after_commit(kept)


@handles(pb.BaseCommand.CLOSE_CONSUMER)
def close_consumer(session: Session, cmd: pb.CommandCloseConsumer, trailing: bytes) -> None:
    """Close a consumer once its acknowledgements are answered. An unknown consumer counts as closed."""
    request_id = cmd.request_id
    pending = session.pending_consumers.get(cmd.consumer_id)
    consumer = session.consumers.pop(cmd.consumer_id, None)
    if pending is not None:
        pending.abandon()
    if consumer is None:
        session.success(request_id)
        return
    consumer.subscription.remove_consumer(consumer)
    log.info("consumer closed", peer=session, consumer=consumer.name, topic=consumer.subscription.topic.name)
    session.broker.turn.after_commit(lambda error: session.success(request_id))
