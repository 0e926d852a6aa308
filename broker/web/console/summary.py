"""A loaded topic as the console shows it: its producers, subscriptions and consumers."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from pulsarium.broker.model.subscription.base import Consumer, Subscription
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.net.slices import Slice
from pulsarium.broker.web.console.waiting import WaitingTimes

SHOWN: Final = 200  # producers, subscriptions, and consumers of one subscription

Json = dict[str, Any]


async def summary_of(topic: Topic, waiting: WaitingTimes, slice_: Slice) -> Json:
    """Return a loaded topic, and let other tasks run between two subscriptions."""
    subscriptions = []
    for each in list(islice(topic.subscriptions.values(), SHOWN)):
        subscriptions.append(_subscription(each, waiting))
        await slice_.pause()
    found: Json = {
        "messagesIn": topic.messages_in,
        "bytesIn": topic.bytes_in,
        "storageSize": None if topic.ledger is None else topic.ledger.size,
        "entries": None if topic.ledger is None else topic.ledger.count,
        "producerCount": len(topic.producers),
        "producers": [
            {
                "name": each.name,
                "id": each.producer_id,
                "address": str(each.client.address),
                "client": each.client.client_version,
                "connectedMs": each.connected_ms,
                "metadata": each.metadata,
            }
            for each in islice(topic.producers.by_name.values(), SHOWN)
        ],
        "subscriptionCount": len(topic.subscriptions),
        "subscriptions": subscriptions,
    }
    if isinstance(topic, PersistentTopic):
        found["lastConfirmed"] = str(topic.ledger.last_confirmed)
        found["terminated"] = topic.ledger.terminated is not None
    return found


def _subscription(subscription: Subscription, waiting: WaitingTimes) -> Json:
    """Return one subscription. `reason` says why no more messages are delivered."""
    cursor, dispatcher, consumers = subscription.cursor, subscription.dispatcher, list(subscription.consumers)
    found: Json = {
        "name": subscription.name,
        "type": subscription.type_name,
        "durable": subscription.durable,
        "replicated": subscription.replicated,
        "backlog": None,
        "unacked": sum(each.unacked for each in consumers),
        "messagesOut": subscription.messages_out + sum(each.messages_out for each in consumers),
        "reason": None,
        "active": None if dispatcher is None or dispatcher.active is None else dispatcher.active.name,
        "consumerCount": len(consumers),
        "consumers": [_consumer(each) for each in consumers[:SHOWN]],
    }
    if cursor is not None and subscription.reason is not None:
        found |= {
            "backlog": cursor.backlog(),
            "reason": subscription.reason.value,
            "delayed": 0 if dispatcher is None else dispatcher.count_delayed(unacknowledged=True),
            "markDelete": str(cursor.mark_delete),
            "readPosition": str(cursor.read_position),
            "batches": [
                {"id": str(position), "left": cursor.batch_acks.remaining(position)}
                for position in islice(cursor.batch_acks, SHOWN)
            ],
            "since": waiting.since(subscription),
            "late": waiting.is_late(subscription),
        }
    return found


def _consumer(consumer: Consumer) -> Json:
    return {
        "name": consumer.name,
        "id": consumer.consumer_id,
        "address": str(consumer.client.address),
        "client": consumer.client.client_version,
        "permits": consumer.permits,
        "unacked": consumer.unacked,
        "blocked": consumer.blocked,
        "writable": consumer.client.room > 0,
        "messagesOut": consumer.messages_out,
        "connectedMs": consumer.connected_ms,
        "consumedMs": consumer.consumed_ms,
        "ackedMs": consumer.acked_ms,
    }
