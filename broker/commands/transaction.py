"""Transactions are not built yet: every request is answered as a broker without a coordinator answers it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsarium.broker.commands.registry import handles
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
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
    reply = pb.CommandEndTxnOnPartitionResponse(
        request_id=cmd.request_id,
        txnid_least_bits=cmd.txnid_least_bits,
        txnid_most_bits=cmd.txnid_most_bits,
        error=pb.NotAllowedError,
        message="Transaction buffer disable!",
    )
    answer = pb.BaseCommand(type=pb.BaseCommand.END_TXN_ON_PARTITION_RESPONSE, endTxnOnPartitionResponse=reply)
    session.command(answer)


@handles(pb.BaseCommand.END_TXN_ON_SUBSCRIPTION, absent=WHY)
def end_txn_on_subscription(session: Session, cmd: pb.CommandEndTxnOnSubscription, trailing: bytes) -> None:
    reply = pb.CommandEndTxnOnSubscriptionResponse(
        request_id=cmd.request_id,
        txnid_least_bits=cmd.txnid_least_bits,
        txnid_most_bits=cmd.txnid_most_bits,
        error=pb.NotAllowedError,
        message="Handle end txn on subscription failed: The transaction is disabled",
    )
    answer = pb.BaseCommand(type=pb.BaseCommand.END_TXN_ON_SUBSCRIPTION_RESPONSE, endTxnOnSubscriptionResponse=reply)
    session.command(answer)
