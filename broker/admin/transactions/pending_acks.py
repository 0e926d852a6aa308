"""/admin/v3/transactions: what open transactions acknowledged."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote_plus

from pulsarium.broker.admin.topic.backlog import no_subscription, number_in, number_of
from pulsarium.broker.admin.topic.internal_stats import NOTHING_STORED
from pulsarium.broker.admin.transactions.enabled import (
    READING,
    check_enabled,
    existing_topic,
    low_watermarks_json,
    txn_of,
)
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError, unexpected_body
from pulsarium.broker.http.registry import route
from pulsarium.broker.http.reply import Reply, json_reply
from pulsarium.broker.model.cursor.pending_acks import PendingAcks
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.proto.message_id import TxnId

Json = dict[str, Any]

PREFIX = "/admin/v3/transactions"
SUBSCRIPTION = "/{tenant}/{namespace}/{topic}/{subscription}"
JAVA = "org.apache.pulsar.broker.service.persistent"
NULL = f'Cannot invoke "{JAVA}.PersistentSubscription.{{0}}" because the return value of "{{1}}" is null'
OF_MAP = "java.util.Map.get(Object)"
OF_TOPIC = f"{JAVA}.PersistentTopic.getSubscription(String)"


@route("GET", f"{PREFIX}/pendingAckStats{SUBSCRIPTION}", needs=READING, first=check_enabled)
def get_pending_ack_stats(call: Call) -> Reply:
    """How many transactions acknowledged entries one by one and are open."""
    pending = _pending(call, NULL.format("getTransactionPendingAckStats(boolean)", OF_MAP))
    return json_reply(pending_ack_stats(pending, low_watermarks=call.flag("lowWaterMarks")))


def pending_ack_stats(pending: PendingAcks, *, low_watermarks: bool) -> Json:
    """As TransactionPendingAckStats of Pulsar's admin client."""
    stats = pending.stats()
    return {
        "state": stats.state,
        **low_watermarks_json(stats.low_watermarks, asked=low_watermarks),
        "ongoingTxnSize": stats.ongoing,
        "recoverStartTime": stats.began_ms,
        "recoverEndTime": stats.began_ms,
    }


@route(
    "GET",
    f"{PREFIX}/transactionInPendingAckStats{SUBSCRIPTION}/{{mostSigBits}}/{{leastSigBits}}",
    needs=READING,
    first=check_enabled,
)
def get_transaction_in_pending_ack_stats(call: Call) -> Reply:
    """Up to where one transaction acknowledged everything."""
    signature = "getTransactionInPendingAckStats(org.apache.pulsar.client.api.transaction.TxnID)"
    return json_reply(in_pending_ack_stats(_pending(call, NULL.format(signature, OF_MAP)), txn_of(call)))


def in_pending_ack_stats(pending: PendingAcks, txn: TxnId) -> Json:
    """As TransactionInPendingAckStats of Pulsar's admin client: nothing of what was acknowledged one by one."""
    acked = pending.cumulative_of(txn)
    if acked is None:
        return {}
    batch = f":{acked.first_left - 1}" if acked.remaining else ""
    return {"cumulativeAckPosition": f"{acked.position}{batch}"}


@route("GET", f"{PREFIX}/pendingAckInternalStats{SUBSCRIPTION}", needs=READING, first=check_enabled)
def get_pending_ack_internal_stats(call: Call) -> Reply:
    """The ledgers of the log, of which there are none: the topic's own metadata has what they would tell."""
    topic, name = existing_topic(call), call.encoded_parameter("subscription")
    subscription = topic.subscriptions.get(name)
    if subscription is None:
        raise AdminError(404, f"{topic.name} not found subscription : {name}")
    if not _of(subscription).stats().began_ms:
        raise AdminError(503, "Pending ack have not init success!")
    log = quote_plus(f"{topic.name.local_name}-{name}__transaction_pending_ack")
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


@route(
    "GET",
    f"{PREFIX}/positionStatsInPendingAck{SUBSCRIPTION}/{{ledgerId}}/{{entryId}}",
    needs=READING,
    first=check_enabled,
)
def get_position_stats_in_pending_ack(call: Call) -> Reply:
    """Whether an entry, or with ?batchIndex= a message of it, waits for the end of a transaction."""
    position = Position(number_of(call, "ledgerId", bits=64), number_of(call, "entryId", bits=64))
    asked = call.query.get("batchIndex")
    index = None if asked is None else number_in(asked, bits=32)
    signature = "checkPositionInPendingAckState(org.apache.bookkeeper.mledger.Position, java.lang.Integer)"
    return json_reply({"state": _state(_subscription(call, NULL.format(signature, OF_TOPIC)), position, index)})


def _state(subscription: PersistentSubscription, position: Position, index: int | None) -> str:
    pending = _of(subscription)
    if not pending.stats().began_ms:
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
    """The subscription of the path; `fault` is what Pulsar says where there is none."""
    topic, name = existing_topic(call), call.encoded_parameter("subscription")
    if name not in topic.subscriptions:
        raise unexpected_body(fault, no_subscription(name, str(topic.name)))
    return topic.subscriptions[name]
