"""JSON of policies, read as Jackson reads it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.config import Config
from pulsarium.broker.http import values as policy_values
from pulsarium.broker.http.errors import UnreadableBody
from pulsarium.broker.http.values import (
    BOOL,
    BOOLEAN,
    INT,
    INTEGER,
    LONG,
    OF_NEW_NAMESPACE,
    QUOTA,
    SET_OF_TYPES,
    Kind,
    read_policy,
)
from pulsarium.broker.http.values import KINDS as OF_TYPE
from pulsarium.broker.model.policy.policies import Policies, auto_creation, resolve
from pulsarium.rest.policies import AutoTopicCreation, RetentionPolicies

RETENTION, AUTO_TOPIC_CREATION = OF_TYPE[RetentionPolicies], OF_TYPE[AutoTopicCreation]
ALL = [kind for kind in (*vars(policy_values).values(), *OF_TYPE.values()) if isinstance(kind, Kind)]
_NAMES = """
retentionTimeInMinutes destination_storage limitSize policy standalone subscribeThrottlingRatePerConsumer tickTime
active inactiveTopicDeleteMode topicType defaultNumPartitions
"""
NAMES = _NAMES.split()
TEXTS = st.sampled_from(["", "x", "5", "-7 ", "true", "producer_exception", "partitioned", "Shared", "BACKWARD"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (INT, None, 0),
        (INTEGER, None, None),
        (INT, 1.9, 1),
        (INT, -1.9, -1),
        (INT, " 12 ", 12),
        (INT, "", 0),
        (INTEGER, "", None),
        (BOOL, "", False),
        (INT, 2**31 - 1, 2**31 - 1),
        (LONG, -(2**63), -(2**63)),
        (BOOL, None, False),
        (BOOL, 1, True),
        (BOOL, 0, False),
        (BOOL, "TRUE", True),
        (BOOLEAN, None, None),
        (
            RETENTION,
            {"retentionSizeInMB": 5, "other": 1},
            {"retentionTimeInMinutes": 0, "retentionSizeInMB": 5},
        ),
        (SET_OF_TYPES, ["Shared", "Exclusive", "Shared"], ["Exclusive", "Shared"]),
        (SET_OF_TYPES, ["Wrong", 3, None, 9], ["Key_Shared", None]),
        (AUTO_TOPIC_CREATION, {"topicType": 5}, {"allowAutoTopicCreation": False, "topicType": "5"}),
        (QUOTA, {"policy": 1, "limitTime": "7"}, {"limitTime": 7, "policy": "producer_exception"}),
    ],
)
def test_a_value_is_read_as_jackson_reads_it(kind: Kind, value: Any, expected: Any) -> None:
    assert kind.value_of(value) == expected


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (INT, "x", 'Cannot deserialize value of type `int` from String "x": not a valid `int` value'),
        (INTEGER, {}, "Cannot deserialize value of type `java.lang.Integer` from Object value"),
        (INT, True, "Cannot deserialize value of type `int` from Boolean value (token `JsonToken.VALUE_TRUE`)"),
        (INT, 2**31, "Numeric value (2147483648) out of range of int (-2147483648 - 2147483647)"),
        (LONG, -(2**63) - 1, "out of range of long (-9223372036854775808 - 9223372036854775807)"),
        (INT, 1e300, "Numeric value (1e+300) out of range of int"),
        (
            RETENTION,
            5,
            "no int/Int-argument constructor/factory method to deserialize from Number value (5)",
        ),
        (BOOL, "maybe", 'only "true"/"True"/"TRUE" or "false"/"False"/"FALSE" recognized'),
        (BOOLEAN, "maybe", 'only "true" or "false" recognized'),
        (BOOL, 1.5, "Cannot deserialize value of type `boolean` from Floating-point value"),
        (
            RETENTION,
            "x",
            "no String-argument constructor/factory method to deserialize from String value ('x')",
        ),
        (
            RETENTION,
            {"retentionSizeInMB": "x"},
            'common.policies.data.RetentionPolicies["retentionSizeInMB"])',
        ),
        (SET_OF_TYPES, "Shared", "from String value (token `JsonToken.VALUE_STRING`)"),
    ],
)
def test_a_value_that_jackson_does_not_read_is_refused(kind: Kind, value: Any, text: str) -> None:
    with pytest.raises(UnreadableBody) as raised:
        kind.value_of(value)
    assert text in raised.value.text


@given(st.sampled_from(ALL), VALUES)
def test_reading_a_value_twice_changes_nothing(kind: Kind, value: Any) -> None:
    try:
        once = kind.value_of(value)
    except UnreadableBody:
        return
    assert kind.value_of(once) == once


@given(st.dictionaries(st.sampled_from(sorted(OF_NEW_NAMESPACE)), VALUES, max_size=6))
def test_whatever_a_namespace_is_made_with_can_be_resolved(sent: dict[str, Any]) -> None:
    try:
        kept = {name: read_policy(name, value) for name, value in sent.items() if value is not None}
    except UnreadableBody:
        return
    policies = resolve(Config(), kept)
    assert isinstance(policies, Policies)
    assert all(isinstance(quota.limit_size, int) for quota in policies.backlog_quotas.values())
    assert isinstance(policies.subscribe_rate.subscribes, int)
    assert isinstance(auto_creation(Config(), kept).partitions, int)
