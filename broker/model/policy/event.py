"""Encode and decode a change of topic policies as an event of `__change_events` (TopicPoliciesEvent)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, get_type_hints

from pulsarium.broker.config.keys import INACTIVE_TOPIC_MODES, QUOTA_POLICIES, SCHEMA_STRATEGIES, SUBSCRIPTION_TYPES
from pulsarium.proto.avro import AvroCodec
from pulsarium.proto.errors import AvroError, InvalidTopicName
from pulsarium.proto.topic_name import TopicName
from pulsarium.rest import policies as rows
from pulsarium.rest.policies import DELAYED_DELIVERY, POLICIES, Policy

Type = str | list[Any] | dict[str, Any]

EVENTS: Final = "org.apache.pulsar.common.events"
DATA: Final = "org.apache.pulsar.common.policies.data"


def _null(kind: Type) -> list[Any]:
    return ["null", kind]


def _named(kind: str, name: str, namespace: str, **about: Any) -> dict[str, Any]:
    return {"type": kind, "name": name, **({"namespace": namespace} if namespace else {}), **about}


def _enum(name: str, *symbols: str, namespace: str = "") -> dict[str, Any]:
    return _named("enum", name, namespace, symbols=list(symbols))


def _record(name: str, fields: dict[str, Type], namespace: str = "") -> dict[str, Any]:
    """Return the schema of a Java class. Fields that are no primitives may be null."""
    found: list[dict[str, Any]] = []
    for field, kind in fields.items():
        found.append({"name": field, "type": kind, **({"default": None} if isinstance(kind, list) else {})})
    return _named("record", name, namespace, fields=found)


def _nullable(kinds: dict[str, Type]) -> dict[str, Type]:
    return {name: _null(kind) for name, kind in kinds.items()}


def _list(items: Type) -> dict[str, Any]:
    return {"type": "array", "items": items, "java-class": "java.util.List"}


def _map(values: Type) -> dict[str, Any]:
    return {"type": "map", "values": values}


_ENUMS: Final = {  # fields that are enums
    "policy": _enum("RetentionPolicy", *QUOTA_POLICIES, namespace=f"{DATA}.BacklogQuota"),
    "inactiveTopicDeleteMode": _enum("InactiveTopicDeleteMode", *INACTIVE_TOPIC_MODES),
    "managedLedgerOffloadedReadPriority": _enum("OffloadedReadPriority", "BOOKKEEPER_FIRST", "TIERED_STORAGE_FIRST"),
}
_PRIMITIVES: Final[dict[Any, Type]] = {int: "int", rows.Long: "long", bool: "boolean", float: "double"}
_OBJECTS: Final[dict[Any, Type]] = {str: "string", dict[str, str]: _map("string"), list[str]: _list("string")}


def _of_type(kind: Any) -> Type:
    """Return the schema of a row's type. Fields of Java classes are sorted."""
    if kind not in rows.JAVA:
        return (_PRIMITIVES | _OBJECTS)[kind]
    fields: dict[str, Type] = {}
    for name, hint in sorted(get_type_hints(kind, include_extras=True).items()):
        is_object = hint not in _PRIMITIVES or kind is rows.OffloadPolicies or name == "limitSize"
        found = _ENUMS.get(name) or _of_type(hint)
        fields[name] = _null(found) if is_object else found
    package, _, name = rows.JAVA[kind].rpartition(".")
    return _record(name, fields, f"{DATA}.{package}" if package else "")


_NAMED_DISPATCH_RATE: Final = f"{DATA}.impl.DispatchRateImpl"  # the name alone, for each use after the first
_TYPES: Final = _enum(
    "SubType",
    *SUBSCRIPTION_TYPES,
    namespace="org.apache.pulsar.common.api.proto.CommandSubscribe",
)
_OTHERWISE: Final[Mapping[Policy[Any], Type]] = {  # where the type of the row is not the event's
    rows.BACKLOG_QUOTAS: _map(_of_type(rows.BacklogQuota)),
    rows.COMPACTION_THRESHOLD: "long",
    rows.REPLICATOR_DISPATCH_RATE: _NAMED_DISPATCH_RATE,
    rows.SCHEMA_STRATEGY: _enum("SchemaCompatibilityStrategy", *SCHEMA_STRATEGIES),
    rows.SUBSCRIPTION_DISPATCH_RATE: _NAMED_DISPATCH_RATE,
    rows.SUBSCRIPTION_TYPES: _list(_TYPES),
}
_POLICIES: Final[dict[str, Type]] = {
    **{row.event: _OTHERWISE.get(row) or _of_type(row.json) for row in POLICIES if row.event},
    "delayedDeliveryEnabled": "boolean",
    "delayedDeliveryMaxDelayInMillis": "long",
    "delayedDeliveryTickTimeMillis": "long",
    "isGlobal": "boolean",
    "subscriptionPolicies": _map(_record("SubscriptionPolicies", {"dispatchRate": _null(_NAMED_DISPATCH_RATE)})),
}
_TOPIC_POLICIES: Final[dict[str, Type]] = {
    "domain": "string",
    "namespace": "string",
    "policies": _record("TopicPolicies", _nullable(dict(sorted(_POLICIES.items()))), DATA),
    "tenant": "string",
    "topic": "string",
}
_SNAPSHOTS: Final = tuple(f"TRANSACTION_BUFFER_SNAPSHOT{suffix}" for suffix in ("", "_SEGMENTS", "_INDEXES"))
_EVENT: Final = _record(
    "PulsarEvent",
    _nullable(
        {
            "actionType": _enum("ActionType", "INSERT", "DELETE", "UPDATE", "NONE"),
            "eventType": _enum("EventType", "TOPIC_POLICY", *_SNAPSHOTS),
            "replicateTo": {"type": "array", "items": "string", "java-class": "java.util.HashSet"},
            "topicPoliciesEvent": _record("TopicPoliciesEvent", _nullable(_TOPIC_POLICIES)),
        }
    ),
    EVENTS,
)

