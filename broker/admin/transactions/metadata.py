"""One transaction as TransactionMetadata of Pulsar's admin client."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.admin.transactions.buffer import in_buffer_stats
from pulsarium.broker.admin.transactions.pending_acks import in_pending_ack_stats
from pulsarium.broker.model.topic.topics import Topics
from pulsarium.broker.model.transaction.transaction import Transaction
from pulsarium.proto.message_id import TxnId

Json = dict[str, Any]


def metadata_of(topics: Topics, number: int, transaction: Transaction) -> Json:
    """With what became of it on each topic and subscription; nothing is said of those that are gone."""
    txn = TxnId(number, transaction.least)
    owner = {} if transaction.owner is None else {"owner": transaction.owner}
    produced = {name: _produced(topics, name, txn) for name in transaction.topics}
    acked: dict[str, Json] = {}
    for name, subscription in transaction.subscriptions:
        acked.setdefault(name, {})[subscription] = _acked(topics, name, subscription, txn)
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
