"""A topic as the console shows it: its producers, subscriptions and consumers, summed over its partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from pulsarium.broker.cluster import Broker
from pulsarium.broker.model.subscription.base import Consumer, Subscription
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.model.topic.producers import Producer
from pulsarium.broker.net.slices import Slice
from pulsarium.broker.web.console.paces import Paces
from pulsarium.broker.web.console.stuck import kind_of
from pulsarium.broker.web.console.watch import Watch

SUBSCRIPTIONS: Final = 1000  # that are shown
SHOWN: Final = 200  # producers, consumers of one subscription, and its parts with a backlog
SHARES: Final = 1000  # partitions whose share of a backlog is shown

Json = dict[str, Any]
Part = int | str | None
"""The index of a partition, the name of a segment, or None for a topic without parts."""


@dataclass(slots=True)
class Group:
    """The subscriptions of one name on the parts of a topic. One of them stands for what has no sum."""

    of_parts: list[tuple[Part, str, Subscription]]
    backlog: int = 0
    worst: Subscription | None = None


async def page_of(broker: Broker, parts: Mapping[str, Part], watch: Watch, paces: Paces, slice_: Slice) -> Json:
    """Return a topic by its parts, of which only the loaded ones count. Other tasks run in between."""
    loaded = {name: topic for name in parts if (topic := broker.topics.loaded.get(name)) is not None}
    if not loaded:
        return {"loaded": False}
    producers: dict[tuple[str, str], Json] = {}
    groups: dict[str, Group] = {}
    paces.look()
    for name, topic in loaded.items():
        for producer in list(topic.producers.by_name.values()):
            _add_producer(producers, producer, parts[name], paces)
            await slice_.pause()
        for subscription in list(topic.subscriptions.values()):
            groups.setdefault(subscription.name, Group([])).of_parts.append((parts[name], name, subscription))
            await slice_.pause()
    found: Json = {
        "loaded": True,
        **_sums(loaded.values()),
        **_rates(loaded, watch),
        "producerCount": len(producers),
        "producers": list(islice(producers.values(), SHOWN)),
        "subscriptionCount": len(groups),
        "subscriptions": [
            await _subscription(group, list(parts), watch, slice_) for group in islice(groups.values(), SUBSCRIPTIONS)
        ],
    }
    (first, *others) = loaded.values()
    if isinstance(first, PersistentTopic) and len(parts) == 1 and not others:
        found["lastConfirmed"] = str(first.ledger.last_confirmed)
        found["terminated"] = first.ledger.terminated is not None
    return found


def _sums(topics: Iterable[Topic]) -> Json:
    topics = list(topics)
    ledgers = [topic.ledger for topic in topics if topic.ledger is not None]
    return {
        "messagesIn": sum(topic.messages_in for topic in topics),
        "bytesIn": sum(topic.bytes_in for topic in topics),
        "storageSize": sum(ledger.size for ledger in ledgers) if ledgers else None,
        "entries": sum(ledger.count for ledger in ledgers) if ledgers else None,
    }


def _rates(names: Iterable[str], watch: Watch) -> Json:
    rates = watch.samples.rates_of(names)
    return {
        "in": rates.messages_in,
        "out": rates.messages_out,
        "inBytes": rates.bytes_in,
        "outBytes": rates.bytes_out,
    }


def _add_producer(found: dict[tuple[str, str], Json], producer: Producer, part: Part, paces: Paces) -> None:
    """Add a producer. One on several parts is one row."""
    key, rate = (str(producer.client.address), producer.name), paces.of(producer)
    row = found.get(key)
    if row is None:
        row = found[key] = {
            "name": producer.name,
            "id": producer.producer_id,
            "address": str(producer.client.address),
            "client": producer.client.client_version,
            "connectedMs": producer.connected_ms,
            "metadata": producer.metadata,
            "messagesIn": 0,
            "in": 0.0,
            "parts": [],
        }
    row["messagesIn"] += producer.messages_in
    row["in"] = round(row["in"] + rate, 1)
    _add_part(row, part)


def _add_part(row: Json, part: Part) -> None:
    if part is not None:
        row["parts"].append(part)


async def _subscription(group: Group, parts: Sequence[str], watch: Watch, slice_: Slice) -> Json:
    """Return the subscriptions of one name. `reason` says why no more messages are delivered where most wait."""
    _, _, first = group.of_parts[0]
    consumers: dict[tuple[str, str], Json] = {}
    samples, waiting, backlogs = watch.samples, watch.waiting, dict[str, int]()
    found: Json = {
        "name": first.name,
        "type": first.type_name,
        "durable": first.durable,
        "replicated": first.replicated,
        "backlog": None,
        "unacked": 0,
        "messagesOut": 0,
        "redelivered": 0,
        "out": 0,
        "ackRate": 0,
        "ageMs": 0,
        "stuck": False,
        "reason": None,
        "reasonKind": None,
        "next": "",
        "active": None,
    }
    rows: list[Json] = []
    worst: tuple[bool, int] | None = None
    for part, topic, each in group.of_parts:
        for consumer in list(each.consumers):
            _add_consumer(consumers, consumer, part)
            found["unacked"] += consumer.unacked
            found["messagesOut"] += consumer.messages_out
            found["redelivered"] += consumer.redelivered
        found["messagesOut"] += each.messages_out
        found["redelivered"] += each.redelivered
        moved = samples.rates((topic, each.name))
        found["out"] += moved.messages_out
        found["ackRate"] += moved.acked
        found["ageMs"] = max(found["ageMs"], waiting.age(each))
        if each.cursor is not None and each.reason is not None:
            row = _waits(each, watch)
            backlogs[topic] = row["backlog"]
            found["backlog"] = (found["backlog"] or 0) + row["backlog"]
            found["delayed"] = found.get("delayed", 0) + row["delayed"]
            found["stuck"] = found["stuck"] or row["late"]
            if worst is None or (row["late"], row["backlog"]) > worst:
                worst = row["late"], row["backlog"]
                found |= {name: row[name] for name in ("reason", "reasonKind", "since", "late", "active")}
            if part is None:
                found |= {"next": row["next"], **_place(each)}
            elif row["backlog"]:
                rows.append({"part": part, "topic": topic, **row})
        elif each.dispatcher is not None and each.dispatcher.active is not None:
            found["active"] = each.dispatcher.active.name
        await slice_.pause()
    found |= {"consumerCount": len(consumers), "consumers": list(islice(consumers.values(), SHOWN))}
    if group.of_parts[0][0] is not None:
        found["parts"] = sorted(rows, key=lambda row: (not row["late"], -row["backlog"]))[:SHOWN]
        found["shares"] = [backlogs.get(name, 0) for name in parts[:SHARES]]
    return found


def _waits(subscription: Subscription, watch: Watch) -> Json:
    """Return what waits on one topic, and why."""
    cursor, dispatcher, reason = subscription.cursor, subscription.dispatcher, subscription.reason
    assert cursor is not None
    assert reason is not None
    since = watch.waiting.since(subscription)
    backlog = cursor.backlog()
    return {
        "backlog": backlog,
        "unacked": sum(each.unacked for each in subscription.consumers),
        "reason": reason.value,
        "reasonKind": kind_of(reason),
        "since": since,
        "sinceMs": since,
        "late": watch.waiting.is_late(subscription),
        "active": None if dispatcher is None or dispatcher.active is None else dispatcher.active.name,
        "delayed": 0 if dispatcher is None else dispatcher.count_delayed(unacknowledged=True),
        "next": str(cursor.ledger.next(cursor.mark_delete)) if backlog else "",
    }


def _place(subscription: Subscription) -> Json:
    """Return how far a subscription has come on its topic."""
    cursor = subscription.cursor
    assert cursor is not None
    return {
        "markDelete": str(cursor.mark_delete),
        "readPosition": str(cursor.read_position),
        "batches": [
            {"id": str(position), "left": cursor.batch_acks.remaining(position)}
            for position in islice(cursor.batch_acks, SHOWN)
        ],
    }


def _add_consumer(found: dict[tuple[str, str], Json], consumer: Consumer, part: Part) -> None:
    """Add a consumer. One on several parts is one row."""
    client = consumer.client
    key = str(client.address), consumer.name if part is not None else f"{consumer.name}\n{consumer.consumer_id}"
    row = found.get(key)
    if row is None:
        row = found[key] = {
            "name": consumer.name,
            "id": consumer.consumer_id,
            "address": str(client.address),
            "client": client.client_version,
            "permits": 0,
            "unacked": 0,
            "redelivered": 0,
            "blocked": False,
            "writable": client.room > 0,
            "messagesOut": 0,
            "connectedMs": consumer.connected_ms,
            "consumedMs": 0,
            "ackedMs": 0,
            "parts": [],
        }
    row["permits"] += consumer.permits
    row["unacked"] += consumer.unacked
    row["redelivered"] += consumer.redelivered
    row["blocked"] = row["blocked"] or consumer.blocked
    row["messagesOut"] += consumer.messages_out
    row["connectedMs"] = min(row["connectedMs"], consumer.connected_ms)
    row["consumedMs"] = max(row["consumedMs"], consumer.consumed_ms)
    row["ackedMs"] = max(row["ackedMs"], consumer.acked_ms)
    _add_part(row, part)
