"""Transaction coordinators: discovery, use in turn, and another request after they have moved."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from pulsarium.client import errors
from pulsarium.client.transaction.coordinator import ASSIGN
from pulsarium.client.transaction.transaction import TransactionOptions
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import TxnId
from tests.client.hostile.clocks import on_both
from tests.client.hostile.played import silence
from tests.client.peer import Peer, Type
from tests.client.transaction.stage import coordinated


@on_both
async def test_coordinators_are_asked_in_turn_and_connected_to_once() -> None:
    async with coordinated(2) as (told, played, client):
        ids = [(await client.begin_transaction(timeout=1.5)).id() for _ in range(3)]
        assert ids == [TxnId(0, 1), TxnId(1, 2), TxnId(0, 3)]
        assert told.asked == [
            ("connect", 0), ("new", 0, 1500), ("connect", 1), ("new", 1, 1500), ("new", 0, 1500)
        ]  # fmt: skip
        looked_up = [base.lookupTopic.topic for base in played.seen if base.type == Type.LOOKUP]
        assert looked_up == [f"{ASSIGN}-partition-0", f"{ASSIGN}-partition-1"]
        assert str(ids[1]) == "(1,2)"


@on_both
async def test_brokers_without_transactions_are_named_as_such() -> None:
    async with coordinated(0) as (_, played, client):
        with pytest.raises(errors.TransactionCoordinatorNotFoundError, match="set transactionCoordinatorEnabled=true"):
            await client.begin_transaction()
        with pytest.raises(errors.TransactionCoordinatorNotFoundError):
            async with client.transaction():
                raise AssertionError
        asked = [base.partitionMetadata for base in played.seen if base.type == Type.PARTITIONED_METADATA]
        assert {one.metadata_auto_creation_enabled for one in asked} == {False}


@on_both
async def test_brokers_that_do_not_know_the_topic_of_coordinators() -> None:
    async def unknown(peer: Peer, body: Any) -> None:
        await peer.say(
            Type.PARTITIONED_METADATA_RESPONSE,
            request_id=body.request_id,
            response=pb.CommandPartitionedTopicMetadataResponse.Failed,
            error=pb.TopicNotFound,
            message="no",
        )

    async with coordinated() as (_, played, client):
        played.on[Type.PARTITIONED_METADATA] = unknown
        with pytest.raises(errors.TransactionCoordinatorNotFoundError):
            await client.begin_transaction()


@pytest.mark.parametrize("moving", [pb.TransactionCoordinatorNotFound, pb.ServiceNotReady, None])
@on_both
async def test_a_coordinator_that_moves_is_looked_up_again(moving: int | None) -> None:
    async with coordinated() as (told, played, client):
        told.refusals = {kind: [moving] for kind in (Type.NEW_TXN, Type.TC_CLIENT_CONNECT_REQUEST, Type.END_TXN)}
        txn = await client.begin_transaction()
        await txn.commit()
        kinds = [one[0] for one in told.asked]
        assert kinds == ["connect", "connect", "new", "connect", "new", "commit", "connect", "commit"]
        assert played.count(Type.LOOKUP) == 4


@on_both
async def test_a_coordinator_that_does_not_come_back_is_not_found() -> None:
    async with coordinated(operation_timeout=2.0) as (told, _, client):
        told.refusals = {Type.NEW_TXN: [pb.TransactionCoordinatorNotFound] * 100}
        with pytest.raises(errors.TransactionCoordinatorNotFoundError):
            await client.begin_transaction()


@on_both
async def test_a_coordinator_that_does_not_answer_times_out() -> None:
    async with coordinated(operation_timeout=2.0) as (_, played, client):
        played.on[Type.NEW_TXN] = silence
        start = anyio.current_time()
        with pytest.raises(errors.Timeout):
            await client.begin_transaction()
        assert anyio.current_time() - start < 3


@on_both
async def test_brokers_of_old_are_not_connected_to() -> None:
    async def old(peer: Peer, body: Any) -> None:
        await peer.say(Type.CONNECTED, server_version="old", protocol_version=18)

    async with coordinated() as (told, played, client):
        played.on[Type.CONNECT] = old
        await client.begin_transaction()
        assert told.asked == [("new", 0, 60_000)]


@pytest.mark.parametrize("timeout", [0.0, -1.0, 0.0001, float("nan"), float("inf")])
def test_timeouts_that_make_no_sense(timeout: float) -> None:
    with pytest.raises(errors.InvalidConfiguration):
        TransactionOptions(timeout=timeout)
