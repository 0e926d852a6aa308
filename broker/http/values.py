"""Read the values of policies from JSON by Jackson's rules, and refuse others in Jackson's words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, get_type_hints

from pulsarium.broker.config.keys import INACTIVE_TOPIC_MODES, QUOTA_POLICIES, SCHEMA_STRATEGIES, SUBSCRIPTION_TYPES
from pulsarium.broker.http.call import Call, text_of, wrong_type
from pulsarium.broker.http.errors import ContainerError, UnreadableBody
from pulsarium.broker.http.reply import JSON, NAMES
from pulsarium.broker.jackson import place
from pulsarium.broker.model.namespace.policies import is_readable
from pulsarium.broker.model.policy.policies import AGE, OLDER_STRATEGIES, STORAGE
from pulsarium.rest import policies
from pulsarium.rest.policies import Long, OffloadPolicies, Policy

NAME = re.compile(r"[-=:.\w]+", re.ASCII)  # of tenants and clusters
NUMBER = re.compile(r"-?[0-9]{1,20}")
DATA = "org.apache.pulsar.common.policies.data"
EMPTY = "The request entity cannot be empty."


def request_failed() -> ContainerError:
    """Return the 500 of Pulsar's servlet container, for failures without words of Pulsar's own."""
    return ContainerError(500, NAMES[500])


class OutOfRange(UnreadableBody):
    """Error for a number that does not fit its type. Pulsar fails when such a number is the whole body."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A Java type. `of` reads a JSON value that is not null; `null` is the value for null."""

    java_type: str
    of: Callable[[Any], Any]
    null: Any = None
    is_primitive: bool = False  # a body is required
    is_object: bool = False

    def read(self, call: Call) -> Any:
        """Return the value of a call's body. Raise `UnreadableBody`, or `ContainerError` for a number out of range."""
        if not call.body:
            if self.is_primitive:
                raise UnreadableBody(EMPTY, JSON)
            return self.null
        try:
            value = call.json()
        except UnreadableBody:  # the first token has the wrong kind, whatever is wrong further on
            if not self.is_object and call.body.lstrip().startswith(b"{"):
                raise wrong_type(self.java_type, {}) from None
            raise
        try:
            return self.value_of(value)
        except OutOfRange:
            raise request_failed() from None

    def value_of(self, value: Any) -> Any:
        """Return the value to store for a JSON value. Raise `UnreadableBody` for one of another kind."""
        return self.null if value is None else self.of(value)


def integer(java_type: str, bits: int = 32, **more: Any) -> Kind:
    """Make the kind of a whole number. Fractions are cut off, and numbers may be written as strings."""
    limit = 1 << (bits - 1)

    def of(value: Any) -> int | None:
        if isinstance(value, str) and NUMBER.fullmatch(value.strip()):
            value = int(value)
        if value == "":
            return more.get("null")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise wrong_type(java_type, value)
        if not -limit <= value < limit:
            name = "int" if bits == 32 else "long"
            raise OutOfRange(f"Numeric value ({value}) out of range of {name} ({-limit} - {limit - 1}){place(1, 1)}")
        return int(value)

    return Kind(java_type, of, **more)


def boolean(java_type: str, recognized: str, **more: Any) -> Kind:
    """Make the kind of a boolean, which may be a string. The number 0 is false, and other whole numbers are true."""

    def of(value: Any) -> bool | None:
        if isinstance(value, bool):
            return value
        if isinstance(value, int):
            return value != 0
        if isinstance(value, str):
            if not value:
                return more.get("null")
            if value in ("true", "True", "TRUE", "false", "False", "FALSE"):
                return value.lower() == "true"
            text = f'Cannot deserialize value of type `{java_type}` from String "{value}": only {recognized} recognized'
            raise UnreadableBody(text + place(1, 1))
        raise wrong_type(java_type, value)

    return Kind(java_type, of, **more)


