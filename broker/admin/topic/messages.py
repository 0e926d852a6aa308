"""/admin/v2/persistent and non-persistent: single messages, as their producers sent them."""

from __future__ import annotations

from pulsarium.broker.admin.topic.backlog import (
    no_subscription,
    number_in,
    number_of,
    persistent_only,
    refuse_parent,
)
from pulsarium.broker.admin.topic.message_ids import PEEK, persistent
from pulsarium.broker.admin.topic.message_reply import message_reply
from pulsarium.broker.admin.topic.reading import entry_at
from pulsarium.broker.admin.topic.topics import find
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError, unexpected_body
from pulsarium.broker.http.registry import SUBSCRIPTION, of_topic, route
from pulsarium.broker.http.reply import Reply
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.search import Visible
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.subscription.skip import nth_position
from pulsarium.broker.model.topic.joining import OWN_CURSORS
from pulsarium.broker.model.topic.persistent import PersistentTopic

REPLICATOR = "pulsar.repl."  # replicatorPrefix
NO_SUCH_ENTRY = "Incorrect parameter input error code: -14"  # BookKeeper's, for an entry before the first


@route("GET", *of_topic(SUBSCRIPTION + "/position/{position}"), needs=PEEK)
async def peek_message(call: Call) -> Reply:
    """The nth message, from 1 on, that a subscription has before it; it is made where there is none (clients count on
    that)."""
    number, absent = number_of(call, "position", bits=32), AdminError(404, "Message not found")
    refuse_parent(call, "Peek messages on a partitioned topic is not allowed")
    topic = persistent(call, AdminError(405, "Peek messages on a non-persistent topic is not allowed"))
    cursor = _subscription(call, topic).cursor
    if number < 1:
        raise unexpected_body("null", absent)
    position = nth_position(cursor, number) if number <= cursor.backlog() else None
    return await _message(topic, position, absent)


def _subscription(call: Call, topic: PersistentTopic) -> PersistentSubscription:
    name = call.encoded_parameter("subscription")
    if name.startswith(REPLICATOR):
        raise AdminError(404, "Replicator not found")
    if name not in topic.subscriptions:
        if name in OWN_CURSORS:
            raise no_subscription(name, str(topic.name))
        return topic.subscribe(name, earliest=True)
    return topic.subscriptions[name]


@route("GET", *of_topic("/ledger/{ledger}/entry/{entry}"), needs=PEEK)
async def get_message_by_id(call: Call) -> Reply:
    """The message, or batch, at a position."""
    position = Position(number_of(call, "ledger", bits=64), number_of(call, "entry", bits=64))
    refuse_parent(call, "GetMessageById is not allowed on partitioned-topic")
    topic = persistent_only(find(call))
    absent = AdminError(404, "Message id not found")
    if position.ledger_id in topic.ledger.ledgers and not topic.ledger.is_valid(position):
        beyond = f"LastConfirmedEntry is {topic.ledger.last_confirmed} when reading entry {position.entry_id}"
        shown = beyond if position.entry_id >= 0 else NO_SUCH_ENTRY
        raise unexpected_body(shown, absent)
    return await _message(topic, position, absent)


@route("GET", *of_topic("/examinemessage"), needs=PEEK)
async def examine_message(call: Call) -> Reply:
    """The nth message of a topic, from its first on, or back from its last."""
    text = call.query.get("messagePosition", "").strip()
    number = max(number_in(text, bits=64), 1) if text else 1
    part = (
        "Examine messages on a partitioned topic is not allowed, please try examine message on specific topic partition"
    )
    refuse_parent(call, part)
    topic = persistent(call, AdminError(405, "Examine messages on a non-persistent topic is not allowed"))
    entries = Visible(topic.ledger.ledgers.values())
    if not entries:
        raise AdminError(412, "Could not examine messages due to the total message is zero")
    absent = AdminError(404, "Message not found")
    from_first = call.query.get("initialPosition") == "earliest"
    number = min(number, len(entries)) if from_first else len(entries) - number + 1
    if number < 1:
        raise unexpected_body(NO_SUCH_ENTRY, absent)
    return await _message(topic, entries[number - 1], absent)


async def _message(topic: PersistentTopic, position: Position | None, absent: AdminError) -> Reply:
    entry = await entry_at(topic.ledger, position) if position is not None else None
    if position is None or entry is None:
        raise absent
    ledger = topic.ledger
    aborted = ledger.transactions.hides(position, entry)
    return message_reply(position, entry, uncommitted=position > ledger.max_read, aborted=aborted)
