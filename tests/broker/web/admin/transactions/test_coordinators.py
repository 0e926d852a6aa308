"""Transaction coordinators and their transactions over REST."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.config.profile import PULSAR_4_2
from pulsarium.broker.net import slices
from tests.broker.auth.secured import bearer, by_token
from tests.broker.commands.coordinators import ASSIGN, ON, begin, look_up, using
from tests.broker.web.admin.rest import TOPICS, Rest, rest_of
from tests.broker.wire import TOPIC, Bed, Type, Wire, serving

ROOT = "/admin/v3/transactions"
MISSING = "Transaction coordinator not found! coordinator id : {}"

pytestmark = [pytest.mark.usefixtures("autojump_clock"), pytest.mark.req("B-29")]


@pytest.fixture
async def bed() -> AsyncIterator[Bed]:
    async with serving(ON) as bed:
        yield bed


async def touching(wire: Wire) -> dict[str, int]:
    """Begin a transaction, and add a topic and a subscription to it."""
    txn = await begin(wire)
    await wire.ask(Type.ADD_PARTITION_TO_TXN, **txn, partitions=[TOPIC])
    await wire.ask(Type.ADD_SUBSCRIPTION_TO_TXN, **txn, subscription=[{"topic": TOPIC, "subscription": "sub"}])
    return txn


READ = """
coordinators coordinatorStats coordinatorInternalStats/0 slowTransactions/0 transactionMetadata/0/0
transactionBufferStats/public/default/t transactionInBufferStats/public/default/t/0/1
transactionBufferInternalStats/public/default/t pendingAckStats/public/default/t/s
pendingAckInternalStats/public/default/t/s
"""


async def test_a_broker_without_transactions_answers_503() -> None:
    async with serving(Config()) as bed:
        rest = rest_of(bed)
        calls = [("GET", path) for path in READ.split()]
        for method, path in [*calls, ("POST", "abortTransaction/0/0"), ("POST", "transactionCoordinator/replicas")]:
            refused = await rest.refused(method, f"{ROOT}/{path}")
            assert refused == (503, "This Broker is not configured with transactionCoordinatorEnabled=true."), path


async def test_the_coordinators_of_all_brokers_are_listed() -> None:
    async with serving(ON, brokers=3) as bed:
        found = await rest_of(bed, 1).get(f"{ROOT}/coordinators")
        assert [each["id"] for each in found] == [0, 1, 2]
        for each in found:  # the same broker as in a lookup
            number, url = each["id"], each["brokerServiceUrl"]
            answer = await look_up(await bed.connect(), number)
            assert answer.brokerServiceUrl == url


async def test_a_coordinator_that_no_client_has_opened_is_not_found(rest: Rest) -> None:
    for path in ("coordinatorStats", "slowTransactions/0?coordinatorId=0", "slowTransactions/0"):
        assert await rest.refused("GET", f"{ROOT}/{path}") == (404, MISSING.format(0))
    missing = "Transaction coordinator with id 0 not found!"
    assert await rest.refused("GET", f"{ROOT}/transactionMetadata/0/0") == (404, missing)
    assert await rest.refused("POST", f"{ROOT}/abortTransaction/0/0") == (404, missing)


async def test_unknown_coordinators_are_a_fault_of_the_released_broker() -> None:
    async with serving(ON, profile=PULSAR_4_2) as bed:
        rest = rest_of(bed)
        for method, path, text in (
            ("GET", "coordinatorStats", f"PulsarAdminException$NotFoundException: {MISSING.format(0)}"),
            ("POST", "abortTransaction/99/0", "Transaction coordinator with id 99 not found!"),
            ("POST", "abortTransaction/x/0", 'For input string: "x"'),
        ):
            status, reason = await rest.refused(method, f"{ROOT}/{path}")
            assert status == 500
            assert text in reason
        assert (await rest.call("GET", f"{ROOT}/slowTransactions/x")).status == 500


async def test_stats_of_a_coordinator_count_its_transactions(bed: Bed, rest: Rest) -> None:
    wire = await using(bed)
    stats = await rest.get(f"{ROOT}/coordinatorStats?coordinatorId=0")
    times = {name: stats.pop(name) for name in ("recoverStartTime", "recoverEndTime")}
    assert times["recoverStartTime"] == times["recoverEndTime"] > 0
    assert stats == {"state": "Ready", "leastSigBits": -1, "lowWaterMark": 0, "ongoingTxnSize": 0}
    txn = await begin(wire)
    expected = {"state": "Ready", "leastSigBits": 0, "lowWaterMark": -1, "ongoingTxnSize": 1, **times}
    assert await rest.get(f"{ROOT}/coordinatorStats") == {"0": expected}
    await begin(wire)
    await wire.ask(Type.END_TXN, **txn)
    expected = {"state": "Ready", "leastSigBits": 1, "lowWaterMark": 0, "ongoingTxnSize": 1, **times}
    assert await rest.get(f"{ROOT}/coordinatorStats") == {"0": expected}
    assert (await rest.call("GET", f"{ROOT}/coordinatorStats?coordinatorId=x")).status == 404


async def test_internal_stats_are_those_of_the_transaction_log(bed: Bed, rest: Rest) -> None:
    await using(bed)
    stats = (await rest.get(f"{ROOT}/coordinatorInternalStats/0?metadata=true"))["transactionLogStats"]
    assert stats["managedLedgerName"] == "pulsar/system/persistent/__transaction_log_0"
    assert stats["managedLedgerInternalStats"]["state"] == "LedgerOpened"


async def test_metadata_of_a_transaction_say_what_it_touches(bed: Bed, rest: Rest) -> None:
    wire = await using(bed)
    await wire.producer()
    await wire.subscribe()
    txn = await touching(wire)
    metadata = await rest.get(f"{ROOT}/transactionMetadata/0/0")
    assert 0 < metadata.pop("openTimestamp") < 2**53
    assert metadata == {
        "txnId": "(0,0)",
        "status": "OPEN",
        "timeoutAt": 60_000,
        "producedPartitions": {TOPIC: {"aborted": False}},
        "ackedPartitions": {TOPIC: {"sub": {}}},
    }
    await rest.done("DELETE", f"{TOPICS}/t?force=true")
    again = await rest.get(f"{ROOT}/transactionMetadata/0/0")
    assert again["producedPartitions"] == {TOPIC: {"aborted": False}}
    await wire.ask(Type.END_TXN, **txn)
    gone = (404, "The transaction with this txdID `(0,0)`not found ")
    assert await rest.refused("GET", f"{ROOT}/transactionMetadata/0/0") == gone


async def test_slow_transactions_are_those_with_more_time_than_asked(bed: Bed, rest: Rest) -> None:
    wire = await using(bed)
    for ttl_ms in (1000, 2000, 3000):
        await begin(wire, ttl_ms=ttl_ms)
    for path in ("slowTransactions/1000", "slowTransactions/1000?coordinatorId=0"):
        found = await rest.get(f"{ROOT}/{path}")
        assert list(found) == ["(0,1)", "(0,2)"]
        assert found["(0,2)"] == await rest.get(f"{ROOT}/transactionMetadata/0/2")
    assert await rest.get(f"{ROOT}/slowTransactions/3000") == {}


async def test_an_operator_aborts_a_transaction(bed: Bed, rest: Rest) -> None:
    await touching(await using(bed))
    await rest.done("POST", f"{ROOT}/abortTransaction/0/0")
    gone = (404, "The transaction with this txdID `(0,0)`not found ")
    assert await rest.refused("POST", f"{ROOT}/abortTransaction/0/0") == gone
    for path in ("abortTransaction/-1/0", "abortTransaction/2147483648/0", "abortTransaction/0/x"):
        assert (await rest.call("POST", f"{ROOT}/{path}")).status == 400


async def test_an_abort_of_several_turns_is_answered_behind_the_last(
    bed: Bed, rest: Rest, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = await using(bed)
    await wire.ask(
        Type.ADD_PARTITION_TO_TXN, **await begin(wire), partitions=[f"{TOPIC}{number}" for number in range(200)]
    )
    monkeypatch.setattr(slices, "SLICE", 0)
    await rest.done("POST", f"{ROOT}/abortTransaction/0/0")
    assert bed.broker.cluster.coordinators is not None
    assert bed.broker.cluster.coordinators.served(0, bed.broker).active == 0


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Return a list that grows with each pause of a request. A pause follows each step."""
    found: list[None] = []

    async def checkpoint() -> None:
        found.append(None)

    monkeypatch.setattr(slices, "SLICE", 0)
    monkeypatch.setattr(slices, "checkpoint", checkpoint)
    return found


