"""Values of policies, as JSON of a namespace has them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.config import Config
from pulsarium.broker.jackson import kinds
from pulsarium.broker.jackson.errors import JsonError
from pulsarium.broker.jackson.kinds import JavaType
from pulsarium.broker.model.namespace import values as policy_values
from pulsarium.broker.model.namespace.values import KINDS as OF_TYPE
from pulsarium.broker.model.namespace.values import OF_NEW_NAMESPACE, QUOTA, SET_OF_TYPES, read_policy
from pulsarium.broker.model.policy.policies import Policies, auto_creation, resolve
from pulsarium.rest.policies import AutoTopicCreation, RetentionPolicies

RETENTION, AUTO_TOPIC_CREATION = OF_TYPE[RetentionPolicies], OF_TYPE[AutoTopicCreation]
ALL = [
    kind
    for kind in (*vars(kinds).values(), *vars(policy_values).values(), *OF_TYPE.values())
    if isinstance(kind, JavaType)
]
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
def test_a_value_is_read_as_jackson_reads_it(kind: JavaType, value: Any, expected: Any) -> None:
    assert kind.value_of(value) == expected


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (
            RETENTION,
            {"retentionSizeInMB": "x"},
            'common.policies.data.RetentionPolicies["retentionSizeInMB"])',
        ),
        (SET_OF_TYPES, "Shared", "from String value (token `JsonToken.VALUE_STRING`)"),
    ],
)
def test_a_value_that_jackson_does_not_read_is_refused(kind: JavaType, value: Any, text: str) -> None:
    with pytest.raises(JsonError) as raised:
        kind.value_of(value)
    assert text in str(raised.value)


@given(st.sampled_from(ALL), VALUES)
def test_reading_a_value_twice_changes_nothing(kind: JavaType, value: Any) -> None:
    try:
        once = kind.value_of(value)
    except JsonError:
        return
    assert kind.value_of(once) == once


@given(st.dictionaries(st.sampled_from(sorted(OF_NEW_NAMESPACE)), VALUES, max_size=6))
def test_whatever_a_namespace_is_made_with_can_be_resolved(sent: dict[str, Any]) -> None:
    try:
        kept = {name: read_policy(name, value) for name, value in sent.items() if value is not None}
    except JsonError:
        return
    policies = resolve(Config(), kept)
    assert isinstance(policies, Policies)
    assert all(isinstance(quota.limit_size, int) for quota in policies.backlog_quotas.values())
    assert isinstance(policies.subscribe_rate.subscribes, int)
    assert isinstance(auto_creation(Config(), kept).partitions, int)