def double(java_type: str, **more: Any) -> Kind:
    """Make the kind of a number with a fraction."""

    def of(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise wrong_type(java_type, value)
        try:
            return float(value)
        except (ValueError, OverflowError):
            found = f'String "{value}": not a valid `{java_type}` value (as String to convert)'
            raise UnreadableBody(f"Cannot deserialize value of type `{java_type}` from {found}{place(1, 1)}") from None

    return Kind(java_type, of, **more)


def collection(java_type: str) -> Kind:
    """Make the kind of a list or a set of strings."""

    def of(value: Any) -> list[str]:
        if isinstance(value, str):
            raise _no_creator(java_type, "String", f"String value ('{value}')")
        if not isinstance(value, list):
            raise wrong_type(f"{java_type}<java.lang.String>", value)
        found = [text_of(each) for each in value]
        return list(dict.fromkeys(found)) if java_type.endswith("Set") else found

    return Kind(f"{java_type}<java.lang.String>", of)


def choice(java_type: str, names: tuple[str, ...], null: Any = None) -> Kind:
    """Make the kind of an enum, by name or number. A name that Pulsar does not know counts as null."""

    def of(value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            return names[value] if 0 <= value < len(names) else null
        if not isinstance(value, str):
            raise wrong_type(java_type, value)
        return value if value in names else null

    return Kind(java_type, of, null)


def _no_creator(java_type: str, word: str, value: str) -> UnreadableBody:
    what = f"no {word}-argument constructor/factory method to deserialize from {value}{place(1, 1)}"
    return UnreadableBody(f"Cannot construct instance of `{java_type}` (although at least one Creator exists): {what}")


def record(java_type: str, fields: Mapping[str, Kind], missing: Mapping[str, Any] | None = None) -> Kind:
    """Make the kind of an object with known fields, which drops other fields.

    `missing` has values for absent fields.
    """
    missing = missing or {}

    def of(value: Any) -> dict[str, Any]:
        if isinstance(value, str):
            raise _no_creator(java_type, "String", f"String value ('{value}')")
        if isinstance(value, int) and not isinstance(value, bool):
            raise _no_creator(java_type, "int/Int", f"Number value ({value})")
        if not isinstance(value, dict):
            raise wrong_type(java_type, value)
        found = {}
        for name, kind in fields.items():
            try:
                found[name] = missing[name] if name not in value and name in missing else kind.value_of(value.get(name))
            except UnreadableBody as error:
                raise UnreadableBody(f'{error.text} (through reference chain: {java_type}["{name}"])') from None
        return {name: field for name, field in found.items() if field is not None}

    return Kind(java_type, of, is_object=True)


def mapping(kind: Kind, java_type: str = "java.util.Map") -> Kind:
    """Make the kind of an object with any fields, all of one kind."""

    def of(value: Any) -> dict[str, Any]:
        if isinstance(value, str):
            raise _no_creator(java_type, "String", f"String value ('{value}')")
        if not isinstance(value, dict):
            raise wrong_type(f"{java_type}<java.lang.String,{kind.java_type}>", value)
        return {name: kind.of(each) for name, each in value.items() if each is not None}

    return Kind(java_type, of, is_object=True)


def listed(java_type: str, value: Any) -> list[Any]:
    """Return a list of values that are not strings.

    Raise `UnreadableBody` for anything else, and in other words for a string.
    """
    if isinstance(value, str):
        found = "String value (token `JsonToken.VALUE_STRING`)"
        raise UnreadableBody(f"Cannot deserialize value of type `{java_type}` from {found}{place(1, 1)}")
    if not isinstance(value, list):
        raise wrong_type(java_type, value)
    return value


def _types(value: Any) -> list[str | None]:
    named = {SUBSCRIPTION_TYPE.value_of(each) for each in listed(TYPES, value)}
    return sorted(named, key=TYPES_IN_PULSARS_ORDER.index)


TYPES = "java.util.HashSet<org.apache.pulsar.client.api.SubscriptionType>"
TYPES_IN_PULSARS_ORDER = ("Exclusive", "Key_Shared", "Failover", "Shared", None)
SUBSCRIPTION_TYPE = choice("org.apache.pulsar.client.api.SubscriptionType", SUBSCRIPTION_TYPES)
SET_OF_TYPES = Kind(TYPES, _types)

INT = integer("int", null=0, is_primitive=True)
INTEGER = integer("java.lang.Integer")
LONG = integer("long", 64, null=0, is_primitive=True)
BOOL = boolean("boolean", '"true"/"True"/"TRUE" or "false"/"False"/"FALSE"', null=False, is_primitive=True)
BOOLEAN = boolean("java.lang.Boolean", '"true" or "false"')
TEXT = Kind("java.lang.String", text_of)
TEXTS = collection("java.util.HashSet")
TEXT_LIST = collection("java.util.ArrayList")
DOUBLE = double("double", null=0.0)

COMPATIBILITY = choice(f"{DATA}.SchemaCompatibilityStrategy", SCHEMA_STRATEGIES, "UNDEFINED")
BOOKIES = {"Ensemble": "bookkeeperEnsemble", "WriteQuorum": "bookkeeperWriteQuorum", "AckQuorum": "bookkeeperAckQuorum"}
MARK_DELETE_RATE = "managedLedgerMaxMarkDeleteRate"
FILTER_NAMES = "entryFilterNames"
OLDER_STRATEGY = choice(f"{DATA}.SchemaAutoUpdateCompatibilityStrategy", tuple(OLDER_STRATEGIES))
STRATEGY_OF_TOPIC = choice(COMPATIBILITY.java_type, SCHEMA_STRATEGIES)
AUTH_MODE = choice(f"{DATA}.SubscriptionAuthMode", ("None", "Prefix"), "None")

_FIELDS: Mapping[str, Kind] = {  # kinds that the fields' types do not tell
    "inactiveTopicDeleteMode": choice(f"{DATA}.InactiveTopicDeleteMode", INACTIVE_TOPIC_MODES),
    "defaultNumPartitions": INTEGER,
    "subscribeThrottlingRatePerConsumer": integer("int", null=-1),
    "policy": choice(f"{DATA}.BacklogQuota$RetentionPolicy", QUOTA_POLICIES),
    "limit": integer("java.lang.Long", 64),
    "limitSize": integer("java.lang.Long", 64),
}
_TYPES: Mapping[Any, Kind] = {int: INT, policies.Long: LONG, bool: BOOL, float: DOUBLE, str: TEXT}
_MISSING: Mapping[Any, Mapping[str, Any]] = {
    policies.PublishRate: {"publishThrottlingRateInMsg": -1, "publishThrottlingRateInByte": -1},
    policies.PersistencePolicies: {**dict.fromkeys(BOOKIES.values(), 2), MARK_DELETE_RATE: -1.0},
    policies.OffloadPolicies: policies.OFFLOAD_DEFAULTS,
}


def record_of(kind: Any, otherwise: Mapping[Any, Kind] = MappingProxyType({})) -> Kind:
    """Return the kind that reads values of a row's type. `otherwise` has the kinds of fields by name or type."""
    known = {**_TYPES, **_FIELDS, **otherwise}
    hints = get_type_hints(kind, include_extras=True)
    fields = {name: known.get(name) or known[hint] for name, hint in hints.items()}
    return record(f"{DATA}.{policies.JAVA[kind]}", fields, _MISSING.get(kind))


QUOTA = record_of(policies.BacklogQuota)
DISPATCH_RATE = record_of(policies.DispatchRate)
_FILTERS = record_of(policies.EntryFilters)

# by the type of a row
KINDS: Mapping[Any, Kind] = {
    int: INT,
    bool: BOOL,
    list[str]: TEXTS,
    **{kind: record_of(kind) for kind in policies.JAVA if kind is not policies.OffloadPolicies},
    policies.SubscribeRate: record_of(policies.SubscribeRate, {"ratePeriodInSecond": integer("int", null=30)}),
    policies.EntryFilters: Kind(
        _FILTERS.java_type,
        lambda value: {FILTER_NAMES: value} if isinstance(value, str) else _FILTERS.of(value),
        is_object=True,
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
        dict[str, str]: mapping(TEXT),
    },
)
OFFLOAD_POLICIES = Kind(_RECORD.java_type, lambda value: shown_policies(_RECORD.of(value)), is_object=True)


def shown_quota(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a quota as it is stored and shown. `limit` is the older name of `limitSize`."""
    size = value.get("limit", value.get("limitSize", 0))
    rest = {name: value[name] for name in ("limitTime", "policy") if name in value}
    return {"limit": size, "limitSize": size, **rest}


_QUOTAS = record("java.util.Map", {STORAGE: QUOTA, AGE: QUOTA})
QUOTA_MAP = Kind(
    _QUOTAS.java_type,
    lambda value: {kind: shown_quota(quota) for kind, quota in _QUOTAS.of(value).items()},
    is_object=True,
)
SET = Kind(TEXT_LIST.java_type, lambda value: list(dict.fromkeys(TEXT_LIST.of(value))))
OF_NAMESPACES: Mapping[Policy[Any], Kind] = {  # where the kind is not that of the row's type
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


def kind_in_namespace(row: Policy[Any]) -> Kind:
    """Return the kind that reads a namespace's value of a policy."""
    return OF_NAMESPACES.get(row) or KINDS[row.json]


# by the names in the JSON of a new namespace, in which subscription types are plain strings
OF_NEW_NAMESPACE: Mapping[str, Kind] = {
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
