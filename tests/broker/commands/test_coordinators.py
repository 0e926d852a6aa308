"""Transactions as clients see their coordinators (B-29): the broker that serves one, owners of transactions, and
restarts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from pulsarium.broker.config import Config
from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.auth.secured import by_token, token
from tests.broker.commands.coordinators import ASSIGN, MINUTE, ON, begin, ended, look_up, open_coordinator, using
from tests.broker.held import HeldStorage
from tests.broker.wire import TOPIC, Bed, Type, Wire, plain, serving

pytestmark = [pytest.mark.usefixtures("autojump_clock"), pytest.mark.req("B-29")]


async def error_of(wire: Wire, type: int, **fields: Any) -> tuple[int, str]:
    """Send a request that is refused. Return the error's code and text, from the request's own kind of reply."""
    reply = await wire.ask(type, **fields)
    assert reply.HasField("error"), reply
    return reply.error, reply.message


@pytest.fixture
async def bed() -> AsyncIterator[Bed]:
    async with serving(ON) as bed:
        yield bed


# looking up a coordinator


async def test_each_broker_has_a_coordinator() -> None:
    for brokers in (1, 3):
        async with serving(ON, brokers=brokers) as bed:
            wire = await bed.connect()
            assert (await wire.ask(Type.PARTITIONED_METADATA, topic=ASSIGN)).partitions == brokers


async def test_a_coordinator_must_be_looked_up_first(bed: Bed) -> None:
    wire = await bed.connect()
    code, text = await error_of(wire, Type.TC_CLIENT_CONNECT_REQUEST, tc_id=0)
    assert code == pb.ServiceNotReady
    assert text.startswith(
        "org.apache.pulsar.broker.service.BrokerServiceException$ServiceUnitNotReadyException: Namespace bundle "
        f"(pulsar/system/0xc0000000_0xffffffff) for topic ({ASSIGN}-partition-0) not served by this instance:"
    )
    not_found = pb.TransactionCoordinatorNotFound, "Transaction coordinator with id 0 not found!"
    assert await error_of(wire, Type.NEW_TXN, tc_id=0) == not_found
    await look_up(wire)
    assert await error_of(wire, Type.NEW_TXN, tc_id=0) == not_found
    await open_coordinator(wire)
    assert (await begin(wire))["txnid_least_bits"] == 0
    assert (await begin(await bed.connect()))["txnid_least_bits"] == 1  # an open coordinator serves all connections


async def test_requests_to_an_unknown_coordinator_are_refused(bed: Bed) -> None:
    wire = await using(bed)
    txn = {"txnid_most_bits": 1, "txnid_least_bits": 5}
    for request, fields in (
        (Type.ADD_PARTITION_TO_TXN, {"partitions": [TOPIC]}),
        (Type.ADD_SUBSCRIPTION_TO_TXN, {"subscription": [{"topic": TOPIC, "subscription": "s"}]}),
        (Type.END_TXN, {}),
    ):
        reply = await wire.ask(request, **txn, **fields)
        assert (reply.error, reply.message) == (
            pb.TransactionCoordinatorNotFound,
            "Transaction coordinator with id 1 not found!",
        )
        assert (reply.txnid_most_bits, reply.txnid_least_bits) == (1, 5)


async def test_a_coordinator_moves_with_its_bundle() -> None:
    async with serving(ON, brokers=2) as bed:
        first = await using(bed)
        txn = await begin(first)
        bed.brokers[0].stop()
        second = await using(bed, broker=1)
        await ended(second, txn)
        assert await begin(second) == {**txn, "txnid_least_bits": txn["txnid_least_bits"] + 1}
        bed.brokers[0].start()
        back = await bed.connect()
        assert (await error_of(back, Type.TC_CLIENT_CONNECT_REQUEST, tc_id=0))[0] == pb.ServiceNotReady
        assert (await error_of(back, Type.NEW_TXN, tc_id=0))[0] == pb.TransactionCoordinatorNotFound


async def test_a_coordinator_is_unloaded(bed: Bed) -> None:
    wire = await using(bed)
    txn = await begin(wire)
    await bed.broker.cluster.unload([("pulsar/system", "0xc0000000_0xffffffff")])
    assert (await error_of(wire, Type.END_TXN, **txn))[0] == pb.TransactionCoordinatorNotFound
    await look_up(wire)
    await open_coordinator(wire)
    await ended(wire, txn)


# transactions


async def test_a_transaction_is_over_once(bed: Bed) -> None:
    wire = await using(bed)
    for actions in ((pb.COMMIT, pb.ABORT), (pb.ABORT, pb.COMMIT), (pb.COMMIT, pb.COMMIT)):
        txn = await begin(wire)
        await ended(wire, txn, txn_action=actions[0])
        least = txn["txnid_least_bits"]
        assert await error_of(wire, Type.END_TXN, **txn, txn_action=actions[1]) == (
            pb.TransactionNotFound,
            f"The transaction with this txdID `(0,{least})`not found ",
        )
        assert (await error_of(wire, Type.ADD_PARTITION_TO_TXN, **txn, partitions=[TOPIC]))[0] == pb.TransactionNotFound


async def test_without_an_action_it_is_committed(bed: Bed) -> None:
    wire = await using(bed)
    await wire.producer()
    await wire.subscribe()
    await wire.flow()
    txn = await begin(wire)
    await wire.ask(Type.ADD_PARTITION_TO_TXN, **txn, partitions=[TOPIC])
    await wire.send(Type.SEND, plain(b"in it", **txn), producer_id=0, sequence_id=0, **txn)
    await wire.receipts(1)
    await wire.quiet()
    await ended(wire, txn)
    assert await wire.payloads(1) == [b"in it"]


async def test_a_transaction_ends_on_topics_and_subscriptions_that_do_not_exist(bed: Bed) -> None:
    """The names belong to topics that do not exist, or are invalid."""
    wire = await using(bed)
    txn = await begin(wire)
    names = [f"{TOPIC}-absent", "persistent://no/such/thing", "non-persistent://public/default/t", "/", "a://b"]
    await wire.ask(Type.ADD_PARTITION_TO_TXN, **txn, partitions=names)
    subscriptions = [{"topic": name, "subscription": "s"} for name in names]
    await wire.ask(Type.ADD_SUBSCRIPTION_TO_TXN, **txn, subscription=subscriptions)
    await ended(wire, txn, txn_action=pb.ABORT)


async def test_after_its_time_it_is_not_found(bed: Bed) -> None:
    wire = await using(bed)
    txn = await begin(wire, ttl_ms=1000)
    await trio.sleep(1.1)
    assert (await error_of(wire, Type.END_TXN, **txn))[0] == pb.TransactionNotFound


async def test_with_a_negative_time_it_is_over_at_once(bed: Bed) -> None:
    wire = await using(bed)
    txn = await begin(wire, ttl_ms=2**64 - 1)  # -1, as Java reads it
    assert (await error_of(wire, Type.END_TXN, **txn))[0] == pb.TransactionNotFound


async def test_a_transaction_beyond_the_limit_is_not_answered() -> None:
    async with serving(Config(transactionCoordinatorEnabled=True, maxActiveTransactionsPerCoordinator=1)) as bed:
        wire = await using(bed)
        txn = await begin(wire)
        await wire.write(wire.numbered(Type.NEW_TXN, tc_id=0))
        await wire.quiet()
        await ended(wire, txn)
        await begin(wire)


async def test_pipelined_requests_are_answered_in_order(bed: Bed) -> None:
    wire = await using(bed)
    txn = {"txnid_most_bits": 0, "txnid_least_bits": 0}
    asked = [
        wire.numbered(Type.NEW_TXN, tc_id=0, txn_ttl_millis=MINUTE),
        wire.numbered(Type.ADD_PARTITION_TO_TXN, **txn, partitions=[TOPIC]),
        wire.numbered(Type.END_TXN, **txn),
        wire.numbered(Type.END_TXN, **txn),
    ]
    await wire.write(b"".join(asked))
    await wire.expect(Type.NEW_TXN_RESPONSE)
    await wire.expect(Type.ADD_PARTITION_TO_TXN_RESPONSE)
    assert not (await wire.expect(Type.END_TXN_RESPONSE)).HasField("error")
    assert (await wire.expect(Type.END_TXN_RESPONSE)).error == pb.TransactionNotFound


# owners of transactions


async def test_a_transaction_is_its_owners() -> None:
    config = by_token(transactionCoordinatorEnabled=True)
    async with serving(config) as bed:

        async def as_role(role: str, **fields: Any) -> Wire:
            return await bed.connect(auth_method_name="token", auth_data=token(role).encode(), **fields)

        admin = await as_role("admin")
        await look_up(admin)
        await open_coordinator(admin)
        mine = await as_role("a")
        txn = await begin(mine)
        other, again, proxied = await as_role("b"), await as_role("a"), await as_role("proxy", original_principal="a")
        refused = pb.TransactionNotFound, "Client (b) is neither the owner of the transaction (0,0) nor a super user"
        subscriptions = [{"topic": TOPIC, "subscription": "s"}]
        assert await error_of(other, Type.ADD_PARTITION_TO_TXN, **txn, partitions=[TOPIC]) == refused
        assert await error_of(other, Type.ADD_SUBSCRIPTION_TO_TXN, **txn, subscription=subscriptions) == refused
        assert await error_of(other, Type.END_TXN, **txn) == refused
        for wire in (again, proxied, admin):
            assert not (await wire.ask(Type.ADD_PARTITION_TO_TXN, **txn, partitions=[TOPIC])).HasField("error")
        await ended(again, txn)


async def test_only_superusers_are_coordinators() -> None:
    async with serving(by_token(transactionCoordinatorEnabled=True)) as bed:
        bed.broker.topics.create(TopicName.parse(TOPIC))
        wire = await bed.connect(auth_method_name="token", auth_data=token("b").encode())
        txn = {"txnid_most_bits": 0, "txnid_least_bits": 0}
        text = "TC client (b) is not a super user, and is not allowed to operate on transaction (0,0)"
        assert await error_of(wire, Type.END_TXN_ON_PARTITION, **txn, topic=TOPIC) == (pb.TransactionNotFound, text)


# storage of transactions


async def test_numbers_go_on_after_a_crash() -> None:
    async with holding() as (store, wire):
        over, lost = await begin(wire), await begin(wire)
        await ended(wire, over)
        crashed = store.left_behind()
    async with serving(ON, storage=crashed) as bed:
        wire = await using(bed)
        assert (await error_of(wire, Type.END_TXN, **over))[0] == pb.TransactionNotFound
        await ended(wire, lost)
        assert (await begin(wire))["txnid_least_bits"] == lost["txnid_least_bits"] + 1


async def test_numbers_go_on_in_another_state(bed: Bed) -> None:
    wire = await using(bed)
    txn = await begin(wire)
    bed.broker.cluster.replace({}, [])
    assert (await error_of(wire, Type.END_TXN, **txn))[0] == pb.TransactionCoordinatorNotFound
    again = await using(bed)
    assert (await error_of(again, Type.END_TXN, **txn))[0] == pb.TransactionNotFound
    assert (await begin(again))["txnid_least_bits"] == txn["txnid_least_bits"] + 1


@asynccontextmanager
async def holding() -> AsyncIterator[tuple[HeldStorage, Wire]]:
    store = HeldStorage()
    async with serving(ON, storage=store) as bed:
        yield store, await using(bed)


async def test_nothing_is_said_before_it_is_kept() -> None:
    async with holding() as (store, wire):
        txn = await begin(wire)
        for request, fields in (
            (Type.NEW_TXN, {"tc_id": 0}),
            (Type.ADD_PARTITION_TO_TXN, {**txn, "partitions": [TOPIC]}),
            (Type.END_TXN, txn),
        ):
            store.holding = True
            await wire.write(wire.numbered(request, **fields))
            await wire.quiet()
            store.release()
            base = await wire.reply(wire.requests)
            assert not getattr(base, COMMANDS[base.type].field).HasField("error")


async def test_a_failed_commit_is_told_to_the_client_of_a_coordinator() -> None:
    """The error is TransactionCoordinatorNotFound, so that clients look up the coordinator again."""
    async with holding() as (store, wire):
        txn = await begin(wire)
        lost = (pb.TransactionCoordinatorNotFound, "commit failed: the disk is full")
        for request, fields in (
            (Type.NEW_TXN, {"tc_id": 0, "txn_ttl_millis": MINUTE}),
            (Type.ADD_PARTITION_TO_TXN, {**txn, "partitions": [TOPIC]}),
            (Type.END_TXN, txn),
        ):
            store.holding = True
            await wire.write(wire.numbered(request, **fields))
            await wire.quiet()
            store.fail()
            base = await wire.reply(wire.requests)
            reply = getattr(base, COMMANDS[base.type].field)
            assert (reply.error, reply.message) == lost
            assert not (request == Type.NEW_TXN and reply.HasField("txnid_least_bits"))
            store.release()
        assert (await begin(wire))["txnid_least_bits"] == txn["txnid_least_bits"] + 2
        await ended(wire, txn)
