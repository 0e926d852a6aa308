"""/admin/v3/transactions: transaction buffers of topics, and pending acknowledgements of subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote_plus

from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.model.cursor.pending_acks import PendingAcks
from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.model.topic.topics import Topics
from pulsarium.broker.model.transaction.buffer import TransactionBuffer, TransactionBufferStats
from pulsarium.broker.model.transaction.transaction import Transaction
from pulsarium.broker.net.slices import Slice
from pulsarium.broker.web.admin.topic.internal_stats import NOTHING_STORED
from pulsarium.broker.web.admin.topic.topics import no_subscription
from pulsarium.broker.web.http.call import Call, number_in, number_of
from pulsarium.broker.web.http.errors import AdminError, unexpected_body
from pulsarium.broker.web.http.registry import Handler, route
from pulsarium.broker.web.http.reply import HttpReply, json_reply
from pulsarium.proto.message_id import TxnId
from pulsarium.proto.numbers import unsigned
from pulsarium.proto.special_names import PENDING_ACKS, SNAPSHOTS

READING = topic_operation("GET_STATS", unasked=True)  # the right that other stats of a topic need
H = TypeVar("H", bound=Handler)


def _read(path: str) -> Callable[[H], H]:
    """Make a function the handler of GET on a path of transactions. Without transactions, the route answers 503."""
    return route("GET", f"/admin/v3/transactions/{path}", needs=READING, first=check_enabled)


def check_enabled(call: Call) -> None:
    """Raise `AdminError` 503 on a broker that serves no transactions."""
    if not call.broker.config.transactionCoordinatorEnabled:
        raise AdminError(503, "This Broker is not configured with transactionCoordinatorEnabled=true.")


def existing_topic(call: Call) -> PersistentTopic:
    """Return the topic of the path, loaded. Raise `AdminError` 404 for a missing or partitioned one."""
    name = call.topic
    try:
        return call.broker.topics.find_persistent(name)
    except BrokerServiceError:
        raise AdminError(404, f"Topic not found {name}") from None


def txn_of(call: Call) -> TxnId:
    """Return the transaction of the path."""
    most, least = (unsigned(number_of(call, name, bits=64)) for name in ("mostSigBits", "leastSigBits"))
    return TxnId(most, least)


def low_watermarks_json(low_watermarks: Mapping[int, int], *, asked: bool) -> dict[str, Any]:
    """Return low watermarks by coordinator, as stats show them; nothing unless `asked`."""
    return {"lowWaterMarks": {str(tc): least for tc, least in low_watermarks.items()}} if asked else {}


Json = dict[str, Any]

TOPIC = "/{tenant}/{namespace}/{topic}"
SNAPSHOT_TYPE = "Single"  # transactionBufferSegmentedSnapshotEnabled=false; Pulsarium takes no snapshots


@_read(f"transactionBufferStats{TOPIC}")
def get_transaction_buffer_stats(call: Call) -> HttpReply:
    """Return the max read position, and the numbers of open and aborted transactions."""
    return json_reply(buffer_stats(_buffer(call).stats(), low_watermarks=call.flag("lowWaterMarks")))


@_read(f"transactionBufferInternalStats{TOPIC}")
def get_transaction_buffer_internal_stats(call: Call) -> HttpReply:
    """Return the ledgers of the snapshots. They are empty, because the topic's own metadata has that state."""
    _buffer(call)
    stored = {"entriesAddedCounter": 0, **NOTHING_STORED, "ledgers": [], "cursors": {}}
    snapshots = {"managedLedgerName": SNAPSHOTS[0], "managedLedgerInternalStats": stored}
    return json_reply({"snapshotType": SNAPSHOT_TYPE, "singleSnapshotSystemTopicInternalStats": snapshots})


@_read(f"transactionInBufferStats{TOPIC}/{{mostSigBits}}/{{leastSigBits}}")
def get_transaction_in_buffer_stats(call: Call) -> HttpReply:
    """Return the state of one transaction on a topic."""
    return json_reply(in_buffer_stats(_buffer(call), txn_of(call)))


def in_buffer_stats(buffer: TransactionBuffer, txn: TxnId) -> Json:
    """Return TransactionInBufferStats of Pulsar's admin client."""
    stats = buffer.stats_of(txn)
    start = {} if stats.start is None else {"startPosition": str(stats.start)}
    return {**start, "aborted": stats.aborted}


def buffer_stats(stats: TransactionBufferStats, *, low_watermarks: bool) -> Json:
    """Return TransactionBufferStats of Pulsar's admin client."""
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


SUBSCRIPTION = "/{tenant}/{namespace}/{topic}/{subscription}"
JAVA = "org.apache.pulsar.broker.service.persistent"
NULL = f'Cannot invoke "{JAVA}.PersistentSubscription.{{0}}" because the return value of "{{1}}" is null'
OF_MAP = "java.util.Map.get(Object)"
OF_TOPIC = f"{JAVA}.PersistentTopic.getSubscription(String)"


@_read(f"pendingAckStats{SUBSCRIPTION}")
def get_pending_ack_stats(call: Call) -> HttpReply:
    """Return the number of open transactions with individual acknowledgements."""
    pending = _pending(call, NULL.format("getTransactionPendingAckStats(boolean)", OF_MAP))
    return json_reply(pending_ack_stats(pending, low_watermarks=call.flag("lowWaterMarks")))


