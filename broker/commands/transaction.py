"""Handle commands of transactions, for coordinators and for the brokers of topics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from pulsarium.broker.auth.identity import NOBODY
from pulsarium.broker.commands.naming import InvalidNameError, parse_name
from pulsarium.broker.commands.registry import handles
from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.cursor.effect import EndEffect, after_all
from pulsarium.broker.model.errors import (
    BrokerServiceError,
    NotAllowedError,
    PersistenceError,
    ServiceNotReadyError,
    TransactionNotFoundError,
)
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.transaction.coordinator import (
    Coordinator,
    Done,
    Participant,
    TooManyTransactionsError,
)
from pulsarium.broker.model.transaction.coordinators import ASSIGN
from pulsarium.broker.model.transaction.transaction import PAGE, TransactionPart
from pulsarium.broker.session.gate import CloseConnection
from pulsarium.broker.session.session import Session
from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import TxnId
from pulsarium.proto.numbers import signed
from pulsarium.proto.text import text_of

log = PartLog("transactions")

DISABLED = "Transactions are not enabled."
SCALABLE_DISABLED = "Scalable-topics transaction coordinator is not enabled on this broker"


# for the coordinator


@handles(pb.BaseCommand.TC_CLIENT_CONNECT_REQUEST)
def connect(session: Session, cmd: pb.CommandTcClientConnectRequest, trailing: bytes) -> None:
    """Connect a client to a coordinator, which a lookup or a watch has assigned to this broker."""
    broker, cluster = session.broker, session.broker.cluster
    base = pb.BaseCommand(type=pb.BaseCommand.TC_CLIENT_CONNECT_RESPONSE)
    base.tcClientConnectResponse.request_id = cmd.request_id
    if cmd.scalable and cluster.scalable_coordinators is not None:
        is_served = cluster.scalable_coordinators.leaders.get(cmd.tc_id) is broker
    elif not cmd.scalable and cluster.coordinators is not None:
        is_served = cluster.coordinators.open(cmd.tc_id, broker)
    elif cmd.scalable:
        base.tcClientConnectResponse.error = pb.NotAllowedError
        base.tcClientConnectResponse.message = SCALABLE_DISABLED
        session.command(base)
        return
    else:
        session.error(cmd.request_id, pb.NotAllowedError, DISABLED)
        return
    if not is_served:
        base.tcClientConnectResponse.error = pb.ServiceNotReady
        base.tcClientConnectResponse.message = broker.not_served(ASSIGN.partition(cmd.tc_id)).java_text
    session.command(base)


@handles(pb.BaseCommand.NEW_TXN)
def new_txn(session: Session, cmd: pb.CommandNewTxn, trailing: bytes) -> None:
    """Open a transaction. Beyond maxActiveTransactionsPerCoordinator there is no answer, as in Pulsar."""
    principal, timeout_ms = session.principal, signed(cmd.txn_ttl_millis)
    owner = principal.role if principal.original is None else principal.original
    base = pb.BaseCommand(type=pb.BaseCommand.NEW_TXN_RESPONSE)
    reply = base.newTxnResponse
    reply.request_id, reply.txnid_most_bits = cmd.request_id, cmd.tc_id
    about = session.concerned(pb.BaseCommand.NEW_TXN, cmd) | {"coordinator": cmd.tc_id}

    def begun(error: BrokerServiceError | None) -> None:
        if error is not None:
            reply.ClearField("txnid_least_bits")
        _answer(session, base, reply, error, about)

    def begin(coordinator: Coordinator) -> None:
        try:
            reply.txnid_least_bits = coordinator.begin(timeout_ms, owner, begun).least
        except TooManyTransactionsError:
            log.warning("too many active transactions", coordinator=coordinator.number, peer=session.address)

    _ask(session, cmd, cmd.tc_id, begun, begin)


@handles(pb.BaseCommand.ADD_PARTITION_TO_TXN)
def add_partition_to_txn(session: Session, cmd: pb.CommandAddPartitionToTxn, trailing: bytes) -> None:
    """Register topics to which a transaction is about to publish."""
    _add(session, cmd, pb.BaseCommand.ADD_PARTITION_TO_TXN, (TransactionPart(text_of(name)) for name in cmd.partitions))


@handles(pb.BaseCommand.ADD_SUBSCRIPTION_TO_TXN)
def add_subscription_to_txn(session: Session, cmd: pb.CommandAddSubscriptionToTxn, trailing: bytes) -> None:
    """Register subscriptions on which a transaction is about to acknowledge."""
    parts = (TransactionPart(text_of(each.topic), text_of(each.subscription)) for each in cmd.subscription)
    _add(session, cmd, pb.BaseCommand.ADD_SUBSCRIPTION_TO_TXN, parts)


def _add(session: Session, cmd: Any, request: int, parts: Iterable[TransactionPart]) -> None:
    txn, done = _txn_of(cmd), _answering(session, request, cmd)

    def add(coordinator: Coordinator) -> None:
        _check_owner(session, coordinator, txn)
        if cmd.ByteSize() <= PAGE:
            coordinator.add(txn.least, parts, done)
        else:
            session.gate.handle_in_slices(_refusing(session, done, coordinator.add_in_steps(txn.least, parts, done)))

    _ask(session, cmd, txn.most, done, add)


@handles(pb.BaseCommand.END_TXN)
def end_txn(session: Session, cmd: pb.CommandEndTxn, trailing: bytes) -> None:
    """Commit or abort a transaction. A request without an action commits."""
    _check_presence(session, cmd, "txn_action")
    commit = cmd.txn_action == pb.COMMIT
    txn, done = _txn_of(cmd), _answering(session, pb.BaseCommand.END_TXN, cmd)

    def end(coordinator: Coordinator) -> None:
        _check_owner(session, coordinator, txn)
        coordinator.end(txn.least, commit=commit, done=done)

    _ask(session, cmd, txn.most, done, end)


def _ask(session: Session, cmd: Any, number: int, done: Done, what: Callable[[Coordinator], None]) -> None:
    """Call `what` with a coordinator that this broker serves, or refuse the request."""
    cluster = session.broker.cluster
    if not cmd.scalable and cluster.coordinators is None:
        session.error(cmd.request_id, pb.NotAllowedError, DISABLED)
        return
    try:
        what(_coordinator(session, number, scalable=cmd.scalable))
    except BrokerServiceError as error:
        _refuse(session, done, error)


def _refusing(session: Session, done: Done, steps: Iterator[None]) -> Iterator[None]:
    """Go through steps, and answer with the error of the one that refuses the request."""
    try:
        yield from steps
    except BrokerServiceError as error:
        _refuse(session, done, error)


def _refuse(session: Session, done: Done, error: BrokerServiceError) -> None:
    """Answer with an error after the commits that are under way."""
    session.broker.turn.after_commit(lambda _: done(error))


def _coordinator(session: Session, number: int, *, scalable: bool) -> Coordinator:
    cluster = session.broker.cluster
    if not scalable:
        assert cluster.coordinators is not None
        return cluster.coordinators.served(number, session.broker)
    if cluster.scalable_coordinators is None:
        raise NotAllowedError(SCALABLE_DISABLED)
    return cluster.scalable_coordinators.coordinator(number)


def join(session: Session, txn: TxnId, part: TransactionPart) -> None:
    """Add the segment or subscription that a transaction over scalable topics changes now.

    Raise `NotAllowedError` when the transaction is not open.
    """
    coordinators = session.broker.cluster.scalable_coordinators
    if coordinators is None:
        raise NotAllowedError(SCALABLE_DISABLED)
    coordinators.join(txn, part)


def _check_owner(session: Session, coordinator: Coordinator, txn: TxnId) -> None:
    """Raise `TransactionNotFoundError` for a role that neither owns the transaction nor is a superuser.

    PIP-31 has no such check; Pulsar 4.x has.
    """
    principal = session.principal
    if coordinator.belongs_to(txn.least, str(principal)) or _is_superuser(session):
        return
    name = "null" if principal == NOBODY else principal
    raise TransactionNotFoundError(f"Client ({name}) is neither the owner of the transaction {txn} nor a super user")


def _is_superuser(session: Session) -> bool:
    authorization, principal = session.broker.cluster.authorization, session.principal
    if authorization is None or not authorization.is_superuser(principal.role):
        return False
    return principal.original is None or authorization.is_superuser(principal.original)


# for the broker that serves a topic


@handles(pb.BaseCommand.END_TXN_ON_PARTITION)
def end_txn_on_partition(session: Session, cmd: pb.CommandEndTxnOnPartition, trailing: bytes) -> None:
    """End a transaction on a topic. Answer with success when the topic does not exist."""
    _end_on(session, cmd, pb.BaseCommand.END_TXN_ON_PARTITION, cmd.topic, lambda topic: topic.buffer())


@handles(pb.BaseCommand.END_TXN_ON_SUBSCRIPTION)
def end_txn_on_subscription(session: Session, cmd: pb.CommandEndTxnOnSubscription, trailing: bytes) -> None:
    """End a transaction on a subscription. Answer with success when the topic does not exist."""
    name = text_of(cmd.subscription.subscription)
    request = pb.BaseCommand.END_TXN_ON_SUBSCRIPTION
    _end_on(session, cmd, request, cmd.subscription.topic, lambda topic: topic.pending_acks_of(name))


def _end_on(session: Session, cmd: Any, request: int, topic: str, find: Callable[[Topic], Participant | None]) -> None:
    """End a transaction on its participant on `topic`, which `find` returns."""
    _check_presence(session, cmd, "txn_action", "txnid_least_bits_of_low_watermark")
    txn, done = _txn_of(cmd), _answering(session, request, cmd)
    refusal: BrokerServiceError | None = None
    effects: list[EndEffect] = []
    try:
        found = _topic(session, topic)
        participant = None if found is None else find(found)
        if participant is not None:
            _check_coordinator(session, txn)
            low_watermark = signed(cmd.txnid_least_bits_of_low_watermark)
            effect = participant.end(txn, commit=cmd.txn_action == pb.COMMIT, low_watermark=low_watermark)
            effects += () if effect is None else (effect,)
    except BrokerServiceError as error:
        refusal = error

    def committed(error: Exception | None) -> None:
        if error is None:
            after_all(effects, partial(done, refusal))
        else:
            done(refusal or PersistenceError(str(error)))

    session.broker.turn.after_commit(committed)


def _check_presence(session: Session, cmd: Any, *fields: str) -> None:
    """Close the connection where the release does so if one of these optional fields is absent."""
    absent = [field for field in fields if not cmd.HasField(field)]
    if absent and session.profile.absent_fields_close:
        raise CloseConnection(f"{cmd.DESCRIPTOR.name} without {absent[0]}")


def _check_coordinator(session: Session, txn: TxnId) -> None:
    """Raise `TransactionNotFoundError` unless the client is a superuser, as coordinators are, with authorization."""
    if session.broker.cluster.authorization is not None and not _is_superuser(session):
        raise TransactionNotFoundError(
            f"TC client ({session.principal}) is not a super user, and is not allowed to operate on transaction {txn}"
        )


def _topic(session: Session, text: str) -> Topic | None:
    try:
        name = parse_name(session, text)
    except InvalidNameError as error:
        raise CloseConnection(error.text) from None
    topics = session.broker.topics
    if not topics.exists(name):
        return None
    if session.broker.cluster.ownership.owner(name) is not session.broker:
        raise ServiceNotReadyError(session.broker.not_served(name).java_text)
    return topics.find(name)


# answers


def _txn_of(cmd: Any) -> TxnId:
    return TxnId(cmd.txnid_most_bits, cmd.txnid_least_bits)


def _answering(session: Session, request: int, cmd: Any) -> Done:
    """Return a function that answers a request about a transaction, in the form that all these answers share."""
    answered_by = COMMANDS[request].reply
    assert answered_by is not None
    base = pb.BaseCommand(type=pb.BaseCommand.Type.Name(answered_by))
    reply = getattr(base, COMMANDS[answered_by].field)
    reply.request_id = cmd.request_id
    reply.txnid_least_bits, reply.txnid_most_bits = cmd.txnid_least_bits, cmd.txnid_most_bits
    about = session.concerned(request, cmd)
    return lambda error: _answer(session, base, reply, error, about)


def _answer(
    session: Session, base: pb.BaseCommand, reply: Any, error: BrokerServiceError | None, about: dict[str, object]
) -> None:
    if error is not None:
        session.refused("request refused", error.code, error.text, **about, **error.about)
        reply.error, reply.message = error.code, error.text
    session.command(base)
