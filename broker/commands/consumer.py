"""Handle FLOW, ACK, REDELIVER_UNACKNOWLEDGED_MESSAGES and CONSUMER_STATS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, islice

from pulsarium.broker.clock import instant_text
from pulsarium.broker.commands.registry import handles
from pulsarium.broker.commands.transaction import join
from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.cursor.managed_cursor import BEHIND_THE_END
from pulsarium.broker.model.cursor.pending_record import PendingEntry
from pulsarium.broker.model.cursor.records import NO_PROPERTIES, CursorProperties
from pulsarium.broker.model.errors import BrokerServiceError, NotAllowedError, TransactionConflictError
from pulsarium.broker.model.ledger.position import Position, position_of
from pulsarium.broker.model.ledger.position_set import LAST_ID, PositionSet
from pulsarium.broker.model.subscription.base import Consumer
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.transaction.transaction import TransactionPart
from pulsarium.broker.session.gate import CloseConnection
from pulsarium.broker.session.session import Session
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import TxnId
from pulsarium.proto.numbers import signed, unsigned
from pulsarium.proto.text import text_of

log = PartLog("consumer")

Individual = pb.CommandAck.Individual
PROPERTIES_AT_ONCE = 1000
CONSUMERS_ASKED = 100  # for each of the ids that are handled at once
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
    """Acknowledge messages. Ids that make no sense change nothing; the profile decides whether they get an error."""
    if cmd.ack_type == Individual or not cmd.properties:
        _ack(session, cmd, NO_PROPERTIES)
    elif len(cmd.properties) <= PROPERTIES_AT_ONCE:
        _ack(session, cmd, _properties(cmd))
    else:
        session.gate.handle_aside(partial(_properties, cmd), partial(_ack, session, cmd))


def _properties(cmd: pb.CommandAck) -> CursorProperties:
    """Return the properties of a cumulative ACK, encoded already."""
    properties = CursorProperties((text_of(pair.key), signed(pair.value)) for pair in cmd.properties)
    _ = properties.encoded
    return properties


def _ack(session: Session, cmd: pb.CommandAck, properties: CursorProperties) -> None:
    consumer = session.consumers.get(cmd.consumer_id)
    if consumer is None:
        return  # no reply either, as in Pulsar
    reply = _reply_to(cmd)
    subscription = consumer.subscription
    if cmd.HasField("validation_error"):
        why = pb.CommandAck.ValidationError.Name(cmd.validation_error)
        log.warning(
            "a client acknowledged messages that it could not read", peer=session, consumer=consumer.name, reason=why
        )
    if cmd.HasField("txnid_most_bits") and cmd.HasField("txnid_least_bits"):
        if cmd.ack_type == Individual and len(cmd.message_id) > IDS_A_STEP:
            session.gate.handle_in_slices(_acknowledge_many_in_transaction(session, consumer, cmd, reply))
            return
        try:
            _ack_in_transaction(session, consumer, cmd)
        except BrokerServiceError as refused:
            _refuse(session, cmd, reply, refused)
            return
        consumer.acked_ms = subscription.topic.now_ms()
    elif isinstance(subscription, PersistentSubscription):
        batch_acks = session.broker.config.acknowledgmentAtBatchIndexLevelEnabled
        step = _ids_a_step(subscription)
        if cmd.ack_type == Individual and len(cmd.message_id) > step:
            session.gate.handle_in_slices(_acknowledge_many(session, consumer, subscription, cmd, reply, step))
            return
        consumer.acked_ms, save_now = subscription.topic.now_ms(), reply is not None
        judged = _judged(session, reply)
        if cmd.ack_type == Individual:
            if judged is not None:
                _tell_invalid(judged, subscription, cmd.message_id)
            _acknowledge(consumer, subscription, cmd.message_id, in_parts=batch_acks, save_now=save_now)
        elif len(cmd.message_id) != 1 or subscription.shares_messages:
            log.warning("ignored a cumulative ACK of a Shared consumer, or of several ids", peer=session)
        else:
            through = cmd.message_id[0]
            position = Position(signed(through.ledgerId), signed(through.entryId))
            if judged is not None:
                _refuse_invalid(judged, subscription.cursor.why_not_through(position))
            if batch_acks or not through.ack_set:
                subscription.acknowledge_through(position, through.ack_set, properties=properties, save_now=save_now)
                consumer.acked += 1
            else:  # acknowledges nothing, but its properties are stored
                subscription.acknowledge(consumer, (), properties=properties, save_now=save_now)
        if reply is not None:
            subscription.cursor.after_save(lambda error: _answer(session, reply, error))
        return
    if reply is not None:
        session.broker.turn.after_commit(lambda error: _answer(session, reply, error))


def _judged(session: Session, reply: pb.CommandAckResponse | None) -> pb.CommandAckResponse | None:
    """Return the reply when the profile makes it an error for an id that cannot be acknowledged, or None."""
    return reply if session.broker.profile.invalid_acknowledgements_fail else None


def _tell_invalid(
    reply: pb.CommandAckResponse, subscription: PersistentSubscription, message_ids: Iterable[pb.MessageIdData]
) -> None:
    """Make the reply an error when an id cannot be acknowledged. The other ids are acknowledged all the same."""
    end = subscription.cursor.ledger.last_confirmed
    if any((signed(each.ledgerId), signed(each.entryId)) > end for each in message_ids):
        _refuse_invalid(reply, BEHIND_THE_END)


def _refuse_invalid(reply: pb.CommandAckResponse, why: str) -> None:
    if why:
        reply.error = pb.UnknownError
        reply.message = f"org.apache.bookkeeper.mledger.ManagedLedgerException: {why}"


def _acknowledge(
    consumer: Consumer,
    subscription: PersistentSubscription,
    message_ids: Sequence[pb.MessageIdData],
    *,
    in_parts: bool,
    save_now: bool,
) -> None:
    """Acknowledge entries individually. Without `in_parts`, an entry with an ack set is not acknowledged."""
    whole = [position_of((each.ledgerId, each.entryId)) for each in message_ids if not each.ack_set]
    parts: list[tuple[Position, Sequence[int]]] = []
    if in_parts and len(whole) < len(message_ids):
        parts += [(position_of((each.ledgerId, each.entryId)), each.ack_set) for each in message_ids if each.ack_set]
    subscription.acknowledge(consumer, whole, parts, save_now=save_now)


def _ids_a_step(subscription: PersistentSubscription) -> int:
    """Return how many ids are acknowledged at once. Each consumer is asked for an entry that another one has."""
    return max(1, IDS_A_STEP // (1 + len(subscription.consumers) // CONSUMERS_ASKED))


def _acknowledge_many(
    session: Session,
    consumer: Consumer,
    subscription: PersistentSubscription,
    cmd: pb.CommandAck,
    reply: pb.CommandAckResponse | None,
    step: int,
) -> Iterator[None]:
    """Acknowledge as if `step` ids had come in each of several ACKs, with the request id on the last."""
    in_parts = session.broker.config.acknowledgmentAtBatchIndexLevelEnabled
    message_ids, judged = iter(cmd.message_id), _judged(session, reply)
    while some := list(islice(message_ids, step)):
        if session.consumers.get(cmd.consumer_id) is not consumer:
            return  # the consumer was closed meanwhile
        if judged is not None:
            _tell_invalid(judged, subscription, some)
        _acknowledge(consumer, subscription, some, in_parts=in_parts, save_now=False)
        yield
    consumer.acked_ms = subscription.topic.now_ms()
    if reply is not None:
        subscription.acknowledge(consumer, (), save_now=True)
        subscription.cursor.after_save(lambda error: _answer(session, reply, error))


def _ack_in_transaction(session: Session, consumer: Consumer, cmd: pb.CommandAck) -> None:
    """Acknowledge in a transaction, without a check that the transaction exists."""
    individual = cmd.ack_type == Individual
    if not individual and (len(cmd.message_id) != 1 or consumer.type in SHARED_TYPES):
        return
    taking, txn = _in_transaction(session, consumer, cmd)
    acks = [PendingEntry.of(message_id) for message_id in cmd.message_id]
    if individual:
        taking.acknowledge_in(txn, consumer, acks)
    else:
        assert taking.pending_acks is not None
        taking.pending_acks.acknowledge_through(txn, acks[0])


def _in_transaction(session: Session, consumer: Consumer, cmd: pb.CommandAck) -> tuple[PersistentSubscription, TxnId]:
    """Return the subscription and the transaction of an ACK. Raise `BrokerServiceError` when it takes no such ACK."""
    subscription = consumer.subscription
    if not isinstance(subscription, PersistentSubscription) or subscription.pending_acks is None:
        raise NotAllowedError("Server don't support transaction ack!")
    txn = TxnId(cmd.txnid_most_bits, cmd.txnid_least_bits)
    topic = subscription.topic.name
    if topic.is_segment:
        try:
            join(session, txn, TransactionPart(str(topic), subscription.name))
        except NotAllowedError as error:
            raise TransactionConflictError(error.text) from None
    return subscription, txn


def _acknowledge_many_in_transaction(
    session: Session, consumer: Consumer, cmd: pb.CommandAck, reply: pb.CommandAckResponse | None
) -> Iterator[None]:
    try:
        subscription, txn = _in_transaction(session, consumer, cmd)
        with closing(subscription.acknowledge_in_steps(txn, consumer, map(PendingEntry.of, cmd.message_id))) as steps:
            for _ in steps:
                yield
                if session.consumers.get(cmd.consumer_id) is not consumer:
                    return  # the consumer was closed meanwhile
    except BrokerServiceError as refused:
        _refuse(session, cmd, reply, refused)
        return
    consumer.acked_ms = subscription.topic.now_ms()
    if reply is not None:
        session.broker.turn.after_commit(lambda error: _answer(session, reply, error))


def _refuse(
    session: Session, cmd: pb.CommandAck, reply: pb.CommandAckResponse | None, refused: BrokerServiceError
) -> None:
    session.note_refusal(pb.BaseCommand.ACK, cmd, refused.code, refused.text, **refused.about)
    if reply is not None:
        reply.error = refused.code
        reply.message = refused.java_text if isinstance(refused, TransactionConflictError) else refused.text
        session.command(pb.BaseCommand(type=pb.BaseCommand.ACK_RESPONSE, ackResponse=reply))


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
    """Redeliver unacknowledged messages: the named ones, or all."""
    consumer = session.consumers.get(cmd.consumer_id)
    if consumer is None or not isinstance(consumer.subscription, PersistentSubscription):
        return
    subscription, epoch = consumer.subscription, cmd.consumer_epoch if cmd.HasField("consumer_epoch") else None
    if not subscription.shares_messages:  # ids are ignored, to keep the order
        subscription.redeliver(consumer, None, epoch)
        return
    named = cmd.message_ids
    pending: Sequence[Position] = () if named else tuple(consumer.pending)
    if max(len(named), len(pending)) > IDS_A_STEP:
        session.gate.handle_in_slices(_redeliver_many(session, consumer, subscription, named, pending))
        return
    subscription.redeliver(consumer, _positions(cmd.message_ids) or None, epoch)


def _positions(ids: Iterable[pb.MessageIdData]) -> list[Position]:
    return [Position(signed(each.ledgerId), signed(each.entryId)) for each in ids]


def _redeliver_many(
    session: Session,
    consumer: Consumer,
    subscription: PersistentSubscription,
    named: Iterable[pb.MessageIdData],
    pending: Iterable[Position],
) -> Iterator[None]:
    """Redeliver, in order, as if the entries had come in several requests, as official clients split them."""
    left = PositionSet()
    coming = chain((Position(each.ledgerId, each.entryId) for each in named), pending)
    while some := list(islice(coming, IDS_A_STEP)):
        left.update(position for position in some if position.entry_id <= LAST_ID)  # no entry has a greater id
        yield
    positions = iter(left)
    while some := list(islice(positions, IDS_A_STEP)):
        if session.consumers.get(consumer.consumer_id) is not consumer:
            return  # the consumer was closed, and its messages went to others
        subscription.redeliver(consumer, some, None)
        yield


@handles(pb.BaseCommand.NEGATIVE_ACK)
def negative_ack(session: Session, cmd: pb.CommandNegativeAck, trailing: bytes) -> None:
    """Keep the order of keys after negative acknowledgements, and take back what the client returns unseen (PIP-493).

    Entries that the consumer does not have are passed over. An entry in both lists counts as negatively acknowledged.
    """
    consumer = session.consumers.get(cmd.consumer_id)
    if consumer is None or not isinstance(consumer.subscription, PersistentSubscription):
        return
    subscription = consumer.subscription
    if len(cmd.negative_acked) + len(cmd.returned) > IDS_A_STEP:
        session.gate.handle_in_slices(_negative_ack_many(session, consumer, subscription, cmd))
        return
    refused, returned = _positions(cmd.negative_acked), _positions(cmd.returned)
    if refused and returned:
        both = set(refused)
        returned = [position for position in returned if position not in both]
    subscription.negative_ack(consumer, refused, returned)


def _negative_ack_many(
    session: Session, consumer: Consumer, subscription: PersistentSubscription, cmd: pb.CommandNegativeAck
) -> Iterator[None]:
    """Handle long lists as if they had come in several commands, with those of `returned` last."""
    refused, left, returned = set[Position](), iter(cmd.negative_acked), iter(cmd.returned)
    while some := _positions(islice(left, IDS_A_STEP)):
        if session.consumers.get(consumer.consumer_id) is not consumer:
            return  # the consumer was closed meanwhile
        subscription.negative_ack(consumer, some, ())
        refused.update(some)
        yield
    while some := _positions(islice(returned, IDS_A_STEP)):
        if session.consumers.get(consumer.consumer_id) is not consumer:
            return
        subscription.negative_ack(consumer, (), [position for position in some if position not in refused])
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
        reply.availablePermits = unsigned(consumer.permits)  # a negative number wraps, as in Pulsar
        reply.unackedMessages = max(consumer.unacked, 0)  # a producer may claim a batch of -1 messages
        reply.blockedConsumerOnUnackedMsgs = consumer.blocked
        reply.address = session.address
        reply.connectedSince = instant_text(consumer.connected_ms)
        reply.type = subscription.type_name
        backlog = 0 if subscription.cursor is None else subscription.cursor.backlog()
        reply.msgBacklog = backlog
    session.command(pb.BaseCommand(type=pb.BaseCommand.CONSUMER_STATS_RESPONSE, consumerStatsResponse=reply))