EVENT_SCHEMA: Final = json.dumps(_EVENT, separators=(",", ":")).encode()
EVENT_PROPERTIES: Final = {"__alwaysAllowNull": "true", "__jsr310ConversionEnabled": "false"}
EVENT_CODEC: Final = AvroCodec(_EVENT)


Json = Mapping[str, Any]

GLOBAL_KEY: Final = "__G__"  # prefix of the topic, in keys of policies for all clusters

# field of the event -> name in the store
SAME: Final = {row.event: row.kept for row in POLICIES if row.event and not row.per_cluster} | {
    "subscriptionPolicies": "subscriptionPolicies"
}
PER_CLUSTER: Final = {row.event: row.kept for row in POLICIES if row.event and row.per_cluster}
DELAYS: Final = DELAYED_DELIVERY.kept
DELAY_PARTS: Final = {
    "delayedDeliveryEnabled": "active",
    "delayedDeliveryTickTimeMillis": "tickTime",
    "delayedDeliveryMaxDelayInMillis": "maxDeliveryDelayInMillis",
}
# fields that are never null
EMPTY: Final[Json] = {"backLogQuotaMap": {}, "subscriptionPolicies": {}, "subscriptionTypesEnabled": []}


@dataclass(frozen=True, slots=True)
class PolicyEvent:
    """A policy event. `action` is INSERT, UPDATE, DELETE or NONE; `policies` are all that the topic has now."""

    topic: TopicName
    action: str
    is_global: bool
    policies: dict[str, Any]


def key_of(topic: TopicName, *, is_global: bool) -> str:
    """Return the message key. Compaction keeps the last event of each key."""
    return f"{GLOBAL_KEY if is_global else ''}{topic}"


def topic_of_key(key: str) -> tuple[TopicName, bool]:
    """Return the topic of a key, and whether the event is for all clusters.

    Raise `InvalidTopicName` for an invalid key.
    """
    return TopicName.parse(key.removeprefix(GLOBAL_KEY)).partitioned_name, key.startswith(GLOBAL_KEY)


def encode(event: PolicyEvent, cluster: str) -> bytes:
    """Encode an event of this cluster as PulsarEvent."""
    kept, name = event.policies, event.topic
    delays = kept.get(DELAYS) or {}
    policies: dict[str, Any] = {
        **EMPTY,
        **{field: kept[own] for field, own in SAME.items() if own in kept},
        **{field: (kept.get(own) or {}).get(cluster) for field, own in PER_CLUSTER.items()},
        **{field: delays.get(part) for field, part in DELAY_PARTS.items()},
        "isGlobal": event.is_global,
    }
    return EVENT_CODEC.encode_as_java(
        {
            "actionType": event.action,
            "eventType": "TOPIC_POLICY",
            "replicateTo": None if event.is_global else [cluster],
            "topicPoliciesEvent": {
                "domain": name.domain,
                "tenant": name.tenant,
                "namespace": name.namespace,
                "topic": name.local_name,
                "policies": policies,
            },
        }
    )


def decode(payload: bytes, cluster: str, codec: AvroCodec = EVENT_CODEC) -> PolicyEvent | None:
    """Decode an event with the schema that wrote it. Return None for events of other kinds.

    Raise `AvroError` for an event that cannot be decoded, or has no topic name.
    """
    event = codec.decode(payload)
    if codec is not EVENT_CODEC:  # convert the event to the fields of this version
        event = EVENT_CODEC.decode(EVENT_CODEC.encode_as_java(event))
    about = event["topicPoliciesEvent"]
    if about is None or event["eventType"] != "TOPIC_POLICY":
        return None
    try:
        name = TopicName.parse("{domain}://{tenant}/{namespace}/{topic}".format(**about)).partitioned_name
    except InvalidTopicName as error:
        raise AvroError(f"the event has no valid topic name: {error}") from None
    found = {field: value for field, value in (about["policies"] or {}).items() if value is not None}
    is_global = bool(found.get("isGlobal"))
    return PolicyEvent(name, str(event["actionType"]), is_global, _kept(found, cluster))


def _kept(found: Json, cluster: str) -> dict[str, Any]:
    """Return the policies of an event by their names in the store."""
    said = {field: value for field, value in found.items() if value not in ({}, [])}
    kept = {own: _without_nulls(said[field]) for field, own in SAME.items() if field in said}
    kept |= {own: {cluster: said[field]} for field, own in PER_CLUSTER.items() if field in said}
    delays = {part: said[field] for field, part in DELAY_PARTS.items() if field in said}
    return kept | ({DELAYS: delays} if delays else {})


def _without_nulls(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: _without_nulls(each) for name, each in value.items() if each is not None}
