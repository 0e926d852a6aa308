"""/admin/v2/persistent and non-persistent: ledgers and cursors of topics, in memory and in the metadata store."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.model.compaction.compacted import CompactedLedger
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.cursor.records import read_cursor_info
from pulsarium.broker.model.ledger.ledger import Ledger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.position_set import PositionSet
from pulsarium.broker.model.ledger.stores import Stat
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.net.slices import Slice
from pulsarium.broker.web.admin.topic.partitions import shown
from pulsarium.broker.web.admin.topic.properties import ledger_properties
from pulsarium.broker.web.admin.topic.stats_json import time_text
from pulsarium.broker.web.admin.topic.topics import find, parts
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError, ContainerError, unexpected_body
from pulsarium.broker.web.http.registry import of_topic, route
from pulsarium.broker.web.http.reply import NAMES, HttpReply, WrittenJson, json_reply
from pulsarium.proto.special_names import COMPACTION_CURSOR
from pulsarium.proto.topic_name import TopicName, url_encoded

Json = dict[str, Any]

BOOKIE = "localhost:3181"  # the one bookie of a standalone

NOTHING_STORED = {
    "numberOfEntries": 0,
    "totalSize": 0,
    "currentLedgerEntries": 0,
    "currentLedgerSize": 0,
    "waitingCursorsCount": 0,
    "pendingAddEntriesCount": 0,
}
NO_CURSOR = {
    "waitingReadOp": False,
    "pendingReadOps": 0,
    "messagesConsumedCounter": 0,
    "cursorLedger": 0,
    "cursorLedgerLastEntry": 0,
    "active": False,
    "numberOfEntriesSinceFirstNotAckedMessage": 0,
    "totalNonContiguousDeletedMessagesRange": 0,
    "subscriptionHavePendingRead": False,
    "subscriptionHavePendingReplayRead": False,
}


@route("GET", *of_topic("/internalStats"), needs=topic_operation("GET_STATS"))
async def get_internal_stats(call: Call) -> HttpReply:
    """Return the ledgers of a topic, and the positions of its cursors."""
    if call.domain != "persistent" and not call.broker.topics.exists(call.topic):
        raise AdminError(404, "Topic not found")
    return json_reply(await internal_stats(find(call), metadata=call.flag("metadata")))


@route("GET", *of_topic("/partitioned-internalStats"), needs=topic_operation("GET_STATS"), anywhere=True)
async def get_partitioned_internal_stats(call: Call) -> HttpReply:
    """Return ledgers and cursors of each partition."""
    name, broker = call.topic, call.broker
    info = broker.metadata.partitioned.get(str(name))
    if info is None:
        raise AdminError(404, f"Partitioned Topic {name} not found")
    each = {
        str(part): await internal_stats(broker.topics.find(part))
        for part in parts(broker, name)
        if broker.topics.exists(part)  # a partition may be deleted before its turn
    }
    return json_reply({"metadata": shown(info), "partitions": each})


async def internal_stats(topic: Topic, *, metadata: bool = False) -> Json:
    """Return a topic's internalStats. With `metadata`, include BookKeeper's metadata of the ledgers.

    Other tasks run between two cursors. Cursors deleted meanwhile are left out.
    """
    if not isinstance(topic, PersistentTopic):
        return {
            "entriesAddedCounter": topic.messages_in,
            **NOTHING_STORED,
            "cursors": {name: dict(NO_CURSOR) for name in topic.subscriptions},
        }
    cursors, waiting, slice_ = WrittenJson(), 0, Slice()
    for name, each in list(topic.subscriptions.items()):
        if topic.subscriptions.get(name) is each:
            cursors[url_encoded(name)] = stats = subscription_stats(each)
            waiting += stats["waitingReadOp"]
        await slice_.pause()
    if topic.deduplication is not None:
        cursors[topic.deduplication.cursor.name] = cursor_stats(topic.deduplication.cursor)
    if topic.log.compaction.cursor is not None:
        cursors[COMPACTION_CURSOR] = cursor_stats(topic.log.compaction.cursor)
    ledger = topic.ledger
    current = list(ledger.ledgers.values())[-1]
    return {
        "entriesAddedCounter": ledger.entries_added,
        "numberOfEntries": ledger.count,
        "totalSize": ledger.size,
        "currentLedgerEntries": current.confirmed,
        "currentLedgerSize": current.size,
        "lastLedgerCreatedTimestamp": time_text(current.created_ms),
        "waitingCursorsCount": waiting,
        "pendingAddEntriesCount": current.count - current.confirmed,
        "lastConfirmedEntry": str(ledger.last_confirmed),
        "state": "Fenced" if ledger.fenced else "LedgerOpened" if ledger.terminated is None else "Terminated",
        "ledgers": [
            {
                "ledgerId": each.id,
                "entries": each.confirmed if each.closed else 0,
                "size": each.size if each.closed else 0,
                "offloaded": False,
                **({"metadata": ledger_metadata(topic, each)} if metadata else {}),
                "underReplicated": False,
            }
            for each in ledger.ledgers.values()
        ],
        "cursors": cursors,
        "properties": ledger_properties(topic),
        "schemaLedgers": [],
        "compactedLedger": compacted_ledger(topic),
    }


def ledger_metadata(topic: PersistentTopic, ledger: Ledger) -> str:
    """Return a ledger's metadata in BookKeeper's textual form."""
    closed = f"state=CLOSED, length={ledger.size}, lastEntryId={ledger.confirmed - 1}"
    made_for = {
        "component": "managed-ledger",
        "pulsar/managed-ledger": topic.name.managed_ledger_path,
        "application": "pulsar",
    }
    custom = ", ".join(f"{key}=base64:{b64encode(text.encode()).decode()}" for key, text in made_for.items())
    return (
        "LedgerMetadata{formatVersion=3, ensembleSize=1, writeQuorumSize=1, ackQuorumSize=1, "
        f"{closed if ledger.closed else 'state=OPEN'}, digestType=CRC32C, password=OMITTED, "
        f"ensembles={{0=[{BOOKIE}]}}, customMetadata={{{custom}}}}}"
    )


def compacted_ledger(topic: PersistentTopic) -> Json:
    """Return the ledger of the last compaction; -1 without one."""
    compacted = topic.log.compaction.compacted
    numbers = dict.fromkeys(("ledgerId", "entries", "size"), -1)
    if isinstance(compacted, CompactedLedger):
        ledger = compacted.ledger
        numbers = {"ledgerId": ledger.id, "entries": ledger.confirmed, "size": ledger.size}
    return {**numbers, "offloaded": False, "underReplicated": False}


def subscription_stats(subscription: PersistentSubscription) -> Json:
    """Return the stats of a subscription's cursor."""
    active = bool(subscription.consumers)
    waiting = active and subscription.reason in (Reason.CAUGHT_UP, Reason.OPEN_TRANSACTION)
    return cursor_stats(subscription.cursor, active=active, waiting=waiting)


