"""Policy events, compared with the events that a real broker wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pulsarium.broker.model.policy.event import (
    EVENT_PROPERTIES,
    EVENT_SCHEMA,
    PolicyEvent,
    decode,
    encode,
    key_of,
    topic_of_key,
)
from pulsarium.proto.avro import AvroCodec
from pulsarium.proto.errors import AvroError
from pulsarium.proto.topic_name import TopicName
from pulsarium.rest.policies import BACKLOG_QUOTAS, POLICIES, Policy

RECORDED = json.loads(Path(__file__).with_name("recorded_events.json").read_text())
EVENTS: list[dict[str, Any]] = RECORDED["events"]
CLUSTER = "standalone"
TOPIC = TopicName.parse("persistent://t/n/a")
ALL: dict[str, Any] = {  # the policies of the 17th event
    "backlog_quota_map": {
        "destination_storage": {"limit": 1000, "limitSize": 1000, "limitTime": -1, "policy": "producer_exception"}
    },
    "delayed_delivery_policies": {"active": True, "tickTime": 500, "maxDeliveryDelayInMillis": 0},
    "inactive_topic_policies": {
        "deleteWhileInactive": True,
        "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
        "maxInactiveDurationSeconds": 9,
    },
    "max_producers_per_topic": 5,
    "persistence": {
        "bookkeeperAckQuorum": 1,
        "bookkeeperEnsemble": 1,
        "bookkeeperWriteQuorum": 1,
        "managedLedgerMaxMarkDeleteRate": 1.5,
    },
    "retention_policies": {"retentionSizeInMB": 20, "retentionTimeInMinutes": 10},
    "subscription_types_enabled": ["Shared", "Failover"],
    "topicDispatchRate": {
        CLUSTER: {
            "dispatchThrottlingRateInByte": 2,
            "dispatchThrottlingRateInMsg": 1,
            "ratePeriodInSecond": 3,
            "relativeToPublishRate": False,
        }
    },
    "publishMaxMessageRate": {CLUSTER: {"publishThrottlingRateInByte": 2, "publishThrottlingRateInMsg": 1}},
    "clusterSubscribeRate": {CLUSTER: {"ratePeriodInSecond": 2, "subscribeThrottlingRatePerConsumer": 1}},
}


def recorded(number: int) -> bytes:
    return bytes.fromhex(EVENTS[number]["payload"])


@pytest.mark.req("B-39")
def test_the_schema_is_the_recorded_one() -> None:
    assert EVENT_SCHEMA.decode() == RECORDED["schema"]["data"]
    assert RECORDED["schema"]["properties"] == EVENT_PROPERTIES


@pytest.mark.req("B-39")
def test_each_recorded_event_is_written_the_same() -> None:
    for number in [each for each, event in enumerate(EVENTS) if "payload" in event]:
        event = decode(recorded(number), CLUSTER)
        assert event is not None, number
        assert encode(event, CLUSTER) == recorded(number), number
        assert key_of(event.topic, is_global=event.is_global) == EVENTS[number]["key"], number


def test_a_recorded_event_says_which_policies_it_sets() -> None:
    assert decode(recorded(0), CLUSTER) == PolicyEvent(TOPIC, "UPDATE", False, {"message_ttl_in_seconds": 60})
    assert decode(recorded(1), CLUSTER) == PolicyEvent(TOPIC, "UPDATE", True, {"message_ttl_in_seconds": 70})
    assert decode(recorded(16), CLUSTER) == PolicyEvent(TOPIC, "UPDATE", False, ALL)


@pytest.mark.parametrize("row", [row for row in POLICIES if row.event], ids=lambda row: row.kept)
def test_an_event_has_each_policy_of_a_topic(row: Policy[Any]) -> None:
    value: Any = {int: 7, bool: True, str: "FULL", list[str]: ["Shared"]}.get(row.json, {})
    kept = {row.kept: {CLUSTER: value} if row.per_cluster else value}
    event = decode(encode(PolicyEvent(TOPIC, "UPDATE", False, kept), CLUSTER), CLUSTER)
    assert event is not None
    assert event.policies.keys() == (kept.keys() if row != BACKLOG_QUOTAS else set())  # an empty map is no quota


def test_the_key_of_an_event_names_its_topic() -> None:
    assert topic_of_key(EVENTS[17]["key"]) == (TOPIC, False)
    assert topic_of_key(EVENTS[18]["key"]) == (TOPIC, True)


def test_another_version_has_other_fields() -> None:
    schema = json.loads(EVENT_SCHEMA)
    policies = schema["fields"][3]["type"][1]["fields"][2]["type"][1]
    policies["fields"] = [field for field in policies["fields"] if "max" in field["name"] or "TTL" in field["name"]]
    policies["fields"].append({"name": "aNewOne", "type": ["null", "string"], "default": None})
    codec = AvroCodec(schema)
    about = {"domain": "persistent", "tenant": "t", "namespace": "n", "topic": "a"}
    value = {
        "actionType": "UPDATE",
        "eventType": "TOPIC_POLICY",
        "topicPoliciesEvent": {**about, "policies": {"maxProducerPerTopic": 3, "aNewOne": "x"}},
    }
    event = decode(codec.encode(value), CLUSTER, codec)
    assert event == PolicyEvent(TOPIC, "UPDATE", False, {"max_producers_per_topic": 3})


def test_values_of_another_type_are_refused() -> None:
    schema = json.loads(
        EVENT_SCHEMA.replace(
            b'"name":"maxMessageSize","type":["null","int"]', b'"name":"maxMessageSize","type":["null","string"]'
        )
    )
    codec = AvroCodec(schema)
    value = codec.decode(recorded(0))
    value["topicPoliciesEvent"]["policies"]["maxMessageSize"] = "many"
    with pytest.raises(AvroError):
        decode(codec.encode(value), CLUSTER, codec)


def test_events_of_other_kinds_are_passed_over() -> None:
    codec = AvroCodec(json.loads(EVENT_SCHEMA))
    assert decode(codec.encode({"actionType": "UPDATE", "eventType": "TRANSACTION_BUFFER_SNAPSHOT"}), CLUSTER) is None
    value = codec.decode(recorded(0))
    value["topicPoliciesEvent"]["topic"] = None
    value["topicPoliciesEvent"]["tenant"] = "no/tenant"
    with pytest.raises(AvroError, match="has no valid topic name"):
        decode(codec.encode(value), CLUSTER)
