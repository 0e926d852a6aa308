"""Topics that brokers keep for themselves; lists leave them out unless they are asked for (SystemTopicNames)."""

from __future__ import annotations

from typing import Final

from pulsarium.proto.topic_name import TopicName

CHANGE_EVENTS: Final = "__change_events"  # policies of topics
_SNAPSHOTS: Final = "__transaction_buffer_snapshot"
_OF_NAMESPACES: Final = frozenset({CHANGE_EVENTS, _SNAPSHOTS, f"{_SNAPSHOTS}_segments", f"{_SNAPSHOTS}_indexes"})
_PENDING_ACKS: Final = "__transaction_pending_ack"  # behind the name of a topic
_SYSTEM: Final = "pulsar/system"
_COORDINATORS: Final = "transaction_coordinator_assign"
_COORDINATOR_LOG: Final = "__transaction_log_"


def is_system_topic(name: TopicName) -> bool:
    """Whether it is one of them, or a partition of one."""
    local = name.partitioned_name.local_name
    if local in _OF_NAMESPACES or local.endswith(_PENDING_ACKS):
        return True
    in_system = str(name.namespace_name) == _SYSTEM
    return in_system and (local == _COORDINATORS or local.startswith(_COORDINATOR_LOG))


def is_change_events(name: TopicName) -> bool:
    """Whether it is that topic of its namespace."""
    return name.is_persistent and name.local_name == CHANGE_EVENTS


def change_events_of(namespace: str) -> TopicName:
    """The topic that has the changes of a namespace's topic policies."""
    return TopicName.parse(f"persistent://{namespace}/{CHANGE_EVENTS}")