def pending_ack_stats(pending: PendingAcks, *, low_watermarks: bool) -> Json:
    """Return TransactionPendingAckStats of Pulsar's admin client."""
    stats = pending.stats()
    return {
        "state": stats.state,
        **low_watermarks_json(stats.low_watermarks, asked=low_watermarks),
        "ongoingTxnSize": stats.ongoing,
        "recoverStartTime": stats.began_ms,
        "recoverEndTime": stats.began_ms,
    }


@_read(f"transactionInPendingAckStats{SUBSCRIPTION}/{{mostSigBits}}/{{leastSigBits}}")
def get_transaction_in_pending_ack_stats(call: Call) -> HttpReply:
    """Return the cumulative acknowledgement of one transaction."""
    signature = "getTransactionInPendingAckStats(org.apache.pulsar.client.api.transaction.TxnID)"
    return json_reply(in_pending_ack_stats(_pending(call, NULL.format(signature, OF_MAP)), txn_of(call)))


def in_pending_ack_stats(pending: PendingAcks, txn: TxnId) -> Json:
    """Return TransactionInPendingAckStats of Pulsar's admin client, which has no individual acknowledgements."""
    acked = pending.cumulative_of(txn)
    if acked is None:
        return {}
    batch = f":{acked.first_left - 1}" if acked.remaining else ""
    return {"cumulativeAckPosition": f"{acked.position}{batch}"}


@_read(f"pendingAckInternalStats{SUBSCRIPTION}")
def get_pending_ack_internal_stats(call: Call) -> HttpReply:
    """Return the ledgers of the log. They are empty, because the topic's own metadata has that state."""
    topic, name = existing_topic(call), call.encoded_parameter("subscription")
    subscription = topic.subscriptions.get(name)
    if subscription is None:
        raise AdminError(404, f"{topic.name} not found subscription : {name}")
    if not _of(subscription).record.began_ms:
        raise AdminError(503, "Pending ack have not init success!")
    log = quote_plus(f"{topic.name.local_name}-{name}{PENDING_ACKS}")
    stored = {
        "entriesAddedCounter": _of(subscription).record.written,
        **NOTHING_STORED,
        "state": "LedgerOpened",
        "ledgers": [],
        "cursors": {},
        "properties": {},
    }
    stats = {
        "managedLedgerName": f"{call.namespace}/persistent/{log}",
        "managedLedgerInternalStats": stored,
    }
    return json_reply({"pendingAckLogStats": stats})


@_read(f"positionStatsInPendingAck{SUBSCRIPTION}/{{ledgerId}}/{{entryId}}")
def get_position_stats_in_pending_ack(call: Call) -> HttpReply:
    """Return whether an entry, or the message ?batchIndex= of its batch, waits for the end of a transaction."""
    position = Position(number_of(call, "ledgerId", bits=64), number_of(call, "entryId", bits=64))
    asked = call.query.get("batchIndex")
    index = None if asked is None else number_in(asked, bits=32)
    signature = "checkPositionInPendingAckState(org.apache.bookkeeper.mledger.Position, java.lang.Integer)"
    return json_reply({"state": _state(_subscription(call, NULL.format(signature, OF_TOPIC)), position, index)})


def _state(subscription: PersistentSubscription, position: Position, index: int | None) -> str:
    pending = _of(subscription)
    if not pending.record.began_ms:
        return "PendingAckNotReady"
    if position <= subscription.cursor.mark_delete:
        return "MarkDelete"
    held = [acked for _, acked in pending.holders_of(position)]
    if held and index is not None:
        if not 0 <= index < max(each.size for each in held):
            return "InvalidPosition"
        held = [each for each in held if not (each.remaining or 0) >> index & 1]
    return "PendingAck" if held else "NotInPendingAck"


def _pending(call: Call, fault: str) -> PendingAcks:
    return _of(_subscription(call, fault))


def _of(subscription: PersistentSubscription) -> PendingAcks:
    assert subscription.pending_acks is not None  # check_enabled
    return subscription.pending_acks


def _subscription(call: Call, fault: str) -> PersistentSubscription:
    """Return the subscription of the path. Raise Pulsar's `fault` when it does not exist."""
    topic, name = existing_topic(call), call.encoded_parameter("subscription")
    if name not in topic.subscriptions:
        raise unexpected_body(fault, no_subscription(name, topic.name))
    return topic.subscriptions[name]


async def metadata_of(topics: Topics, number: int, transaction: Transaction, slice_: Slice) -> Json:
    """Return a transaction with its state on each topic and subscription. Deleted ones are empty."""
    txn = TxnId(number, transaction.least)
    owner = {} if transaction.owner is None else {"owner": transaction.owner}
    produced: dict[str, Json] = {}
    acked: dict[str, Json] = {}
    for _, parts in transaction.in_order():
        for name, subscription in parts:
            if subscription is None:
                produced[name] = _produced(topics, name, txn)
            else:
                acked.setdefault(name, {})[subscription] = _acked(topics, name, subscription, txn)
            await slice_.pause()
    return {
        "txnId": str(txn),
        "status": transaction.status.value,
        "openTimestamp": transaction.opened_ms,
        "timeoutAt": transaction.timeout_ms,
        **owner,
        "producedPartitions": produced,
        "ackedPartitions": acked,
    }


def _produced(topics: Topics, name: str, txn: TxnId) -> Json:
    topic = topics.persistent(name)
    return (
        {"aborted": False} if topic is None or topic.transactions is None else in_buffer_stats(topic.transactions, txn)
    )


def _acked(topics: Topics, name: str, subscription: str, txn: TxnId) -> Json:
    topic = topics.persistent(name)
    found = None if topic is None else topic.subscriptions.get(subscription)
    return {} if found is None or found.pending_acks is None else in_pending_ack_stats(found.pending_acks, txn)
