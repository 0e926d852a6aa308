"""What is asked of a coordinator; the request id is the connection's to give."""

from __future__ import annotations

from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import TxnId

Type = pb.BaseCommand


def connect(number: int) -> pb.BaseCommand:
    """TC_CLIENT_CONNECT_REQUEST: the broker takes up its work as this coordinator."""
    body = pb.CommandTcClientConnectRequest(tc_id=number)
    return pb.BaseCommand(type=Type.TC_CLIENT_CONNECT_REQUEST, tcClientConnectRequest=body)


def new_transaction(number: int, milliseconds: int) -> pb.BaseCommand:
    body = pb.CommandNewTxn(tc_id=number, txn_ttl_millis=milliseconds)
    return pb.BaseCommand(type=Type.NEW_TXN, newTxn=body)


def add_partition(txn: TxnId, topic: str) -> pb.BaseCommand:
    body = pb.CommandAddPartitionToTxn(txnid_most_bits=txn.most, txnid_least_bits=txn.least, partitions=[topic])
    return pb.BaseCommand(type=Type.ADD_PARTITION_TO_TXN, addPartitionToTxn=body)


def add_subscription(txn: TxnId, topic: str, subscription: str) -> pb.BaseCommand:
    body = pb.CommandAddSubscriptionToTxn(txnid_most_bits=txn.most, txnid_least_bits=txn.least)
    body.subscription.add(topic=topic, subscription=subscription)
    return pb.BaseCommand(type=Type.ADD_SUBSCRIPTION_TO_TXN, addSubscriptionToTxn=body)


def end(txn: TxnId, *, commit: bool) -> pb.BaseCommand:
    body = pb.CommandEndTxn(txnid_most_bits=txn.most, txnid_least_bits=txn.least)
    body.txn_action = pb.COMMIT if commit else pb.ABORT
    return pb.BaseCommand(type=Type.END_TXN, endTxn=body)
