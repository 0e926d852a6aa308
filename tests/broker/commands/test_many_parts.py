"""Requests about transactions with very many topics, while the broker serves other connections."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pulsarium.broker.model.transaction import coordinator
from pulsarium.broker.model.transaction.transaction import PAGE
from pulsarium.broker.net import slices
from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.commands.coordinators import ON, begin, ended, using
from tests.broker.session.session import used_much
from tests.broker.wire import TOPIC, Bed, Type, Wire, frame_of, serving

pytestmark = pytest.mark.req("B-29")

COUNT = PAGE // 30  # names that are too many for one step
PARTITIONS = [f"{TOPIC}{number:05}" for number in range(COUNT)]


@pytest.fixture
async def bed() -> AsyncIterator[Bed]:
    async with serving(ON) as bed:
        yield bed


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE", 0)
    monkeypatch.setattr(slices, "HALF_LIFE", math.inf)
    monkeypatch.setattr(coordinator, "PARTS_A_STEP", 1)


def count(bed: Bed, txn: dict[str, int]) -> int:
    assert bed.broker.cluster.coordinators is not None
    found = bed.broker.cluster.coordinators.anywhere(0)
    assert found is not None
    return sum(len(parts) for _, parts in found.transaction(txn["txnid_least_bits"]).in_order())


async def answer(wire: Wire, request_id: int) -> Any:
    base = await wire.reply(request_id)
    return getattr(base, COMMANDS[base.type].field)


REQUESTS: list[tuple[int, dict[str, Any]]] = [
    (Type.ADD_PARTITION_TO_TXN, {"partitions": PARTITIONS}),
    (Type.ADD_SUBSCRIPTION_TO_TXN, {"subscription": [{"topic": name, "subscription": "s"} for name in PARTITIONS]}),
]


@pytest.mark.parametrize(("type", "fields"), REQUESTS, ids=["topics", "subscriptions"])
async def test_a_bystander_is_answered_before_the_last_of_many_parts(
    bed: Bed, type: int, fields: dict[str, Any]
) -> None:
    wire = await using(bed)
    used_much(bed)
    bystander = await bed.connect()
    txn = await begin(wire)
    await wire.write(frame_of(type, request_id=77, **txn, **fields))
    await bystander.alive()
    assert count(bed, txn) == 0
    assert not (await answer(wire, 77)).HasField("error")
    assert count(bed, txn) == COUNT
    await wire.write(frame_of(Type.END_TXN, request_id=78, **txn))
    await bystander.alive()
    assert count(bed, txn) > 0
    assert not (await answer(wire, 78)).HasField("error")


async def test_an_end_behind_many_parts_waits_for_them(bed: Bed) -> None:
    wire = await using(bed)
    txn = await begin(wire)
    add = frame_of(Type.ADD_PARTITION_TO_TXN, request_id=77, **txn, partitions=PARTITIONS)
    await wire.write(add + frame_of(Type.END_TXN, request_id=78, **txn))
    for request_id in (77, 78):
        assert not (await answer(wire, request_id)).HasField("error")


async def test_many_parts_of_a_transaction_that_ends_meanwhile_are_refused(bed: Bed) -> None:
    wire, other = await using(bed), await using(bed)
    txn = await begin(wire)
    await wire.write(frame_of(Type.ADD_PARTITION_TO_TXN, request_id=77, **txn, partitions=PARTITIONS))
    await ended(other, txn)
    assert (await answer(wire, 77)).error == pb.TransactionNotFound
    await wire.alive()


async def test_nothing_is_added_for_a_connection_that_ends_before_the_last_part(bed: Bed) -> None:
    wire = await using(bed)
    (session,) = bed.broker.sessions
    other = await using(bed)
    txn = await begin(wire)
    await wire.write(frame_of(Type.ADD_PARTITION_TO_TXN, request_id=77, **txn, partitions=PARTITIONS))
    await other.alive()
    session.close("as for a broken frame")
    await other.quiet()
    assert count(bed, txn) == 0
    await ended(other, txn)
