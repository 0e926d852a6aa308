"""Names that Pulsar treats specially."""

from __future__ import annotations

import pytest

from pulsarium.proto.special_names import (
    change_events_of,
    has_system_name,
    is_change_events,
    is_dead_letter,
    is_system_topic,
    is_transaction_internal,
    never_migrates,
)
from pulsarium.proto.topic_name import TopicName


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("public/default/__change_events", True),
        ("public/default/__change_events-partition-1", True),
        ("public/default/__transaction_buffer_snapshot", True),
        ("public/default/t-sub__transaction_pending_ack", True),
        ("pulsar/system/transaction_coordinator_assign-partition-0", True),
        ("pulsar/system/transaction_coordinator_assign_more", True),
        ("pulsar/system/__transaction_log_0", True),
        ("public/default/__transaction_buffer_snapshot_more", False),
        ("public/default/more__change_events", False),
        ("public/default/transaction_coordinator_assign", False),
        ("public/default/__transaction_log_0", False),
        ("public/default/t", False),
        ("public/default/__compaction", False),
        ("pulsar/system/t", False),
    ],
)
@pytest.mark.req("B-39")
def test_system_topics_are_known_by_name(name: str, expected: bool) -> None:
    assert has_system_name(TopicName.parse(f"persistent://{name}")) is expected


def test_the_events_of_a_namespace() -> None:
    name = change_events_of("public/default")
    assert str(name) == "persistent://public/default/__change_events"
    assert is_change_events(name)
    assert not is_change_events(TopicName.parse("non-persistent://public/default/__change_events"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("persistent://pulsar/system/t", True),
        ("non-persistent://pulsar/system/t", True),
        ("persistent://pulsar/broker-1:8080/t", True),
        ("persistent://sla-monitor/broker-1:8080/t", True),
        ("persistent://sla-monitor/broker-1:8080x/t", False),
        ("persistent://sla-monitor/broker-1/t", False),
        ("persistent://pulsar/systems/t", False),
        ("persistent://public/system/t", False),
    ],
)
def test_each_topic_in_a_namespace_of_brokers_is_a_system_topic(name: str, expected: bool) -> None:
    assert is_system_topic(TopicName.parse(name)) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("t-sub-DLQ", True),
        ("t-sub-RETRY", True),
        ("-DLQ", True),
        ("t-DLQ-partition-3", True),
        ("t-dlq", False),
        ("t-DLQ-more", False),
        ("t-DLQ-partition-03", False),
        ("DLQ", False),
    ],
)
def test_dead_letters_are_known_by_the_end_of_a_name(name: str, expected: bool) -> None:
    assert is_dead_letter(TopicName.parse(name)) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("persistent://public/default/t-s__transaction_pending_ack", True),
        ("non-persistent://public/default/t-s__transaction_pending_ack", True),
        ("persistent://public/default/t-s__transaction_pending_ack-partition-0", False),
        ("persistent://pulsar/system/transaction_coordinator_assign-partition-0", True),
        ("persistent://pulsar/system/__transaction_log_9", True),
        ("non-persistent://pulsar/system/__transaction_log_9", False),
        ("persistent://public/default/__transaction_buffer_snapshot", False),
    ],
)
def test_topics_of_transactions_are_internal(name: str, expected: bool) -> None:
    assert is_transaction_internal(TopicName.parse(name)) is expected


def test_events_and_heartbeats_never_migrate() -> None:
    assert never_migrates(TopicName.parse("__change_events"))
    assert never_migrates(TopicName.parse("persistent://pulsar/broker-1:8080/healthcheck"))
    assert not never_migrates(TopicName.parse("persistent://pulsar/system/t"))
    assert not never_migrates(TopicName.parse("persistent://sla-monitor/broker-1:8080/t"))
