"""/admin/v3/transactions: the transaction buffers of topics."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.admin.topic.internal_stats import NOTHING_STORED
from pulsarium.broker.admin.transactions.enabled import (
    READING,
    check_enabled,
    existing_topic,
    low_watermarks_json,
    txn_of,
)
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.registry import route
from pulsarium.broker.http.reply import Reply, json_reply
from pulsarium.broker.model.transaction.buffer import TransactionBuffer, TransactionBufferStats
from pulsarium.proto.message_id import TxnId

Json = dict[str, Any]

TOPIC = "/{tenant}/{namespace}/{topic}"
SNAPSHOT_TYPE = "Single"  # transactionBufferSegmentedSnapshotEnabled=false; nothing takes snapshots here
SNAPSHOT_TOPIC = "__transaction_buffer_snapshot"


@route("GET", f"/admin/v3/transactions/transactionBufferStats{TOPIC}", needs=READING, first=check_enabled)
def get_transaction_buffer_stats(call: Call) -> Reply:
    """How far consumers may read, and how many transactions are open or were aborted."""
    return json_reply(buffer_stats(_buffer(call).stats(), low_watermarks=call.flag("lowWaterMarks")))


@route("GET", f"/admin/v3/transactions/transactionBufferInternalStats{TOPIC}", needs=READING, first=check_enabled)
def get_transaction_buffer_internal_stats(call: Call) -> Reply:
    """The ledgers of the snapshots, of which there are none: the topic's own metadata has what they would tell."""
    _buffer(call)
    stored = {"entriesAddedCounter": 0, **NOTHING_STORED, "ledgers": [], "cursors": {}}
    snapshots = {"managedLedgerName": SNAPSHOT_TOPIC, "managedLedgerInternalStats": stored}
    return json_reply({"snapshotType": SNAPSHOT_TYPE, "singleSnapshotSystemTopicInternalStats": snapshots})


@route(
    "GET",
    f"/admin/v3/transactions/transactionInBufferStats{TOPIC}/{{mostSigBits}}/{{leastSigBits}}",
    needs=READING,
    first=check_enabled,
)
def get_transaction_in_buffer_stats(call: Call) -> Reply:
    """What became of one transaction on a topic."""
    return json_reply(in_buffer_stats(_buffer(call), txn_of(call)))


def in_buffer_stats(buffer: TransactionBuffer, txn: TxnId) -> Json:
    """As TransactionInBufferStats of Pulsar's admin client."""
    stats = buffer.stats_of(txn)
    start = {} if stats.start is None else {"startPosition": str(stats.start)}
    return {**start, "aborted": stats.aborted}


def buffer_stats(stats: TransactionBufferStats, *, low_watermarks: bool) -> Json:
    """As TransactionBufferStats of Pulsar's admin client."""
    return {
        "state": stats.state,
        "maxReadPosition": str(stats.max_read_position),
        "lastSnapshotTimestamps": stats.last_snapshot_ms,
        **low_watermarks_json(stats.low_watermarks, asked=low_watermarks),
        "ongoingTxnSize": stats.ongoing,
        "recoverStartTime": stats.recover_start_ms,
        "recoverEndTime": stats.recover_end_ms,
        "totalAbortedTransactions": stats.aborted,
        "snapshotType": SNAPSHOT_TYPE,
    }


def _buffer(call: Call) -> TransactionBuffer:
    buffer = existing_topic(call).transactions
    assert buffer is not None  # check_enabled
    return buffer
