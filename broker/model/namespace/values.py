"""Read the values of policies from JSON, as Pulsar's classes for them are read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, get_type_hints

from pulsarium.broker.config.keys import INACTIVE_TOPIC_MODES, QUOTA_POLICIES, SCHEMA_STRATEGIES, SUBSCRIPTION_TYPES
from pulsarium.broker.jackson.kinds import (
    BOOL,
    DOUBLE,
    INT,
    INTEGER,
    LONG,
    STRINGS,
    TEXT,
    TEXT_LIST,
    TEXTS,
    JavaType,
    choice,
    collection,
    integer,
    mapping,
    record,
    wrong_type,
)
from pulsarium.broker.model.namespace.policies import is_readable
from pulsarium.broker.model.policy.policies import AGE, OLDER_STRATEGIES, STORAGE
from pulsarium.rest import policies
from pulsarium.rest.policies import Long, OffloadPolicies, Policy

NAME = re.compile(r"[-=:.\w]+", re.ASCII)  # of tenants and clusters
DATA = "org.apache.pulsar.common.policies.data"


def _types(value: Any) -> list[str | None]:
    return sorted(_SET_OF_TYPES.of(value), key=TYPES_IN_PULSARS_ORDER.index)


TYPES_IN_PULSARS_ORDER = ("Exclusive", "Key_Shared", "Failover", "Shared", None)
_SET_OF_TYPES = collection(
    "java.util.HashSet", choice("org.apache.pulsar.client.api.SubscriptionType", SUBSCRIPTION_TYPES)
)
SET_OF_TYPES = JavaType(_SET_OF_TYPES.java_type, _types)

COMPATIBILITY = choice(f"{DATA}.SchemaCompatibilityStrategy", SCHEMA_STRATEGIES, "UNDEFINED")
BOOKIES = {"Ensemble": "bookkeeperEnsemble", "WriteQuorum": "bookkeeperWriteQuorum", "AckQuorum": "bookkeeperAckQuorum"}
MARK_DELETE_RATE = "managedLedgerMaxMarkDeleteRate"
FILTER_NAMES = "entryFilterNames"
OLDER_STRATEGY = choice(f"{DATA}.SchemaAutoUpdateCompatibilityStrategy", tuple(OLDER_STRATEGIES))
STRATEGY_OF_TOPIC = choice(COMPATIBILITY.java_type, SCHEMA_STRATEGIES)
AUTH_MODE = choice(f"{DATA}.SubscriptionAuthMode", ("None", "Prefix"), "None")

_FIELDS: Mapping[str, JavaType] = {  # kinds that the fields' types do not tell
    "inactiveTopicDeleteMode": choice(f"{DATA}.InactiveTopicDeleteMode", INACTIVE_TOPIC_MODES),
    "defaultNumPartitions": INTEGER,
    "subscribeThrottlingRatePerConsumer": integer("int", null=-1),
    "policy": choice(f"{DATA}.BacklogQuota$RetentionPolicy", QUOTA_POLICIES),
    "limit": integer("long", 64),
    "limitSize": integer("long", 64),
}
_TYPES: Mapping[Any, JavaType] = {int: INT, policies.Long: LONG, bool: BOOL, float: DOUBLE, str: TEXT}
_MISSING: Mapping[Any, Mapping[str, Any]] = {
    policies.PublishRate: {"publishThrottlingRateInMsg": -1, "publishThrottlingRateInByte": -1},
    policies.PersistencePolicies: {**dict.fromkeys(BOOKIES.values(), 2), MARK_DELETE_RATE: -1.0},
    policies.OffloadPolicies: policies.OFFLOAD_DEFAULTS,
}


def record_of(kind: Any, otherwise: Mapping[Any, JavaType] = MappingProxyType({})) -> JavaType:
    """Return the kind that reads values of a row's type. `otherwise` has the kinds of fields by name or type."""
    known = {**_TYPES, **_FIELDS, **otherwise}
    hints = get_type_hints(kind, include_extras=True)
    fields = {name: known.get(name) or known[hint] for name, hint in hints.items()}
    return record(f"{DATA}.{policies.JAVA[kind]}", fields, _MISSING.get(kind, {}))


QUOTA = record_of(policies.BacklogQuota)
DISPATCH_RATE = record_of(policies.DispatchRate)
_FILTERS = record_of(policies.EntryFilters)

