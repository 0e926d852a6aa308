"""/admin/v2/persistent and non-persistent: move mark-delete positions, expire and delete messages, measure backlogs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import trio

from pulsarium.broker.auth.needs import TENANT_ADMIN, topic_operation
from pulsarium.broker.model.compaction.compactor import READ_BATCH
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.subscription.skip import skip, skip_all
from pulsarium.broker.model.topic.backlog import expire_older_than, expire_through, size_after
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.web.admin.topic.positions import read_message_id, read_place
from pulsarium.broker.web.admin.topic.reading import loaded
from pulsarium.broker.web.admin.topic.topics import each, find, no_subscription
from pulsarium.broker.web.http.call import Call, number_of
from pulsarium.broker.web.http.errors import AdminError, unexpected_body
from pulsarium.broker.web.http.registry import SUBSCRIPTION, of_topic, route
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply, nothing
from pulsarium.proto.entry import parse_metadata
from pulsarium.proto.errors import EntryError
from pulsarium.proto.special_names import REPLICATORS

ONLY_PERSISTENT_IS_TRIMMED = "Trim on a non-persistent topic is not allowed"
NOT_TRUNCATED = "unsupport truncate"
JAVA_CLASS = "org.apache.pulsar.broker.service.{0}.{1}"


@route("POST", *of_topic(SUBSCRIPTION + "/skip/{count}"), needs=topic_operation("SKIP"))
def skip_messages(call: Call) -> HttpReply:
    """Acknowledge the next `count` entries of a subscription."""
    count = number_of(call, "count", bits=32)
    refuse_parent(call, "Skip messages on a partitioned topic is not allowed")
    topic = find(call)
    refuse_replicator(call.encoded_parameter("subscription"))
    skip(subscription_of(call, topic), count)
    return done()


@route("POST", *of_topic(SUBSCRIPTION + "/skip_all"), needs=topic_operation("SKIP"))
def skip_all_messages(call: Call) -> HttpReply:
    """Acknowledge the whole backlog of a subscription, on each partition."""
    subscriptions = [subscription_of(call, topic, named=str(call.topic)) for topic in each(call)]
    if (name := call.encoded_parameter("subscription")).startswith(REPLICATORS):
        raise no_subscription(name, str(call.topic))
    for subscription in subscriptions:
        skip_all(subscription)
    return done()


@route("POST", *of_topic(SUBSCRIPTION + "/resetcursor/{timestamp}"), needs=topic_operation("RESET_CURSOR"))
def reset_cursor(call: Call) -> HttpReply:
    """Reset to the first message published at or after a time, in milliseconds since the epoch, on each partition."""
    timestamp = number_of(call, "timestamp", bits=64)
    name = call.encoded_parameter("subscription")
    for topic in each(call):
        found = topic.subscriptions.get(name)
        if found is None:
            raise no_subscription(name, topic.name)
        if isinstance(found, PersistentSubscription):
            _reset(found, found.topic.position_at(timestamp), [])
    return done()


@route("POST", *of_topic(SUBSCRIPTION + "/resetcursor"), needs=topic_operation("RESET_CURSOR"))
def reset_cursor_to_position(call: Call) -> HttpReply:
    """Reset the cursor to a message, or behind an excluded message."""
    place = read_place(call)
    refuse_parent(call, "Reset-cursor at position is not allowed for partitioned-topic")
    subscription = subscription_of(call, find(call))
    _reset(subscription, *place.in_ledger(subscription.topic.ledger))
    return done()


def _reset(subscription: PersistentSubscription, target: Position, ack_set: list[int]) -> None:
    if subscription.resetting:
        raise AdminError(412, "Failed for Subscription Busy: Failed to fence subscription")
    in_batches = subscription.topic.stores.config.acknowledgmentAtBatchIndexLevelEnabled
    subscription.reset_now(lambda: subscription.cursor.reset(target, ack_set if in_batches else []))


@route("POST", *of_topic(SUBSCRIPTION + "/expireMessages/{seconds}"), needs=topic_operation("EXPIRE_MESSAGES"))
def expire_messages(call: Call) -> HttpReply:
    """Acknowledge messages older than some seconds, on each partition. Answer 409 if a partition did not try."""
    seconds = number_of(call, "seconds", bits=32)
    topics = _persistent_of(call, "Expire messages on a non-persistent topic is not allowed")
    name = call.encoded_parameter("subscription")
    refuse_replicator(name)
    for topic in topics:
        if name not in topic.subscriptions:
            raise no_subscription(name, call.topic)
    _expire([topic.subscriptions[name] for topic in topics], seconds)
    return done()


@route("POST", *of_topic("/all_subscription/expireMessages/{seconds}"), needs=topic_operation("EXPIRE_MESSAGES"))
def expire_messages_of_all(call: Call) -> HttpReply:
    """Acknowledge older messages for every subscription."""
    seconds = number_of(call, "seconds", bits=32)
    topics = _persistent_of(call, "Expire messages for all subscriptions on a non-persistent topic is not allowed")
    _expire([topic.subscriptions[name] for topic in topics for name in sorted(topic.subscriptions)], seconds)
    return done()


def _expire(subscriptions: list[PersistentSubscription], seconds: int) -> None:
    """Expire messages of all subscriptions. Raise `AdminError` 409 for the first subscription that cannot start."""
    left = [subscription for subscription in subscriptions if not expire_older_than(subscription, seconds)]
    if left:
        raise AdminError(
            409,
            f"Expire message by timestamp not issued on topic {left[0].topic.name} for subscription {left[0].name} due "
            "to ongoing message expiration not finished or subscription almost catch  up. If it's performed on a "
            "partitioned topic operation might succeeded on other partitions, please check stats of individual "
            "partition.",
        )


@route("POST", *of_topic(SUBSCRIPTION + "/expireMessages"), needs=topic_operation("EXPIRE_MESSAGES"))
def expire_messages_to_position(call: Call) -> HttpReply:
    """Acknowledge all messages up to a message."""
    place = read_place(call)
    if place.partition != call.topic.partition_index:
        text = "Invalid parameter for expire message by position, partition index of passed in message position "
        raise AdminError(412, text + "doesn't match partition index for the topic")
    refuse_parent(call, "Expire message at position is not supported for partitioned-topic")
    topic = find(call)
    refuse_replicator(call.encoded_parameter("subscription"))
    subscription = subscription_of(call, topic)
    if not expire_through(subscription, *place.in_ledger(subscription.topic.ledger)):
        raise AdminError(
            409,
            f"Expire message by position not issued on topic {call.topic} for subscription {subscription.name} due to "
            "ongoing message expiration not finished or invalid message position provided.",
        )
    return done()


@route("POST", *of_topic("/trim"), needs=topic_operation("TRIM_TOPIC"))
def trim_topic(call: Call) -> HttpReply:
    """Delete the ledgers that are consumed and not retained."""
    if call.domain != "persistent":
        raise AdminError(405, ONLY_PERSISTENT_IS_TRIMMED)
    for topic in _persistent(each(call), ONLY_PERSISTENT_IS_TRIMMED):
        topic.trimmer.trim()
    return nothing()


@route("DELETE", *of_topic("/truncate"), needs=TENANT_ADMIN)
def truncate_topic(call: Call) -> HttpReply:
    """Skip the backlog of every subscription, and delete all earlier messages."""
    if call.domain != "persistent":
        raise AdminError(412, NOT_TRUNCATED)
    for topic in _persistent(each(call), NOT_TRUNCATED):
        topic.trimmer.truncate()
    return done()


# parts of a call


def refuse_parent(call: Call, text: str) -> None:
    """Raise `AdminError` 405 for a partitioned topic as a whole."""
    if call.broker.metadata.partitions_of(call.topic):
        raise AdminError(405, text)


def _persistent_of(call: Call, text: str) -> list[PersistentTopic]:
    if call.domain != "persistent" and call.broker.metadata.partitions_of(call.topic):
        raise AdminError(405, text)
    return list(_persistent(each(call), text))


def _persistent(topics: Iterator[Topic], text: str) -> Iterator[PersistentTopic]:
    for topic in topics:
        if not isinstance(topic, PersistentTopic):
            raise AdminError(405, text)
        yield topic


def persistent_only(topic: Topic) -> PersistentTopic:
    """Return a persistent topic. For another topic, raise the error of the cast that fails in Pulsar."""
    if not isinstance(topic, PersistentTopic):
        found = JAVA_CLASS.format("nonpersistent", "NonPersistentTopic")
        wanted = JAVA_CLASS.format("persistent", "PersistentTopic")
        otherwise = AdminError(405, "Not allowed on a non-persistent topic")
        raise unexpected_body(f"class {found} cannot be cast to class {wanted}", otherwise)
    return topic


def subscription_of(call: Call, topic: Topic, named: str = "") -> PersistentSubscription:
    """Return the subscription of the path on one topic. Errors name the topic as `named`."""
    topic = persistent_only(topic)
    name = call.encoded_parameter("subscription")
    if name not in topic.subscriptions:
        raise no_subscription(name, named or str(topic.name))
    return topic.subscriptions[name]


def refuse_replicator(subscription: str) -> None:
    """Raise `AdminError` 404 for the cursor of a replicator. Such a name is never that of a subscription here."""
    if subscription.startswith(REPLICATORS):
        raise AdminError(404, "Replicator not found")


GET_BACKLOG_SIZE = topic_operation("GET_BACKLOG_SIZE")
ON_PARTITION = "is not allowed, please try do it on specific topic partition"
NO_ID = 'Cannot invoke "org.apache.pulsar.client.impl.MessageIdImpl.getLedgerId()" because "messageId" is null'


@route("PUT", *of_topic("/backlogSize"), needs=GET_BACKLOG_SIZE)
def get_backlog_size(call: Call) -> HttpReply:
    """Return the approximate bytes behind a message, or the whole size behind the earliest one."""
    position = read_message_id(call)
    refuse_parent(call, "calculate backlog size is not allowed for partitioned-topic")
    topic = persistent_only(find(call))
    if position is None:
        raise unexpected_body(NO_ID, AdminError(400, "A message id is needed"))
    if position.ledger_id == -1:
        return json_reply(topic.ledger.size)
    return json_reply(size_after(topic.ledger, Position(position.ledger_id, max(position.entry_id, -1))))


@route("GET", *of_topic("/backlog"), needs=GET_BACKLOG_SIZE, anywhere=True)
def get_backlog(call: Call) -> HttpReply:
    """Return an estimate of the backlog, which Pulsar makes without loading the topic.

    The estimate is 0 for a missing or partitioned topic.
    """
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
            "statGeneratedAt": broker.clock_of(name).now_ms(),
        }
    )


@route("POST", *of_topic(SUBSCRIPTION + "/analyzeBacklog"), needs=topic_operation("CONSUME"))
async def analyze_backlog(call: Call) -> HttpReply:
    """Count the entries of a subscription's backlog, from its start or from a position."""
    start = read_place(call).position if call.json() is not None else None
    refuse_parent(call, f"Analyze backlog on a partitioned topic {ON_PARTITION}")
    topic, name = find(call), call.encoded_parameter("subscription")
    subscription = topic.subscriptions.get(name)
    if subscription is None:
        raise no_subscription(name, topic.name)
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
    """Counts of a backlog. Markers are counted apart. Without entry filters, no entry is rejected."""

    entries: int = 0
    messages: int = 0
    markers: int = 0
    aborted: bool = False
    first: Position | None = None
    last: Position | None = None

    def add(self, position: Position, entry: bytes) -> None:
        """Count the messages of an entry, or the entry as a marker."""
        self.first, self.last = self.first or position, position
        try:
            metadata = parse_metadata(entry)
        except EntryError:  # consumers do not get such an entry either
            return
        if metadata.HasField("marker_type"):
            self.markers += 1
        else:
            self.entries += 1
            self.messages += metadata.num_messages_in_batch

    def json(self) -> dict[str, Any]:
        """Return Pulsar's AnalyzeSubscriptionBacklogResult."""
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
    """Add up to `limit` entries to `found` (subscriptionBacklogScanMaxEntries)."""
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
