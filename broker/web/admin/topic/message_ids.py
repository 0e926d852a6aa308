"""/admin/v2/persistent and non-persistent: find message ids by index or time, and the last one."""

from __future__ import annotations

from contextlib import suppress

from trio.lowlevel import checkpoint

from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.model.compaction.compactor import READ_BATCH
from pulsarium.broker.model.ledger.interceptors import NoIndexError, find_index, kept_index
from pulsarium.broker.model.ledger.position import EARLIEST, Position
from pulsarium.broker.model.ledger.sequence import newest_position
from pulsarium.broker.model.topic.backlog import published_before
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.web.admin.topic.backlog import ON_PARTITION, refuse_parent
from pulsarium.broker.web.admin.topic.positions import message_id_json
from pulsarium.broker.web.admin.topic.reading import entry_at, follow, loaded
from pulsarium.broker.web.admin.topic.topics import find
from pulsarium.broker.web.http.call import Call, number_in, number_of
from pulsarium.broker.web.http.errors import AdminError, unexpected_body
from pulsarium.broker.web.http.registry import of_topic, route
from pulsarium.broker.web.http.reply import HttpReply, json_reply
from pulsarium.proto.entry import parse_metadata
from pulsarium.proto.errors import EntryError
from pulsarium.proto.numbers import signed

PEEK = topic_operation("PEEK_MESSAGES")


def check_index(call: Call) -> int:
    """Return the index in the query. Pulsar checks it before the role and the owner."""
    broker, text = call.broker, call.query.get("index", "")
    _ = call.topic_anywhere  # raises for an invalid name
    index = number_in(text, bits=64) if text.strip() else 0
    if not broker.config.brokerEntryMetadataInterceptors:
        raise AdminError(412, "GetMessageIDByIndex is not allowed when broker entry metadata is disabled")
    if not text.strip() and not broker.profile.missing_index_is_zero:
        raise AdminError(404, "Invalid message index: null")
    if index < 0:
        raise AdminError(404, f"Invalid message index: {index}")
    return index


@route(
    "GET",
    *of_topic("/getMessageIdByIndex"),
    needs=topic_operation("PEEK_MESSAGES", forbidden=True),
    first=check_index,
)
async def get_message_id_by_index(call: Call) -> HttpReply:
    """Return the entry that holds the message of an index (PIP-415); -1:-1 for a deleted one."""
    index, profile = check_index(call), call.broker.profile
    refuse_parent(call, "GetMessageIDByIndex is not allowed on partitioned-topic")
    refusal = AdminError(
        profile.index_on_non_persistent, "Get message id by index on a non-persistent topic is not allowed"
    )
    if not (profile.index_as_released or call.topic.is_persistent):
        raise refusal  # PIP-415 asks for the kind of the topic, and 4.2.4 for the topic first
    topic = persistent(call, refusal)
    absent = AdminError(404, f"Message not found for index {index}")
    try:
        found = await follow(topic, lambda: find_index(topic.ledger, index, as_released=profile.index_as_released))
    except NoIndexError:
        raise AdminError(412, "Broker entry metadata is not present in the message") from None
    if not topic.ledger.count:
        found = _without_entries(call, topic, index, absent)
    if found is None:
        raise absent
    return _id_by_index(call, found)


def _without_entries(call: Call, topic: PersistentTopic, index: int, absent: AdminError) -> Position:
    """Return the answer for an index of an empty topic: -1:-1 for a deleted message. Raise `AdminError` otherwise."""
    last = kept_index(topic.ledger.properties)
    if last < 0:
        raise AdminError(404, f"No messages found in topic {topic.name}")
    gone = "Message not found, the ledgerId does not belong to this topic or has been deleted"
    if index > last or call.broker.profile.own_faults_are_shown:
        raise unexpected_body(gone, absent)
    return EARLIEST


def _id_by_index(call: Call, position: Position) -> HttpReply:
    found = message_id_json(position, call.topic.partition_index)
    if not call.broker.profile.index_as_released:
        del found["batchSize"], found["batchIndex"]
    return json_reply(found)


@route("GET", *of_topic("/messageid/{timestamp}"), needs=PEEK)
async def get_message_id_by_timestamp(call: Call) -> HttpReply:
    """Return the first message at or after a time in milliseconds since the epoch.

    If no message is that late, return the position behind the last message.
    """
    timestamp = number_of(call, "timestamp", bits=64)
    refuse_parent(call, f"Get message ID by timestamp on a partitioned topic {ON_PARTITION}")
    topic = persistent(call, AdminError(405, "Get message ID by timestamp on a non-persistent topic is not allowed"))
    found = await _compacted_at(topic, timestamp)
    if found is None and timestamp <= 0:
        if timestamp < 0 and call.broker.profile.own_faults_are_shown:
            raise unexpected_body("CompactedTopicContext is not initialized")
        found = EARLIEST
    if found is None:
        ledger = topic.ledger
        older, skips = published_before(timestamp), call.broker.config.autoSkipNonRecoverableData
        last = await follow(topic, lambda: newest_position(ledger.ledgers.values(), older, skips_damaged=skips))
        found = ledger.next(last or ledger.first_position())
    return json_reply(message_id_json(found, topic.name.partition_index))


async def _compacted_at(topic: PersistentTopic, timestamp: int) -> Position | None:
    """Return the first compacted entry at or after that publish time, or None."""
    compacted, start = topic.compaction.compacted, EARLIEST
    while entries := await loaded(lambda ready: compacted.read(start, READ_BATCH, ready)):  # noqa: B023
        for position, entry in entries:
            start = Position(position.ledger_id, position.entry_id + 1)
            with suppress(EntryError):
                if signed(parse_metadata(entry).publish_time) >= timestamp:
                    return position
        await checkpoint()
    return None


@route("GET", *of_topic("/lastMessageId"), needs=PEEK)
async def get_last_message_id(call: Call) -> HttpReply:
    """Return the id of the last message of a topic."""
    topic = persistent(call, AdminError(405, "GetLastMessageId on a non-persistent topic is not allowed"))
    last, partition = topic.ledger.last_confirmed, topic.name.partition_index
    if last.entry_id < 0:
        return json_reply(message_id_json(last, partition))
    entry = await entry_at(topic.ledger, last)
    if entry is None:  # deleted
        return json_reply(message_id_json(EARLIEST, -1))
    found = message_id_json(last, partition)
    try:
        metadata = parse_metadata(entry)
    except EntryError:
        return json_reply(found)
    if metadata.HasField("num_messages_in_batch"):
        of_batch = {"batchIndex": metadata.num_messages_in_batch - 1, "batchSize": 0}
        found |= {**of_batch, "outstandingAcksInSameBatch": 0, "originalBatchSize": 0}
    return json_reply(found)


def persistent(call: Call, refusal: AdminError) -> PersistentTopic:
    """Return the topic of the path. Raise `refusal` for a non-persistent one."""
    topic = find(call)
    if not isinstance(topic, PersistentTopic):
        raise refusal
    return topic