def cursor_stats(cursor: ManagedCursor, *, active: bool = False, waiting: bool = False) -> Json:
    """Return the stats of a cursor."""
    return {
        "markDeletePosition": str(cursor.mark_delete),
        "readPosition": str(cursor.read_position),
        "waitingReadOp": waiting,
        "pendingReadOps": 0,
        "messagesConsumedCounter": cursor.consumed,
        "cursorLedger": cursor.ledger_id,
        "cursorLedgerLastEntry": cursor.ledger_last_entry,
        "individuallyDeletedMessages": ranges_text(cursor.individual_acks),
        "lastLedgerSwitchTimestamp": time_text(cursor.last_switch_ms),
        "state": "Open" if cursor.ledger_open else "NoLedger",
        "active": active,
        "numberOfEntriesSinceFirstNotAckedMessage": entries_to_read_position(cursor),
        "totalNonContiguousDeletedMessagesRange": cursor.individual_acks.count_ranges(),
        "subscriptionHavePendingRead": waiting,
        "subscriptionHavePendingReplayRead": False,
        "properties": cursor.properties,
    }


def ranges_text(positions: PositionSet) -> str:
    """Return all runs of positions, each open below and closed above."""
    texts: list[str] = []
    for ledger_id, firsts, lasts in positions.runs():
        lower, upper = f"({ledger_id}:", f"..{ledger_id}:"
        texts += [f"{lower}{first - 1}{upper}{last}]" for first, last in zip(firsts, lasts, strict=True)]
    return f"[{','.join(texts)}]"