@pytest.mark.parametrize(
    "path", ["transactionMetadata/0/0", "slowTransactions/0", "slowTransactions/0?coordinatorId=0"]
)
async def test_other_work_runs_while_a_transaction_with_many_topics_is_shown(
    bed: Bed, rest: Rest, pauses: list[None], path: str
) -> None:
    wire = await using(bed)
    names = [f"{TOPIC}{number}" for number in range(20)]
    await wire.ask(Type.ADD_PARTITION_TO_TXN, **await begin(wire), partitions=names)
    pauses.clear()
    found = await rest.get(f"{ROOT}/{path}")
    shown = found if path.startswith("transactionMetadata") else found["(0,0)"]
    assert list(shown["producedPartitions"]) == sorted(names)
    assert len(pauses) >= 20


async def test_other_work_runs_while_many_coordinators_are_listed(rest: Rest, pauses: list[None]) -> None:
    await rest.done("POST", f"{ROOT}/transactionCoordinator/replicas", 20)
    pauses.clear()
    assert len(await rest.get(f"{ROOT}/coordinators")) == 20
    assert len(pauses) >= 20


@pytest.mark.parametrize("replicas", [-1, 0, 1, 65_537])
async def test_there_are_never_fewer_coordinators(rest: Rest, replicas: int) -> None:
    status, _ = await rest.refused("POST", f"{ROOT}/transactionCoordinator/replicas", replicas)
    assert status == 406


