"""A change of a topic's policies as the event that `__change_events` has of it (TopicPoliciesEvent)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pulsarium.broker.model.policy.event_schema import EVENT_CODEC
from pulsarium.proto.avro import AvroCodec
from pulsarium.proto.errors import AvroError, InvalidTopicName
from pulsarium.proto.topic_name import TopicName
from pulsarium.rest.policies import DELAYED_DELIVERY, POLICIES

Json = Mapping[str, Any]

GLOBAL_KEY: Final = "__G__"  # before the topic, in the keys of what holds in all clusters

# as the event has it -> as it is kept
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
EMPTY: Final[Json] = {"backLogQuotaMap": {}, "subscriptionPolicies": {}, "subscriptionTypesEnabled": []}  # never null


@dataclass(frozen=True, slots=True)
class PolicyEvent:
    """What an event says: `action` is INSERT, UPDATE, DELETE or NONE; `policies` are all that the topic has now."""

    topic: TopicName
    action: str
    is_global: bool
    policies: dict[str, Any]


def key_of(topic: TopicName, *, is_global: bool) -> str:
    """The message key: compaction leaves the last event of each."""
    return f"{GLOBAL_KEY if is_global else ''}{topic}"


def topic_of_key(key: str) -> tuple[TopicName, bool]:
    """The topic of a message without a value, and whether it is about all clusters; InvalidTopicName for no key."""
    return TopicName.parse(key.removeprefix(GLOBAL_KEY)).partitioned_name, key.startswith(GLOBAL_KEY)


def encode(event: PolicyEvent, cluster: str) -> bytes:
    """The event of this cluster, as PulsarEvent."""
    kept, name = event.policies, event.topic
    delays = kept.get(DELAYS) or {}
    policies: dict[str, Any] = {
        **EMPTY,
        **{field: kept[own] for field, own in SAME.items() if own in kept},
        **{field: (kept.get(own) or {}).get(cluster) for field, own in PER_CLUSTER.items()},
        **{field: delays.get(part) for field, part in DELAY_PARTS.items()},
        "isGlobal": event.is_global,
    }
    return EVENT_CODEC.encode(
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
    """What such an event says, read with the schema it was written with; None for events of other kinds.

    AvroError for one that cannot be read, or names no topic.
    """
    event = codec.decode(payload)
    if codec is not EVENT_CODEC:  # what is in ours, as ours has it
        event = EVENT_CODEC.decode(EVENT_CODEC.encode(event))
    about = event["topicPoliciesEvent"]
    if about is None or event["eventType"] != "TOPIC_POLICY":
        return None
    try:
        name = TopicName.parse("{domain}://{tenant}/{namespace}/{topic}".format(**about)).partitioned_name
    except InvalidTopicName as error:
        raise AvroError(f"the event names no topic: {error}") from None
    found = {field: value for field, value in (about["policies"] or {}).items() if value is not None}
    is_global = bool(found.get("isGlobal"))
    return PolicyEvent(name, str(event["actionType"]), is_global, _kept(found, cluster))


def _kept(found: Json, cluster: str) -> dict[str, Any]:
    """Policies of an event as they are kept."""
    said = {field: value for field, value in found.items() if value not in ({}, [])}
    kept = {own: _without_nulls(said[field]) for field, own in SAME.items() if field in said}
    kept |= {own: {cluster: said[field]} for field, own in PER_CLUSTER.items() if field in said}
    delays = {part: said[field] for field, part in DELAY_PARTS.items() if field in said}
    return kept | ({DELAYS: delays} if delays else {})


def _without_nulls(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: _without_nulls(each) for name, each in value.items() if each is not None}
