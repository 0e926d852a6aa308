"""`pulsarium admin transactions`: what each command asks, and what it prints of a broker with transactions."""

from __future__ import annotations

import json

import pytest

from tests.broker.commands.coordinators import ON, begin, using
from tests.broker.wire import TOPIC, Type

from .conftest import Played
from .live import live

ROOT = "/admin/v3/transactions"
PATH = "public/default/t"


@pytest.mark.parametrize(
    ("line", "method", "target"),
    [
        ("coordinators-list", "GET", "coordinators"),
        ("coordinator-stats", "GET", "coordinatorStats"),
        ("coordinator-stats -c 3", "GET", "coordinatorStats?coordinatorId=3"),
        ("coordinator-internal-stats -c 3", "GET", "coordinatorInternalStats/3?metadata=false"),
        ("coordinator-internal-stats -c 3 -m", "GET", "coordinatorInternalStats/3?metadata=true"),
        ("scale-transactionCoordinators -r 4", "POST", "transactionCoordinator/replicas"),
        ("slow-transactions -t 10m", "GET", "slowTransactions/600000"),
        ("slow-transactions -t 1 -c 2", "GET", "slowTransactions/1000?coordinatorId=2"),
        ("transaction-metadata -m 1 -l 2", "GET", "transactionMetadata/1/2"),
        ("abort-transaction -m 1 -l 2", "POST", "abortTransaction/1/2"),
        (
            f"transaction-buffer-stats -t {TOPIC} -l",
            "GET",
            f"transactionBufferStats/{PATH}?lowWaterMarks=true&segmentStats=false",
        ),
        (
            f"buffer-snapshot-internal-stats -t {TOPIC}",
            "GET",
            f"transactionBufferInternalStats/{PATH}?metadata=false",
        ),
        (f"transaction-in-buffer-stats -m 1 -l 2 -t {TOPIC}", "GET", f"transactionInBufferStats/{PATH}/1/2"),
        (f"pending-ack-stats -t {TOPIC} -s a/b", "GET", f"pendingAckStats/{PATH}/a%252Fb?lowWaterMarks=false"),
        (
            f"pending-ack-internal-stats -t {TOPIC} -s s -m",
            "GET",
            f"pendingAckInternalStats/{PATH}/s?metadata=true",
        ),
        (
            f"transaction-in-pending-ack-stats -m 1 -l 2 -t {TOPIC} -s s",
            "GET",
            f"transactionInPendingAckStats/{PATH}/s/1/2",
        ),
        (
            f"position-stats-in-pending-ack -t {TOPIC} -s s -l 4 -e 5",
            "GET",
            f"positionStatsInPendingAck/{PATH}/s/4/5",
        ),
        (
            f"position-stats-in-pending-ack -t {TOPIC} -s s -l 4 -e 5 -b 6",
            "GET",
            f"positionStatsInPendingAck/{PATH}/s/4/5?batchIndex=6",
        ),
    ],
)
def test_each_transactions_command_asks_its_route(played: Played, line: str, method: str, target: str) -> None:
    played.answer("GET", f"{ROOT}/coordinators", [])
    played.said("transactions", *line.split())
    assert [(method, f"{ROOT}/{target}")] == [(asked, path) for asked, path, _ in played.sent]


async def test_transactions_commands_print_as_pulsar_admin() -> None:
    async with live(ON) as admin:
        wire = await using(admin.bed)
        url = admin.bed.broker.listener_at("localhost").pulsar
        assert await admin.said("transactions", "coordinators-list") == f"0    {url}\n"
        txn = await begin(wire)
        await wire.producer()
        await wire.ask(Type.ADD_PARTITION_TO_TXN, **txn, partitions=[TOPIC])
        stats = json.loads(await admin.said("transactions", "coordinator-stats"))
        assert stats["0"]["ongoingTxnSize"] == 1
        slow = json.loads(await admin.said("transactions", "slow-transactions", "-t", "10s"))
        metadata = json.loads(await admin.said("transactions", "transaction-metadata", "-m", "0", "-l", "0"))
        assert slow == {"(0,0)": metadata}
        assert metadata["status"] == "OPEN"
        assert await admin.said("transactions", "abort-transaction", "-m", "0", "-l", "0") == ""
        assert json.loads(await admin.said("transactions", "slow-transactions", "-t", "0")) == {}
