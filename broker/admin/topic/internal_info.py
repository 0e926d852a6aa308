"""/admin/v2/persistent and non-persistent: what the metadata store holds of topics."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.admin.topic.properties import ledger_properties
from pulsarium.broker.admin.topic.stats_json import time_text
from pulsarium.broker.admin.topic.topics import parts
from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError, ContainerError, unexpected_body
from pulsarium.broker.http.registry import of_topic, route
from pulsarium.broker.http.reply import NAMES, Reply, json_reply
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.cursor.records import read_cursor_info
from pulsarium.broker.model.ledger.stores import Stat
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.proto.topic_name import TopicName

Json = dict[str, Any]


@route("GET", *of_topic("/internal-info"), needs=topic_operation("GET_STATS"), anywhere=True)
def get_internal_info(call: Call) -> Reply:
    """The stored ledgers and cursors of a topic, or of each partition."""
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
    topic = topics.find(name)
    assert isinstance(topic, PersistentTopic)
    return ledger_info(topic)


def _refusal(call: Call, name: TopicName, partitioned: bool) -> AdminError | ContainerError:
    """What is told of something that has no managed ledger."""
    if call.broker.profile.own_faults_are_shown:
        return unexpected_body(f"HTTP 500 {NAMES[500]}") if partitioned else ContainerError(500, NAMES[500])
    if name.is_persistent or not (partitioned or call.broker.topics.exists(name)):
        return AdminError(404, f"Topic {name} not found")
    return AdminError(405, "Internal info of a non-persistent topic is not allowed")


def ledger_info(topic: PersistentTopic) -> Json:
    """A ManagedLedgerInfo. The ledger that is written to has no counts there."""
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
    info["cursors"] = {name: _cursor(cursor) for name, cursor in sorted(topic.log.cursors.items())}
    properties = ledger_properties(topic)
    if properties:
        info["properties"] = dict(sorted(properties.items()))
    return info


def _cursor(cursor: ManagedCursor) -> Json:
    """A CursorInfo: once the cursor has a ledger of its own, what is here is of when that was begun."""
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
