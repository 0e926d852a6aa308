"""Transactions over scalable topics: coordinators with ids of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import Type, Wire, serving

MINUTE = 60_000
UNKNOWN = {"txnid_most_bits": 3, "txnid_least_bits": 987654}


async def begin(wire: Wire, number: int = 0) -> dict[str, int]:
    reply = await wire.ask(Type.NEW_TXN, tc_id=number, txn_ttl_millis=MINUTE, scalable=True)
    assert not reply.HasField("error"), reply
    return {"txnid_most_bits": reply.txnid_most_bits, "txnid_least_bits": reply.txnid_least_bits}


async def end(wire: Wire, txn: dict[str, int], action: Any) -> Any:
    return await wire.ask(Type.END_TXN, **txn, txn_action=action, scalable=True)


async def test_every_number_has_a_coordinator_with_ids_of_its_own(wire: Wire) -> None:
    assert [(await begin(wire, number))["txnid_least_bits"] for number in (0, 0, 99, 3)] == [0, 1, 0, 0]


@pytest.mark.parametrize(("number", "error"), [(0, None), (15, None), (16, pb.ServiceNotReady)])
async def test_a_client_connects_to_the_coordinators_that_have_a_leader(wire: Wire, number: int, error: Any) -> None:
    answer = await wire.ask(Type.TC_CLIENT_CONNECT_REQUEST, tc_id=number, scalable=True)
    assert (answer.error if answer.HasField("error") else None) == error


async def test_an_ended_transaction_accepts_the_same_end_again_and_not_the_other(wire: Wire) -> None:
    txn = await begin(wire)
    for _ in range(2):
        assert not (await end(wire, txn, pb.COMMIT)).HasField("error")
    refused = await end(wire, txn, pb.ABORT)
    assert refused.error == pb.InvalidTxnStatus
    assert refused.message == "Transaction (0,0) is COMMITTED, cannot transition to ABORTED"
    added = await wire.ask(Type.ADD_PARTITION_TO_TXN, **txn, partitions=["segment://a/b/t/0000-ffff-0"], scalable=True)
    assert not added.HasField("error")


async def test_an_unknown_transaction_belongs_to_nobody(wire: Wire) -> None:
    refused = await end(wire, UNKNOWN, pb.COMMIT)
    assert refused.error == pb.TransactionNotFound
    assert refused.message == "Client (null) is neither the owner of the transaction (3,987654) nor a super user"


async def test_a_transaction_and_its_end_survive_a_restart(tmp_path: Path) -> None:
    async with serving(data=tmp_path) as bed:
        wire = await bed.connect()
        over, opened = await begin(wire), await begin(wire)
        await end(wire, over, pb.ABORT)
    async with serving(data=tmp_path) as bed:
        wire = await bed.connect()
        assert not (await end(wire, over, pb.ABORT)).HasField("error")
        assert not (await end(wire, opened, pb.COMMIT)).HasField("error")
        assert (await begin(wire))["txnid_least_bits"] == 2


async def test_a_broker_without_these_coordinators_refuses_their_transactions(autojump_clock: object) -> None:
    async with serving(Config(transactionCoordinatorScalableTopicsEnabled=False)) as bed:
        wire = await bed.connect()
        answer = await wire.ask(Type.NEW_TXN, tc_id=0, txn_ttl_millis=MINUTE, scalable=True)
        assert (answer.error, answer.message) == (
            pb.NotAllowedError,
            "Scalable-topics transaction coordinator is not enabled on this broker",
        )
