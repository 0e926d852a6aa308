"""Names of system topics."""

from __future__ import annotations

import pytest

from pulsarium.proto.topic_name import TopicName, change_events_of, is_change_events, is_system_topic


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("public/default/__change_events", True),
        ("public/default/__change_events-partition-1", True),
        ("public/default/__transaction_buffer_snapshot", True),
        ("public/default/t-sub__transaction_pending_ack", True),
        ("pulsar/system/transaction_coordinator_assign-partition-0", True),
        ("pulsar/system/__transaction_log_0", True),
        ("public/default/transaction_coordinator_assign", False),
        ("public/default/__transaction_log_0", False),
        ("public/default/t", False),
        ("public/default/__compaction", False),
        ("pulsar/system/t", False),
    ],
)
@pytest.mark.req("B-39")
def test_system_topics_are_known_by_name(name: str, expected: bool) -> None:
    assert is_system_topic(TopicName.parse(f"persistent://{name}")) is expected


def test_the_events_of_a_namespace() -> None:
    name = change_events_of("public/default")
    assert str(name) == "persistent://public/default/__change_events"
    assert is_change_events(name)
    assert not is_change_events(TopicName.parse("non-persistent://public/default/__change_events"))
