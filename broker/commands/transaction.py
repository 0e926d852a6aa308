"""Transactions are not built yet: every request is answered as a broker without a coordinator answers it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsarium.broker.commands.errors import CloseConnection
from pulsarium.broker.commands.naming import InvalidNameError, parse_name
from pulsarium.broker.commands.registry import handles
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.broker.model.topic.base import Topic
    from pulsarium.broker.session.session import Session

WHY = "transactions are not built yet; answered as with transactionCoordinatorEnabled=false"
Request = (
    pb.CommandTcClientConnectRequest
    | pb.CommandNewTxn
    | pb.CommandAddPartitionToTxn
    | pb.CommandAddSubscriptionToTxn
    | pb.CommandEndTxn
)


@handles(pb.BaseCommand.TC_CLIENT_CONNECT_REQUEST, absent=WHY)
@handles(pb.BaseCommand.NEW_TXN, absent=WHY)
@handles(pb.BaseCommand.ADD_PARTITION_TO_TXN, absent=WHY)
@handles(pb.BaseCommand.ADD_SUBSCRIPTION_TO_TXN, absent=WHY)
@handles(pb.BaseCommand.END_TXN, absent=WHY)
def not_enabled(session: Session, cmd: Request, trailing: bytes) -> None:
    session.error(cmd.request_id, pb.NotAllowedError, "Transactions are not enabled.")


@handles(pb.BaseCommand.END_TXN_ON_PARTITION, absent=WHY)
def end_txn_on_partition(session: Session, cmd: pb.CommandEndTxnOnPartition, trailing: bytes) -> None:
    """A topic that is gone has nothing left to end."""
    reply = pb.CommandEndTxnOnPartitionResponse(
        request_id=cmd.request_id,
        txnid_least_bits=cmd.txnid_least_bits,
        txnid_most_bits=cmd.txnid_most_bits,
    )
    if _topic(session, cmd.topic) is not None:
        reply.error = pb.NotAllowedError
        reply.message = "Transaction buffer disable!"
    answer = pb.BaseCommand(type=pb.BaseCommand.END_TXN_ON_PARTITION_RESPONSE, endTxnOnPartitionResponse=reply)
    session.command(answer)


@handles(pb.BaseCommand.END_TXN_ON_SUBSCRIPTION, absent=WHY)
def end_txn_on_subscription(session: Session, cmd: pb.CommandEndTxnOnSubscription, trailing: bytes) -> None:
    """As above."""
    reply = pb.CommandEndTxnOnSubscriptionResponse(
        request_id=cmd.request_id,
        txnid_least_bits=cmd.txnid_least_bits,
        txnid_most_bits=cmd.txnid_most_bits,
    )
    topic = _topic(session, cmd.subscription.topic)
    if topic is not None and cmd.subscription.subscription in topic.subscriptions:
        reply.error = pb.NotAllowedError
        reply.message = "Handle end txn on subscription failed: The transaction is disabled"
    answer = pb.BaseCommand(type=pb.BaseCommand.END_TXN_ON_SUBSCRIPTION_RESPONSE, endTxnOnSubscriptionResponse=reply)
    session.command(answer)


def _topic(session: Session, text: str) -> Topic | None:
    try:
        name = parse_name(text)
    except InvalidNameError as error:
        raise CloseConnection(error.text) from None
    topics = session.broker.topics
    return topics.find(name) if topics.exists(name) else None
