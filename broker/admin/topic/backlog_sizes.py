"""/admin/v2/persistent and non-persistent: how much subscriptions have before them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import trio

from pulsarium.broker.admin.topic.backlog import no_subscription, persistent_only, refuse_parent
from pulsarium.broker.admin.topic.message_ids import ON_PARTITION
from pulsarium.broker.admin.topic.positions import read_message_id, read_place
from pulsarium.broker.admin.topic.reading import loaded
from pulsarium.broker.admin.topic.topics import find
from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError, unexpected_body
from pulsarium.broker.http.registry import SUBSCRIPTION, of_topic, route
from pulsarium.broker.http.reply import Reply, json_reply
from pulsarium.broker.model.compaction.raw import READ_BATCH
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.model.topic.upkeep import size_after
from pulsarium.proto.entry import parse_metadata
from pulsarium.proto.errors import EntryError

GET_BACKLOG_SIZE = topic_operation("GET_BACKLOG_SIZE")
NO_ID = 'Cannot invoke "org.apache.pulsar.client.impl.MessageIdImpl.getLedgerId()" because "messageId" is null'


@route("PUT", *of_topic("/backlogSize"), needs=GET_BACKLOG_SIZE)
def get_backlog_size(call: Call) -> Reply:
    """The bytes behind a message, about; of the whole topic behind the earliest one."""
    position = read_message_id(call)
    refuse_parent(call, "calculate backlog size is not allowed for partitioned-topic")
    topic = persistent_only(find(call))
    if position is None:
        raise unexpected_body(NO_ID, AdminError(400, "A message id is needed"))
    if position.ledger_id == -1:
        return json_reply(topic.ledger.size)
    return json_reply(size_after(topic, Position(position.ledger_id, max(position.entry_id, -1))))


@route("GET", *of_topic("/backlog"), needs=GET_BACKLOG_SIZE, anywhere=True)
def get_backlog(call: Call) -> Reply:
    """An estimate that Pulsar makes without loading the topic: nothing for what is no topic, or a partitioned one."""
    name, broker = call.topic, call.broker
    topic = broker.topics.find(name) if broker.topics.exists(name) else None
    count = size = 0
    cursors: dict[str, dict[str, int]] = {}
    if isinstance(topic, PersistentTopic):
        count, size = topic.ledger.count, topic.ledger.size
        for cursor in topic.log.cursors.values():
            backlog = topic.ledger.count_after(cursor.mark_delete)
            cursors[cursor.name] = {"cursorBacklog": backlog, "cursorLedgerId": cursor.ledger_id}
    return json_reply(
        {
            "topicName": name.managed_ledger_path,
            "brokerName": broker.advertised_address,
            "storageSize": size,
            "totalMessages": count,
            "messageBacklog": sum(each["cursorBacklog"] for each in cursors.values()),
            "dataLedgerDetails": [],
            "cursorDetails": cursors,
            "statGeneratedAt": broker.clock.now_ms(),
        }
    )


@route("POST", *of_topic(SUBSCRIPTION + "/analyzeBacklog"), needs=topic_operation("CONSUME"))
async def analyze_backlog(call: Call) -> Reply:
    """Look at each entry that a subscription has before it, or from a position on."""
    start = read_place(call).position if call.json() is not None else None
    refuse_parent(call, f"Analyze backlog on a partitioned topic {ON_PARTITION}")
    topic, name = find(call), call.encoded_parameter("subscription")
    subscription = topic.subscriptions.get(name)
    if subscription is None:
        raise no_subscription(name, str(topic.name))
    if not isinstance(subscription, PersistentSubscription):
        shown = "Unsupported operation analyzeBacklog for NonPersistentSubscription"
        raise unexpected_body(shown, AdminError(405, "Analyze backlog on a non-persistent topic is not allowed"))
    config = call.broker.config
    found = Analysis()
    with trio.move_on_after(config.subscriptionBacklogScanMaxTimeMs / 1000) as time:
        await _scan(subscription.cursor, start, config.subscriptionBacklogScanMaxEntries, found)
    found.aborted |= time.cancelled_caught
    return json_reply(found.json())


@dataclass(slots=True)
class Analysis:
    """What was found; entries and messages without markers. There are no entry filters that could reject any."""

    entries: int = 0
    messages: int = 0
    markers: int = 0
    aborted: bool = False
    first: Position | None = None
    last: Position | None = None

    def add(self, position: Position, entry: bytes) -> None:
        self.first, self.last = self.first or position, position
        try:
            metadata = parse_metadata(entry)
        except EntryError:  # consumers are not given it either
            return
        if metadata.HasField("marker_type"):
            self.markers += 1
        else:
            self.entries += 1
            self.messages += metadata.num_messages_in_batch

    def json(self) -> dict[str, Any]:
        """AnalyzeSubscriptionBacklogResult."""
        found: dict[str, Any] = {
            "entries": self.entries,
            "messages": self.messages,
            "markerMessages": self.markers,
            "filterRejectedEntries": 0,
            "filterAcceptedEntries": self.entries,
            "filterRescheduledEntries": 0,
            "filterRejectedMessages": 0,
            "filterAcceptedMessages": self.messages,
            "filterRescheduledMessages": 0,
            "aborted": self.aborted,
        }
        if self.first is not None:
            found |= {"firstMessageId": str(self.first), "lastMessageId": str(self.last)}
        return found


async def _scan(cursor: ManagedCursor, start: Position | None, limit: int, found: Analysis) -> None:
    """Look at no more than `limit` entries (subscriptionBacklogScanMaxEntries)."""
    ledger = cursor.ledger
    position = ledger.next(cursor.mark_delete) if start is None else ledger.clamp(start)
    scanned = 0
    while position <= ledger.last_confirmed:
        here = position
        entries = await loaded(lambda ready: ledger.read(here, READ_BATCH, ready))  # noqa: B023
        for entry_id, entry in enumerate(entries, position.entry_id):
            entry_position = Position(position.ledger_id, entry_id)
            if entry_position in cursor.individual_acks:
                continue
            if scanned >= limit:
                found.aborted = True
                return
            scanned += 1
            found.add(entry_position, entry)
        position = ledger.next(Position(position.ledger_id, position.entry_id + len(entries) - 1))
        if position <= here and not entries:  # the topic was deleted
            return
        await trio.lowlevel.checkpoint()
