"""Helpers for the tests of transaction coordinators."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.config import Config
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import Bed, Type, Wire

ASSIGN = "persistent://pulsar/system/transaction_coordinator_assign"


ON = Config(transactionCoordinatorEnabled=True)


MINUTE = 60_000


async def look_up(wire: Wire, number: int = 0, *, authoritative: bool = False) -> pb.CommandLookupTopicResponse:
    answer: pb.CommandLookupTopicResponse = await wire.ask(
        Type.LOOKUP, topic=f"{ASSIGN}-partition-{number}", authoritative=authoritative
    )
    return answer


async def open_coordinator(wire: Wire, number: int = 0) -> Any:
    return await wire.ask(Type.TC_CLIENT_CONNECT_REQUEST, tc_id=number)


async def using(bed: Bed, number: int = 0, broker: int = 0, **fields: Any) -> Wire:
    """Return a connection that has looked up and opened a coordinator, as clients do."""
    wire = await bed.connect(broker=broker, **fields)
    assert (await look_up(wire, number, authoritative=True)).response == pb.CommandLookupTopicResponse.Connect
    assert not (await open_coordinator(wire, number)).HasField("error")
    return wire


async def begin(wire: Wire, number: int = 0, ttl_ms: int = MINUTE) -> dict[str, Any]:
    """Begin a transaction, and return the fields that name the transaction."""
    reply = await wire.ask(Type.NEW_TXN, tc_id=number, txn_ttl_millis=ttl_ms)
    assert not reply.HasField("error"), reply
    assert reply.txnid_most_bits == number
    return {"txnid_most_bits": number, "txnid_least_bits": reply.txnid_least_bits}


async def ended(wire: Wire, txn: dict[str, int], **fields: Any) -> None:
    reply = await wire.ask(Type.END_TXN, **txn, **fields)
    assert not reply.HasField("error"), reply
    assert {"txnid_most_bits": reply.txnid_most_bits, "txnid_least_bits": reply.txnid_least_bits} == txn