def entries_to_read_position(cursor: ManagedCursor) -> int:
    """Return the number of entries from the mark-delete position through the read position."""
    before = Position(cursor.read_position.ledger_id, cursor.read_position.entry_id - 1)
    return cursor.ledger.count_after(cursor.mark_delete, before) + 1


@route("GET", *of_topic("/internal-info"), needs=topic_operation("GET_STATS"), anywhere=True)
def get_internal_info(call: Call) -> HttpReply:
    """Return the stored ledgers and cursors of a topic, or of each partition."""
    name, partitioned = call.topic, bool(call.broker.metadata.partitions_of(call.topic))
    if not name.is_persistent:
        raise _refusal(call, name, partitioned)
    if not partitioned:
        return json_reply(_info(call, name))
    partitions = {str(part): _info(call, part) for part in parts(call.broker, name)}
    return json_reply({"version": 0, "partitions": partitions})


def _info(call: Call, name: TopicName) -> Json:
    topics = call.broker.topics
    if not topics.exists(name):
        raise _refusal(call, name, partitioned=False)
    return ledger_info(topics.find_persistent(name))


def _refusal(call: Call, name: TopicName, partitioned: bool) -> AdminError | ContainerError:
    """Return the error for a topic without a managed ledger."""
    if call.broker.profile.own_faults_are_shown:
        return unexpected_body(f"HTTP 500 {NAMES[500]}") if partitioned else ContainerError(500, NAMES[500])
    if name.is_persistent or not (partitioned or call.broker.topics.exists(name)):
        return AdminError(404, f"Topic {name} not found")
    return AdminError(405, "Internal info of a non-persistent topic is not allowed")


def ledger_info(topic: PersistentTopic) -> Json:
    """Return Pulsar's ManagedLedgerInfo, which has no counts for the current ledger."""
    ledger, now_ms = topic.ledger, topic.now_ms()
    info = _stat(ledger.stat)
    info["ledgers"] = [
        {
            "ledgerId": each.id,
            **({"entries": each.confirmed, "size": each.size} if each.closed else {}),
            "timestamp": each.rolled_ms if each.closed else now_ms,
            "isOffloaded": False,
        }
        for each in ledger.ledgers.values()
    ]
    if ledger.terminated is not None:
        info["terminatedPosition"] = _position(*ledger.terminated)
    info["cursors"] = {url_encoded(name): _cursor(cursor) for name, cursor in sorted(topic.log.cursors.items())}
    properties = ledger_properties(topic)
    if properties:
        info["properties"] = dict(sorted(properties.items()))
    return info


def _cursor(cursor: ManagedCursor) -> Json:
    """Return Pulsar's CursorInfo. Once the cursor has its own ledger, this is the state at that ledger's creation."""
    kept = read_cursor_info(cursor.info)
    info = _stat(cursor.stat)
    info["cursorsLedgerId"] = kept.cursorsLedgerId
    if kept.HasField("markDeleteLedgerId"):
        info["markDelete"] = _position(kept.markDeleteLedgerId, kept.markDeleteEntryId)
    if kept.individualDeletedMessages:
        info["individualDeletedMessages"] = [
            {
                "from": _position(each.lowerEndpoint.ledgerId, each.lowerEndpoint.entryId),
                "to": _position(each.upperEndpoint.ledgerId, each.upperEndpoint.entryId),
            }
            for each in kept.individualDeletedMessages
        ]
    if kept.properties:
        info["properties"] = {each.name: each.value for each in sorted(kept.properties, key=lambda each: each.name)}
    return info


def _stat(stat: Stat) -> Json:
    return {
        "version": stat.version,
        "creationDate": time_text(stat.created_ms),
        "modificationDate": time_text(stat.modified_ms),
    }


def _position(ledger_id: int, entry_id: int) -> Json:
    return {"ledgerId": ledger_id, "entryId": entry_id}
