"""Ask a broker for all that it keeps, in a form that does not depend on its version."""

from __future__ import annotations

import hashlib
from typing import Any

import anyio
import pulsar

from pulsarium.client import connect

from .load import END, NAMESPACE, call

SHOWN = 60  # bytes of a message; a longer one is shown by its size and digest
WAIT_MS = 20_000
POLICIES = (
    "deduplicationEnabled",
    "retention_policies",
    "message_ttl_in_seconds",
    "backlog_quota_map",
    "auth_policies",
)
RECORDS = (
    "tenants",
    "tenants/acme",
    "namespaces/acme",
    "namespaces/acme/parts/permissions",
    "clusters",
    "resourcegroups/few",
    f"persistent/{NAMESPACE}/plain/maxConsumers",
    f"persistent/{NAMESPACE}/plain/retention",
    f"persistent/{NAMESPACE}/plain/properties",
    f"persistent/{NAMESPACE}/plain/subscription/nothing/properties",
    f"persistent/{NAMESPACE}/partitioned",
    f"persistent/{NAMESPACE}/parted/partitions",
)


def describe(service_url: str, admin: str) -> dict[str, Any]:
    """Return all that the broker keeps. A value is None if this version does not show it."""
    client = pulsar.Client(service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    try:
        topics = call(admin, "GET", f"v2/persistent/{NAMESPACE}")
        assert isinstance(topics, list)
        names = sorted(name for name in topics if "__" not in name)
        return {
            "records": {path: call(admin, "GET", f"v2/{path}") for path in RECORDS},
            "policies": {name: _policies(admin, name) for name in (NAMESPACE, "acme/parts")},
            "topics": {name.rpartition("/")[2]: _topic(client, admin, name) for name in names},
            "last sequence id": _last_sequence_id(client),
            "compacted": _read(client, "compact", compacted=True),
            "transactions": _transactions(service_url, admin),
        }
    finally:
        client.close()


def _policies(admin: str, namespace: str) -> dict[str, Any]:
    found = call(admin, "GET", f"v2/namespaces/{namespace}")
    return {name: found.get(name) for name in POLICIES} if isinstance(found, dict) else {}


def _topic(client: pulsar.Client, admin: str, name: str) -> dict[str, Any]:
    local = name.rpartition("/")[2]
    path = f"v2/persistent/{NAMESPACE}/{local}"
    inside: Any = call(admin, "GET", f"{path}/internalStats") or {}
    cursors = {
        cursor: {"markDelete": told["markDeletePosition"], "ranges": told["individuallyDeletedMessages"]}
        for cursor, told in inside.get("cursors", {}).items()
    }
    subscriptions: Any = call(admin, "GET", f"{path}/subscriptions") or []
    return {
        "messages": _read(client, name),
        "cursors": cursors,
        "entries": inside.get("numberOfEntries"),
        "ledgers": [(each["ledgerId"], each["entries"]) for each in inside.get("ledgers", []) if each["entries"]],
        "subscriptions": {each: left(client, name, each) for each in sorted(subscriptions) if each[0] != "_"},
        "schemas": _schemas(admin, local),
    }


def _schemas(admin: str, local: str) -> Any:
    found: Any = call(admin, "GET", f"v2/schemas/{NAMESPACE}/{local}/schemas")
    if not isinstance(found, dict):
        return None
    return [{name: each.get(name) for name in ("version", "type", "data")} for each in found["getSchemaResponses"]]


def _read(client: pulsar.Client, topic: str, *, compacted: bool = False) -> list[str]:
    """Return the messages of a topic, up to END."""
    reader = client.create_reader(topic, pulsar.MessageId.earliest, is_read_compacted=compacted)
    found = []
    while reader.has_message_available():
        message = reader.read_next(WAIT_MS)
        found.append(_message(message))
        if message.data() == END:
            break
    reader.close()
    return found


def left(client: pulsar.Client, topic: str, subscription: str) -> list[str]:
    """Return the messages that the subscription has not acknowledged, up to END."""
    consumer = client.subscribe(topic, subscription, batch_index_ack_enabled=True)
    found = []
    while True:
        message = consumer.receive(WAIT_MS)
        found.append(_place(message))
        if message.data() == END:
            break
    consumer.close()
    return found


def _message(message: pulsar.Message) -> str:
    number = message.properties().get("n", "")
    times = f"{message.publish_timestamp()} {message.event_timestamp()}"
    return f"{_place(message)} {times} {message.partition_key()} {number} {_shown(message.data())}"


def _place(message: pulsar.Message) -> str:
    place = message.message_id()
    index = place.batch_index()
    return f"{place.ledger_id()}:{place.entry_id()}" + (f":{index}" if index >= 0 else "")


def _shown(data: bytes) -> str:
    return data.decode() if len(data) <= SHOWN else f"{len(data)} bytes {hashlib.sha256(data).hexdigest()[:16]}"


def _last_sequence_id(client: pulsar.Client) -> int:
    producer = client.create_producer("once", producer_name="counter")
    last = int(producer.last_sequence_id())
    producer.close()
    return last


def _transactions(service_url: str, admin: str) -> Any:
    """Return the open transactions with their status, topics and timeout."""
    anyio.run(load_coordinators, service_url)
    found: Any = call(admin, "GET", "v3/transactions/slowTransactions/1")
    told = ("status", "producedPartitions", "ackedPartitions", "timeoutAt")
    return {txn: {name: each.get(name) for name in told} for txn, each in found.items()}


async def load_coordinators(service_url: str) -> None:
    """Make the broker load its transaction coordinators."""
    async with connect(service_url) as client:
        await (await client.begin_transaction()).abort()
