"""The Avro schema of PulsarEvent, as Pulsar 4.2.4 registers it for `__change_events`: byte for byte its text."""

from __future__ import annotations

import json
from typing import Any, Final

from pulsarium.broker.config.keys import INACTIVE_TOPIC_MODES, QUOTA_POLICIES, SCHEMA_STRATEGIES
from pulsarium.proto.avro import AvroCodec

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
    """A class of Java: what is no primitive there may be null."""
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


_DISPATCH_RATE: Final = _record(
    "DispatchRateImpl",
    {
        "dispatchThrottlingRateInByte": "long",
        "dispatchThrottlingRateInMsg": "int",
        "ratePeriodInSecond": "int",
        "relativeToPublishRate": "boolean",
    },
    f"{DATA}.impl",
)
_NAMED_DISPATCH_RATE: Final = f"{DATA}.impl.DispatchRateImpl"  # after the first time

_QUOTA: Final = _record(
    "BacklogQuotaImpl",
    {
        "limit": "long",
        "limitSize": _null("long"),
        "limitTime": "int",
        "policy": _null(_enum("RetentionPolicy", *QUOTA_POLICIES, namespace=f"{DATA}.BacklogQuota")),
    },
    f"{DATA}.impl",
)
_INACTIVE: Final = _record(
    "InactiveTopicPolicies",
    {
        "deleteWhileInactive": "boolean",
        "inactiveTopicDeleteMode": _null(_enum("InactiveTopicDeleteMode", *INACTIVE_TOPIC_MODES)),
        "maxInactiveDurationSeconds": "int",
    },
)
_OFFLOAD: Final[dict[str, Type]] = {
    "fileSystemProfilePath": "string",
    "fileSystemURI": "string",
    "gcsManagedLedgerOffloadBucket": "string",
    "gcsManagedLedgerOffloadMaxBlockSizeInBytes": "int",
    "gcsManagedLedgerOffloadReadBufferSizeInBytes": "int",
    "gcsManagedLedgerOffloadRegion": "string",
    "gcsManagedLedgerOffloadServiceAccountKeyFile": "string",
    "managedLedgerExtraConfigurations": _map("string"),
    "managedLedgerOffloadBucket": "string",
    "managedLedgerOffloadDeletionLagInMillis": "long",
    "managedLedgerOffloadDriver": "string",
    "managedLedgerOffloadMaxBlockSizeInBytes": "int",
    "managedLedgerOffloadMaxThreads": "int",
    "managedLedgerOffloadPrefetchRounds": "int",
    "managedLedgerOffloadReadBufferSizeInBytes": "int",
    "managedLedgerOffloadReadThreads": "int",
    "managedLedgerOffloadRegion": "string",
    "managedLedgerOffloadServiceEndpoint": "string",
    "managedLedgerOffloadThresholdInBytes": "long",
    "managedLedgerOffloadThresholdInSeconds": "long",
    "managedLedgerOffloadedReadPriority": _enum("OffloadedReadPriority", "BOOKKEEPER_FIRST", "TIERED_STORAGE_FIRST"),
    "offloadersDirectory": "string",
    "s3ManagedLedgerOffloadBucket": "string",
    "s3ManagedLedgerOffloadCredentialId": "string",
    "s3ManagedLedgerOffloadCredentialSecret": "string",
    "s3ManagedLedgerOffloadMaxBlockSizeInBytes": "int",
    "s3ManagedLedgerOffloadReadBufferSizeInBytes": "int",
    "s3ManagedLedgerOffloadRegion": "string",
    "s3ManagedLedgerOffloadRole": "string",
    "s3ManagedLedgerOffloadRoleSessionName": "string",
    "s3ManagedLedgerOffloadServiceEndpoint": "string",
}
_PERSISTENCE: Final = _record(
    "PersistencePolicies",
    {
        "bookkeeperAckQuorum": "int",
        "bookkeeperEnsemble": "int",
        "bookkeeperWriteQuorum": "int",
        "managedLedgerMaxMarkDeleteRate": "double",
        "managedLedgerStorageClassName": _null("string"),
    },
)
_TYPES: Final = _enum(
    "SubType",
    *("Exclusive", "Shared", "Failover", "Key_Shared"),
    namespace="org.apache.pulsar.common.api.proto.CommandSubscribe",
)
_POLICIES: Final[dict[str, Type]] = {
    "autoSubscriptionCreationOverride": _record(
        "AutoSubscriptionCreationOverrideImpl", {"allowAutoSubscriptionCreation": "boolean"}, f"{DATA}.impl"
    ),
    "backLogQuotaMap": _map(_QUOTA),
    "compactionThreshold": "long",
    "deduplicationEnabled": "boolean",
    "deduplicationSnapshotIntervalSeconds": "int",
    "delayedDeliveryEnabled": "boolean",
    "delayedDeliveryMaxDelayInMillis": "long",
    "delayedDeliveryTickTimeMillis": "long",
    "dispatchRate": _DISPATCH_RATE,
    "dispatcherPauseOnAckStatePersistentEnabled": "boolean",
    "entryFilters": _record("EntryFilters", {"entryFilterNames": _null("string")}),
    "inactiveTopicPolicies": _INACTIVE,
    "isGlobal": "boolean",
    "maxConsumerPerTopic": "int",
    "maxConsumersPerSubscription": "int",
    "maxMessageSize": "int",
    "maxProducerPerTopic": "int",
    "maxSubscriptionsPerTopic": "int",
    "maxUnackedMessagesOnConsumer": "int",
    "maxUnackedMessagesOnSubscription": "int",
    "messageTTLInSeconds": "int",
    "offloadPolicies": _record("OffloadPoliciesImpl", _nullable(_OFFLOAD)),
    "persistence": _PERSISTENCE,
    "publishRate": _record("PublishRate", {"publishThrottlingRateInByte": "long", "publishThrottlingRateInMsg": "int"}),
    "replicationClusters": _list("string"),
    "replicatorDispatchRate": _NAMED_DISPATCH_RATE,
    "retentionPolicies": _record("RetentionPolicies", {"retentionSizeInMB": "long", "retentionTimeInMinutes": "int"}),
    "schemaCompatibilityStrategy": _enum("SchemaCompatibilityStrategy", *SCHEMA_STRATEGIES),
    "schemaValidationEnforced": "boolean",
    "shadowTopics": _list("string"),
    "subscribeRate": _record(
        "SubscribeRate", {"ratePeriodInSecond": "int", "subscribeThrottlingRatePerConsumer": "int"}
    ),
    "subscriptionDispatchRate": _NAMED_DISPATCH_RATE,
    "subscriptionExpirationTimeInMinutes": "int",
    "subscriptionPolicies": _map(_record("SubscriptionPolicies", {"dispatchRate": _null(_NAMED_DISPATCH_RATE)})),
    "subscriptionTypesEnabled": _list(_TYPES),
}
_TOPIC_POLICIES: Final[dict[str, Type]] = {
    "domain": "string",
    "namespace": "string",
    "policies": _record("TopicPolicies", _nullable(_POLICIES), DATA),
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
