"""Find the transaction coordinators, and send requests to them."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from functools import partial

import anyio

from pulsarium.client.connection.brokers import Brokers
from pulsarium.client.connection.connection import Connection
from pulsarium.client.errors import (
    TRANSIENT,
    ConnectError,
    Timeout,
    TopicNotFound,
    TransactionCoordinatorNotFoundError,
    TransactionNotFound,
)
from pulsarium.client.topics import partitions_of
from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import TxnId

ASSIGN = "persistent://pulsar/system/transaction_coordinator_assign"
"""The broker that serves partition N of this topic is transaction coordinator N."""
Type = pb.BaseCommand
CONNECTS_SINCE = 19  # version of the protocol that has TC_CLIENT_CONNECT_REQUEST
MOVING = (*TRANSIENT, TransactionCoordinatorNotFoundError)
"""Errors of requests while a coordinator moves to another broker."""


class Coordinator:
    """A transaction coordinator.

    Each request is repeated, at the coordinator's current broker, for `operation_timeout`.
    """

    def __init__(
        self, brokers: Brokers, number: int, connect: Callable[[], Awaitable[Connection]], *, is_scalable: bool = False
    ) -> None:
        """Make coordinator `number`. `connect` connects to its current broker.

        With `is_scalable`, the coordinator is one of those for transactions of scalable topics (PIP-473).
        """
        self.number = number
        self.is_scalable = is_scalable
        self._brokers = brokers
        self._connect = connect
        self._connection: Connection | None = None
        self._connecting = anyio.Lock()

    async def new_transaction(self, milliseconds: int) -> TxnId:
        """Begin a transaction with a timeout in milliseconds, and return its id.

        When an answer is lost, the request is repeated. The coordinator then aborts the unused transaction at its
        timeout.
        """
        body = pb.CommandNewTxn(tc_id=self.number, txn_ttl_millis=milliseconds)
        answer = (await self._ask(pb.BaseCommand(type=Type.NEW_TXN, newTxn=body))).newTxnResponse
        return TxnId(answer.txnid_most_bits, answer.txnid_least_bits)

    async def add_partition(self, txn: TxnId, topic: str) -> None:
        """Register a topic or partition before the transaction publishes to it."""
        body = pb.CommandAddPartitionToTxn(txnid_most_bits=txn.most, txnid_least_bits=txn.least, partitions=[topic])
        await self._ask(pb.BaseCommand(type=Type.ADD_PARTITION_TO_TXN, addPartitionToTxn=body))

    async def add_subscription(self, txn: TxnId, topic: str, subscription: str) -> None:
        """Register a subscription before the transaction acknowledges messages on it."""
        body = pb.CommandAddSubscriptionToTxn(txnid_most_bits=txn.most, txnid_least_bits=txn.least)
        body.subscription.add(topic=topic, subscription=subscription)
        await self._ask(pb.BaseCommand(type=Type.ADD_SUBSCRIPTION_TO_TXN, addSubscriptionToTxn=body))

    async def end(self, txn: TxnId, *, commit: bool) -> None:
        """Commit or abort a transaction.

        Raise `TransactionNotFound` when the transaction has ended already, or belongs to another coordinator.
        """
        was_lost = False
        body = pb.CommandEndTxn(txnid_most_bits=txn.most, txnid_least_bits=txn.least)
        body.txn_action = pb.COMMIT if commit else pb.ABORT
        command = pb.BaseCommand(type=Type.END_TXN, endTxn=body)

        async def attempt() -> None:
            nonlocal was_lost
            try:
                await self._attempt(command)
            except (ConnectError, Timeout):
                was_lost = True
                raise
            except TransactionNotFound as error:
                if not was_lost:
                    raise
                if commit:
                    reason = f"{error}: the answer to the first commit was lost: it is committed, unless it timed out"
                    raise TransactionNotFound(reason) from None

        await self._brokers.patiently(attempt, passing=MOVING)

    async def _ask(self, command: pb.BaseCommand) -> pb.BaseCommand:
        return await self._brokers.patiently(lambda: self._attempt(command), passing=MOVING)

    async def _attempt(self, command: pb.BaseCommand) -> pb.BaseCommand:
        connection = await self._connected()
        try:
            return await self._request(connection, command)
        except MOVING:
            if self._connection is connection:
                self._connection = None
            raise

    async def _connected(self) -> Connection:
        """Return a connection to the coordinator's broker, which has confirmed that it is this coordinator."""
        async with self._connecting:
            connection = self._connection
            if connection is None or connection.is_lost:
                connection = await self._connect()
                if connection.protocol_version >= CONNECTS_SINCE:
                    body = pb.CommandTcClientConnectRequest(tc_id=self.number)
                    command = pb.BaseCommand(type=Type.TC_CLIENT_CONNECT_REQUEST, tcClientConnectRequest=body)
                    await self._request(connection, command)
                self._connection = connection
            connection.touch()
            return connection

    async def _request(self, connection: Connection, command: pb.BaseCommand) -> pb.BaseCommand:
        body = getattr(command, COMMANDS[command.type].field)
        body.request_id = connection.next_request_id()
        if self.is_scalable:
            body.scalable = True
        return (await connection.request(command)).command


class Coordinators:
    """Choose the coordinator of each new transaction, in turn."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._all: list[Coordinator] = []
        self._finding = anyio.Lock()
        self._turns = itertools.count()

    async def next(self) -> Coordinator:
        """Return the coordinator of the next transaction.

        Raise `TransactionCoordinatorNotFoundError` where transactions are not enabled.
        """
        async with self._finding:
            if not self._all:
                self._all = await self._find()
        return self._all[next(self._turns) % len(self._all)]

    async def _find(self) -> list[Coordinator]:
        brokers = self._brokers
        try:
            count = await brokers.patiently(lambda: brokers.partitions(ASSIGN, create=False))
        except TopicNotFound:
            count = 0
        if not count:
            reason = "transactions are off: set transactionCoordinatorEnabled=true in broker.conf"
            raise TransactionCoordinatorNotFoundError(reason)
        topics = enumerate(partitions_of(ASSIGN, count))
        return [Coordinator(brokers, number, partial(brokers.connect_to, topic)) for number, topic in topics]
