"""Names that Pulsar treats specially: of system topics, dead letter topics, subscriptions and producers."""

from __future__ import annotations

import re
from typing import Final

from pulsarium.proto.topic_name import PERSISTENT, TopicName

# ends of the names of topics
DEAD_LETTERS: Final = "-DLQ"
RETRY_LETTERS: Final = "-RETRY"
PENDING_ACKS: Final = "__transaction_pending_ack"

# whole names of topics in any namespace
CHANGE_EVENTS: Final = "__change_events"  # topic policies of the namespace
_SNAPSHOTS: Final = "__transaction_buffer_snapshot"
SNAPSHOTS: Final = (_SNAPSHOTS, f"{_SNAPSHOTS}_segments", f"{_SNAPSHOTS}_indexes")
_OF_NAMESPACES: Final = frozenset({CHANGE_EVENTS, *SNAPSHOTS})

# beginnings of the names of persistent topics in pulsar/system
COORDINATORS: Final = "transaction_coordinator_assign"
COORDINATOR_LOG: Final = "__transaction_log_"

# namespaces of the brokers themselves
SYSTEM: Final = "pulsar/system"
_OF_BROKERS: Final = re.compile(r"(pulsar|sla-monitor)/[^:]+:[0-9]+")
_HEARTBEAT: Final = re.compile(r"pulsar/[^:]+:[0-9]+")

# subscriptions and cursors
COMPACTION_CURSOR: Final = "__compaction"
DEDUPLICATION_CURSOR: Final = "pulsar.dedup"
SYSTEM_READERS: Final = "__system_reader"  # subscriptionRolePrefix of the brokers' own readers
REPLICATORS: Final = "pulsar.repl"  # replicatorPrefix, of cursors and producers of replicators
INTERNAL_PROPERTIES: Final = "#pulsar.internal."  # of subscriptions


def is_dead_letter(name: TopicName) -> bool:
    """Return whether the topic is for dead letters or letters to retry, or a partition of such a topic."""
    return name.partitioned_name.local_name.endswith((DEAD_LETTERS, RETRY_LETTERS))


def is_transaction_internal(name: TopicName) -> bool:
    """Return whether only the broker's transactions may have the topic. Partitions of coordinators are included."""
    local = name.local_name
    if local.endswith(PENDING_ACKS):
        return True
    in_system = name.domain == PERSISTENT and str(name.namespace_name) == SYSTEM
    return in_system and local.startswith((COORDINATORS, COORDINATOR_LOG))


def has_system_name(name: TopicName) -> bool:
    """Return whether the name is that of a system topic, or of a partition of one, in any namespace."""
    whole = name.partitioned_name
    return whole.local_name in _OF_NAMESPACES or is_transaction_internal(whole)


def is_system_topic(name: TopicName) -> bool:
    """Return whether the topic is a system topic: by its name, or as any topic in a namespace of brokers."""
    return has_system_name(name) or is_system_namespace(str(name.namespace_name))


def is_system_namespace(namespace: str) -> bool:
    """Return whether the namespace belongs to the brokers: pulsar/system, or one that is named after a broker."""
    return namespace == SYSTEM or _OF_BROKERS.fullmatch(namespace) is not None


def never_migrates(name: TopicName) -> bool:
    """Return whether the topic stays when its cluster migrates: topics of events, and of health checks."""
    is_heartbeat = _HEARTBEAT.fullmatch(str(name.namespace_name)) is not None
    return is_heartbeat or name.partitioned_name.local_name in _OF_NAMESPACES


def is_remote(producer: str) -> bool:
    """Return whether a producer is that of a replicator in another cluster, which limits of producers do not count."""
    return producer.startswith(f"{REPLICATORS}.")


def is_change_events(name: TopicName) -> bool:
    """Return whether the topic is `__change_events`, which has the topic policies of its namespace."""
    return name.is_persistent and name.local_name == CHANGE_EVENTS


def change_events_of(namespace: str) -> TopicName:
    """Return the topic `__change_events` of a namespace."""
    return TopicName.parse(f"persistent://{namespace}/{CHANGE_EVENTS}")
