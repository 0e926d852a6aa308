"""Handle FLOW, ACK, REDELIVER_UNACKNOWLEDGED_MESSAGES and CONSUMER_STATS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

from pulsarium.broker.clock import instant_text
from pulsarium.broker.commands.registry import CloseConnection, handles
from pulsarium.broker.commands.transaction import join
from pulsarium.broker.model.cursor.pending_record import Acked
from pulsarium.broker.model.errors import BrokerServiceError, NotAllowedError, TransactionConflictError
from pulsarium.broker.model.ledger.position import Position, position_of, signed
from pulsarium.broker.model.ledger.position_set import LAST_ID, PositionSet
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.transaction.coordinator import Part
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import TxnId
from pulsarium.proto.text import text_of

if TYPE_CHECKING:
    from pulsarium.broker.model.subscription.consumer import Consumer
    from pulsarium.broker.session.session import Session

Individual = pb.CommandAck.Individual
IDS_A_STEP = 1000  # message ids handled at once; official clients send no more in one command
SHARED_TYPES = (pb.CommandSubscribe.Shared, pb.CommandSubscribe.Key_Shared)


@handles(pb.BaseCommand.FLOW)
def flow(session: Session, cmd: pb.CommandFlow, trailing: bytes) -> None:
    """Add permits to a consumer. Permits of an unknown consumer are ignored."""
    permits = cmd.messagePermits
    if permits == 0 or permits >= 2**31:
        raise CloseConnection(f"FLOW of {permits} permits")
    consumer = session.consumers.get(cmd.consumer_id)
    if consumer is not None:
        consumer.subscription.flow(consumer, permits)


@handles(pb.BaseCommand.ACK)
def ack(session: Session, cmd: pb.CommandAck, trailing: bytes) -> None:
    """Acknowledge messages. Ids that make no sense change nothing, and their answer is success (cmd 10)."""
    consumer = session.consumers.get(cmd.consumer_id)
    if consumer is None:
        return  # no reply either, as in Pulsar
    reply = _reply_to(cmd)
    subscription = consumer.subscription
    if cmd.HasField("txnid_most_bits") and cmd.HasField("txnid_least_bits"):
        try:
            _ack_in_transaction(session, consumer, cmd)
        except BrokerServiceError as refused:
            if reply is not None:
                reply.error = refused.code
                reply.message = refused.java_text if isinstance(refused, TransactionConflictError) else refused.text
                session.command(pb.BaseCommand(type=pb.BaseCommand.ACK_RESPONSE, ackResponse=reply))
            return
        consumer.acked_ms = subscription.topic.now_ms()
    elif isinstance(subscription, PersistentSubscription):
        batch_acks = session.broker.config.acknowledgmentAtBatchIndexLevelEnabled
        if cmd.ack_type == Individual and len(cmd.message_id) > IDS_A_STEP:
            session.gate.handle_in_slices(_acknowledge_many(session, consumer, subscription, cmd, reply))
            return
        consumer.acked_ms, save_now = subscription.topic.now_ms(), reply is not None
        properties = {text_of(pair.key): signed(pair.value) for pair in cmd.properties}
        if cmd.ack_type == Individual:
            _acknowledge(consumer, subscription, cmd.message_id, in_parts=batch_acks, save_now=save_now)
        elif (through := _cumulative(subscription, cmd)) is not None and (batch_acks or not through.ack_set):
            position = Position(signed(through.ledgerId), signed(through.entryId))
            subscription.acknowledge_through(position, through.ack_set, properties=properties, save_now=save_now)
            consumer.acked += 1
        else:  # acknowledges nothing, but its properties are stored
            subscription.acknowledge(consumer, (), properties=properties, save_now=save_now)
    if reply is not None:
        session.broker.turn.after_commit(lambda error: _answer(session, reply, error))


def _acknowledge(
    consumer: Consumer,
    subscription: PersistentSubscription,
    message_ids: Iterable[pb.MessageIdData],
    *,
    in_parts: bool,
    save_now: bool,
) -> None:
    """Acknowledge entries individually. Without `in_parts`, an entry with an ack set is not acknowledged."""
    whole: list[Position] = []
    parts: list[tuple[Position, Sequence[int]]] = []
    for message_id in message_ids:
        position = position_of((message_id.ledgerId, message_id.entryId))
        ack_set = message_id.ack_set
        if not ack_set:
            whole.append(position)
        elif in_parts:
            parts.append((position, ack_set))
    subscription.acknowledge(consumer, whole, parts, save_now=save_now)


def _cumulative(subscription: PersistentSubscription, cmd: pb.CommandAck) -> pb.MessageIdData | None:
    """Return the message id of a cumulative ACK, or None where a cumulative ACK has no effect."""
    return cmd.message_id[0] if len(cmd.message_id) == 1 and not subscription.shares_messages else None


def _acknowledge_many(
    session: Session,
    consumer: Consumer,
    subscription: PersistentSubscription,
    cmd: pb.CommandAck,
    reply: pb.CommandAckResponse | None,
) -> Iterator[None]:
    """Acknowledge as if the ids had come in several ACKs, with the request id on the last."""
    in_parts = session.broker.config.acknowledgmentAtBatchIndexLevelEnabled
    message_ids = iter(cmd.message_id)
    while some := list(islice(message_ids, IDS_A_STEP)):
        if session.consumers.get(cmd.consumer_id) is not consumer:
            return  # the consumer was closed meanwhile
        _acknowledge(consumer, subscription, some, in_parts=in_parts, save_now=False)
        yield
    consumer.acked_ms = subscription.topic.now_ms()
    if reply is not None:
        subscription.acknowledge(consumer, (), save_now=True)
        session.broker.turn.after_commit(lambda error: _answer(session, reply, error))


def _ack_in_transaction(session: Session, consumer: Consumer, cmd: pb.CommandAck) -> None:
    """Acknowledge in a transaction, without a check that the transaction exists (B-29)."""
    subscription = consumer.subscription
    individual = cmd.ack_type == Individual
    if not individual and (len(cmd.message_id) != 1 or consumer.type in SHARED_TYPES):
        return
    if not isinstance(subscription, PersistentSubscription) or subscription.pending_acks is None:
        raise NotAllowedError("Server don't support transaction ack!")
    txn = TxnId(cmd.txnid_most_bits, cmd.txnid_least_bits)
    topic = subscription.topic.name
    if topic.is_segment:
        try:
            join(session, txn, Part(str(topic), subscription.name))
        except NotAllowedError as error:
            raise TransactionConflictError(error.text) from None
    acks = [Acked.of(message_id) for message_id in cmd.message_id]
    if individual:
        subscription.acknowledge_in(txn, consumer, acks)
    else:
        subscription.pending_acks.acknowledge_through(txn, acks[0])


def _answer(session: Session, reply: pb.CommandAckResponse, error: Exception | None) -> None:
    if error is not None:
        reply.error = pb.PersistenceError
        reply.message = str(error)
    session.command(pb.BaseCommand(type=pb.BaseCommand.ACK_RESPONSE, ackResponse=reply))


def _reply_to(cmd: pb.CommandAck) -> pb.CommandAckResponse | None:
    """Return the reply to an ACK with a request id, else None."""
    if not cmd.HasField("request_id"):
        return None
    return pb.CommandAckResponse(consumer_id=cmd.consumer_id, request_id=cmd.request_id)


@handles(pb.BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES)
def redeliver(session: Session, cmd: pb.CommandRedeliverUnacknowledgedMessages, trailing: bytes) -> None:
    """Redeliver unacknowledged messages: the named ones, or all (cmd 20)."""
    consumer = session.consumers.get(cmd.consumer_id)
    if consumer is None or not isinstance(consumer.subscription, PersistentSubscription):
        return
    subscription, epoch = consumer.subscription, cmd.consumer_epoch if cmd.HasField("consumer_epoch") else None
    if not subscription.shares_messages:  # ids are ignored, to keep the order
        subscription.redeliver(consumer, None, epoch)
        return
    named = cmd.message_ids
    owed: Sequence[Position] = () if named else tuple(consumer.pending)
    if max(len(named), len(owed)) > IDS_A_STEP:
        session.gate.handle_in_slices(_redeliver_many(session, consumer, subscription, named, owed))
        return
    positions = [Position(signed(i.ledgerId), signed(i.entryId)) for i in cmd.message_ids] or None
    subscription.redeliver(consumer, positions, epoch)


def _redeliver_many(
    session: Session,
    consumer: Consumer,
    subscription: PersistentSubscription,
    named: Iterable[pb.MessageIdData],
    owed: Iterable[Position],
) -> Iterator[None]:
    """Redeliver, in order, as if the entries had come in several requests, as official clients split them."""
    left = PositionSet()
    coming = chain((Position(each.ledgerId, each.entryId) for each in named), owed)
    while some := list(islice(coming, IDS_A_STEP)):
        left.update(position for position in some if position.entry_id <= LAST_ID)  # no entry has a greater id
        yield
    positions = iter(left)
    while some := list(islice(positions, IDS_A_STEP)):
        if session.consumers.get(consumer.consumer_id) is not consumer:
            return  # the consumer was closed, and its messages went to others
        subscription.redeliver(consumer, some, None)
        yield


@handles(pb.BaseCommand.CONSUMER_STATS)
def consumer_stats(session: Session, cmd: pb.CommandConsumerStats, trailing: bytes) -> None:
    """Answer with the stats of one consumer. Rates are zero, as in Pulsar in a consumer's first minute."""
    reply = pb.CommandConsumerStatsResponse(request_id=cmd.request_id)
    consumer = session.consumers.get(cmd.consumer_id)
    if consumer is None:
        if session.profile.own_faults_close:
            raise CloseConnection("CONSUMER_STATS for an unknown consumer")
        reply.error_code = pb.ConsumerNotFound
        reply.error_message = f"Consumer {cmd.consumer_id} not found"
    else:
        subscription = consumer.subscription
        reply.msgRateOut = reply.msgThroughputOut = reply.msgRateRedeliver = 0.0
        reply.msgRateExpired = reply.messageAckRate = 0.0
        reply.consumerName = consumer.name
        reply.availablePermits = consumer.permits % 2**64  # a negative number wraps, as in Pulsar
        reply.unackedMessages = max(consumer.unacked, 0)  # a producer may claim a batch of -1 messages
        reply.blockedConsumerOnUnackedMsgs = consumer.blocked
        reply.address = session.address
        reply.connectedSince = instant_text(consumer.connected_ms)
        reply.type = subscription.type_name
        backlog = 0 if subscription.cursor is None else subscription.cursor.backlog()
        reply.msgBacklog = backlog
    session.command(pb.BaseCommand(type=pb.BaseCommand.CONSUMER_STATS_RESPONSE, consumerStatsResponse=reply))