async def test_there_may_be_more_coordinators(bed: Bed, rest: Rest) -> None:
    url = f"{ROOT}/transactionCoordinator/replicas"
    await rest.done("POST", url, 3)
    assert [each["id"] for each in await rest.get(f"{ROOT}/coordinators")] == [0, 1, 2]
    wire = await using(bed, 2)
    assert (await wire.ask(Type.PARTITIONED_METADATA, topic=ASSIGN)).partitions == 3
    await begin(wire, 2)
    assert await rest.refused("GET", f"{ROOT}/coordinatorStats") == (404, MISSING.format(0))
    assert list(await rest.get(f"{ROOT}/slowTransactions/0?coordinatorId=2")) == ["(2,0)"]
    answer = await rest.call("POST", url)
    assert (answer.status, answer.body) == (400, b"The request entity cannot be empty.")


async def test_another_broker_answers_for_its_own() -> None:
    async with serving(ON, brokers=2) as bed:
        here, there = rest_of(bed), rest_of(bed, 1)
        await using(bed, broker=1)
        for path in ("coordinatorStats?coordinatorId=0", "coordinatorInternalStats/0"):
            moved = await here.call("GET", f"{ROOT}/{path}")
            assert moved.status == 307
            assert moved.headers["location"].startswith(f"http://broker.internal:8081{ROOT}/")
            assert (await there.call("GET", f"{ROOT}/{path}")).status == 200
        assert (await here.call("GET", f"{ROOT}/transactionMetadata/0/0")).status == 307
        assert (await here.call("POST", f"{ROOT}/abortTransaction/0/0")).status == 307
        await using(bed, 1)
        assert list(await here.get(f"{ROOT}/coordinatorStats")) == ["0", "1"]


async def test_only_some_roles_ask_about_coordinators() -> None:
    async with serving(by_token(transactionCoordinatorEnabled=True)) as bed:
        rest = rest_of(bed)
        for path in ("coordinatorStats", "slowTransactions/0"):
            answer = await rest.call("GET", f"{ROOT}/{path}", **bearer("user"))
            text = f"Unauthorized to validateTopicOperation for operation [LOOKUP] on topic [{ASSIGN}]"
            assert (answer.status, answer.reason) == (401, text)
        for path in ("abortTransaction/0/0", "transactionCoordinator/replicas"):
            assert (await rest.call("POST", f"{ROOT}/{path}", 5, **bearer("user"))).status == 401
        await rest.call("POST", f"{ROOT}/transactionCoordinator/replicas", 5, **bearer("admin"))
        assert len((await rest.call("GET", f"{ROOT}/coordinators", **bearer("admin"))).json) == 5
