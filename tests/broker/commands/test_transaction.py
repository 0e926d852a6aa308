"""Transaction requests while transactionCoordinatorEnabled is off: the answer is the error of a broker without a
coordinator."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import TOPIC, Type, Wire

TXN = {"txnid_most_bits": 3, "txnid_least_bits": 7}


@pytest.mark.parametrize(
    ("type", "fields"),
    [
        (Type.TC_CLIENT_CONNECT_REQUEST, {"tc_id": 0}),
        (Type.NEW_TXN, {"tc_id": 0}),
        (Type.ADD_PARTITION_TO_TXN, {**TXN, "partitions": [TOPIC]}),
        (Type.ADD_SUBSCRIPTION_TO_TXN, {**TXN, "subscription": [{"topic": TOPIC, "subscription": "s"}]}),
        (Type.END_TXN, {**TXN, "txn_action": pb.COMMIT}),
    ],
    ids=lambda value: COMMANDS[value].name if isinstance(value, int) else "",
)
async def test_requests_to_the_coordinator(wire: Wire, type: int, fields: dict[str, object]) -> None:
    assert await wire.refused(type, **fields) == (pb.NotAllowedError, "Transactions are not enabled.")


async def test_requests_between_brokers(wire: Wire) -> None:
    requests: tuple[tuple[int, dict[str, Any]], ...] = (
        (Type.END_TXN_ON_PARTITION, {"topic": TOPIC}),
        (Type.END_TXN_ON_SUBSCRIPTION, {"subscription": {"topic": TOPIC, "subscription": "s"}}),
    )
    for request, fields in requests:  # nothing is to be ended on a topic that does not exist
        reply = await wire.ask(request, **TXN, **fields)
        assert not reply.HasField("error")
        assert (reply.txnid_most_bits, reply.txnid_least_bits) == (3, 7)
    await wire.subscribe(name="s")
    for request, fields in requests:
        reply = await wire.ask(request, **TXN, **fields)
        assert reply.error == pb.NotAllowedError
        assert reply.message
        assert (reply.txnid_most_bits, reply.txnid_least_bits) == (3, 7)