# by the type of a row
KINDS: Mapping[Any, JavaType] = {
    int: INT,
    bool: BOOL,
    list[str]: TEXTS,
    **{kind: record_of(kind) for kind in policies.JAVA if kind is not policies.OffloadPolicies},
    policies.SubscribeRate: record_of(policies.SubscribeRate, {"ratePeriodInSecond": integer("int", null=30)}),
    policies.EntryFilters: replace(
        _FILTERS,
        of=lambda value: {FILTER_NAMES: value} if isinstance(value, str) else _FILTERS.of(value),
    ),
}


# kinds of namespaces only

S3_DRIVERS = ("s3", "aws-s3", "aliyun-oss")
FIELDS = tuple(OffloadPolicies.__annotations__)  # in Pulsar's order


def shown_policies(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return offload policies as Pulsar writes them, with its flags for the driver."""
    driver = str(sent.get("managedLedgerOffloadDriver", "")).lower()
    return {
        **{name: sent[name] for name in FIELDS if sent.get(name) is not None},
        "s3Driver": driver in S3_DRIVERS,
        "gcsDriver": driver == "google-cloud-storage",
        "fileSystemDriver": driver == "filesystem",
    }


_RECORD = record_of(
    OffloadPolicies,
    {
        "managedLedgerOffloadedReadPriority": choice(
            f"{DATA}.OffloadedReadPriority", ("BOOKKEEPER_FIRST", "TIERED_STORAGE_FIRST")
        ),
        int: INTEGER,
        Long: integer("java.lang.Long", 64),
        dict[str, str]: STRINGS,
    },
)
OFFLOAD_POLICIES = replace(_RECORD, of=lambda value: shown_policies(_RECORD.of(value)))


def shown_quota(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a quota as it is stored and shown. `limit` is the older name of `limitSize`."""
    size = value.get("limit", value.get("limitSize", 0))
    rest = {name: value[name] for name in ("limitTime", "policy") if name in value}
    return {"limit": size, "limitSize": size, **rest}


_QUOTAS = record("java.util.Map", {STORAGE: QUOTA, AGE: QUOTA})
QUOTA_MAP = replace(_QUOTAS, of=lambda value: {kind: shown_quota(quota) for kind, quota in _QUOTAS.of(value).items()})
SET = JavaType(TEXT_LIST.java_type, lambda value: list(dict.fromkeys(TEXT_LIST.of(value))))
OF_NAMESPACES: Mapping[Policy[Any], JavaType] = {  # where the kind is not that of the row's type
    policies.BACKLOG_QUOTAS: QUOTA_MAP,
    policies.COMPACTION_THRESHOLD: LONG,
    policies.DEDUPLICATION_SNAPSHOTS: INTEGER,
    policies.SUBSCRIPTION_TYPES: SET_OF_TYPES,
    policies.SUBSCRIPTION_AUTH_MODE: AUTH_MODE,
    policies.SCHEMA_STRATEGY: COMPATIBILITY,
    policies.OLDER_SCHEMA_STRATEGY: OLDER_STRATEGY,
    policies.REPLICATION: SET,
    policies.ALLOWED_CLUSTERS: SET,
    policies.OFFLOAD: OFFLOAD_POLICIES,
    policies.OFFLOAD_THRESHOLD: LONG,
    policies.OFFLOAD_SECONDS: LONG,
    policies.OFFLOAD_LAG: LONG,
}
POLICIES_TYPE = "org.apache.pulsar.common.policies.data.Policies"


def kind_in_namespace(row: Policy[Any]) -> JavaType:
    """Return the kind that reads a namespace's value of a policy."""
    return OF_NAMESPACES.get(row) or KINDS[row.json]


# by the names in the JSON of a new namespace, in which subscription types are plain strings
OF_NEW_NAMESPACE: Mapping[str, JavaType] = {
    **{
        row.kept: mapping(kind_in_namespace(row)) if row.per_cluster else kind_in_namespace(row)
        for row in policies.POLICIES
        if row.namespace is not None
    },
    policies.SUBSCRIPTION_TYPES.kept: TEXTS,
}


def read_policy(field: str, value: Any) -> Any:
    """Return the value to store for one of the policies of a new namespace."""
    if field in OF_NEW_NAMESPACE:
        return OF_NEW_NAMESPACE[field].value_of(value)
    if not is_readable(field, value):
        raise wrong_type(POLICIES_TYPE, value)
    return value
