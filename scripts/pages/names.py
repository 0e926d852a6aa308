"""Generate docs/names.md: the rules that depend on names, each with its test."""

from __future__ import annotations

from typing import Final, NamedTuple

from pulsarium.proto.special_names import (
    CHANGE_EVENTS,
    COMPACTION_CURSOR,
    COORDINATOR_LOG,
    COORDINATORS,
    DEAD_LETTERS,
    DEDUPLICATION_CURSOR,
    INTERNAL_PROPERTIES,
    PENDING_ACKS,
    REPLICATORS,
    RETRY_LETTERS,
    SNAPSHOTS,
    SYSTEM,
    SYSTEM_READERS,
)
from pulsarium.proto.topic_name import PARTITION


class Rule(NamedTuple):
    """A rule about names of one form, and the test that shows it: a file below tests/ and a function."""

    form: str
    rule: str
    test: str


_PARTITION = f"`NAME{PARTITION}N`"
_KEYWORD = f"`{PARTITION}` anywhere"
_LETTERS = f"`...{DEAD_LETTERS}`, `...{RETRY_LETTERS}`"
_SNAPSHOTS = ", ".join(f"`{name}`" for name in SNAPSHOTS)
_INTERNAL = f"`...{PENDING_ACKS}`; in {SYSTEM} `{COORDINATORS}...`, `{COORDINATOR_LOG}...`"
_NAMED = f"`{CHANGE_EVENTS}`, {_SNAPSHOTS}, and topics of transactions"
_BROKERS = f"any topic in `{SYSTEM}`, `pulsar/HOST:PORT`, `sla-monitor/HOST:PORT`"
_SYSTEM = "system topics: both kinds"
_REPLICATOR = f"`{REPLICATORS}...`"
_TOPICS = "broker/web/admin/topic"
_SYSTEM_TOPICS = "broker/model/topic/test_system_topics.py"

SECTIONS: Final[dict[str, tuple[Rule, ...]]] = {
    "Topics": (
        Rule(
            "`a/b`",
            "The local name has no slash. With a slash, the name is one of Pulsar 1, and is refused.",
            "proto/test_topic_name.py::test_invalid_names_are_refused_with_pulsar_s_text",
        ),
        Rule(
            _PARTITION,
            "The topic is partition N of NAME. N has no sign and no leading zeros, and the last keyword counts.",
            "proto/test_topic_name.py::test_a_partition_is_known_by_its_index",
        ),
        Rule(
            _PARTITION,
            "Clients do not create the topic where NAME has no partitions, or fewer.",
            "broker/commands/test_producer.py::test_the_parent_of_partitions_takes_no_producer",
        ),
        Rule(
            _PARTITION,
            "PUT over REST is refused too (412). Here the first keyword counts, and N may be any 64-bit number.",
            f"{_TOPICS}/test_topics.py::test_a_number_behind_the_keyword_needs_a_partitioned_topic",
        ),
        Rule(
            _PARTITION,
            "The topic has the policies of NAME, and none of its own (412).",
            "broker/web/admin/policies/test_topics.py::test_no_policy_of_a_partition_or_of_nothing_is_deleted",
        ),
        Rule(
            _PARTITION,
            "The topic has the schema of NAME.",
            f"{_TOPICS}/test_schemas.py::test_a_schema_is_that_of_all_partitions_and_its_version_a_number",
        ),
        Rule(
            _PARTITION,
            "POST and DELETE .../partitions are refused (412).",
            f"{_TOPICS}/test_partitions.py::test_a_partition_is_neither_enlarged_nor_completed",
        ),
        Rule(
            _KEYWORD,
            "PUT .../partitions of a persistent topic and createMissedPartitions are refused (412). Clients may create "
            "such a partitioned topic, which grows and is deleted as any other.",
            f"{_TOPICS}/test_partitions.py::test_a_partitioned_topic_with_the_keyword_in_its_name_grows_and_is_deleted",
        ),
        Rule(
            _KEYWORD,
            "PUT .../partitions of a non-persistent topic is accepted.",
            f"{_TOPICS}/test_partitions.py::test_a_non_persistent_partitioned_topic_may_have_any_name",
        ),
        Rule(
            _LETTERS,
            "Clients create the topic without partitions, whatever allowAutoTopicCreationType and the namespace say.",
            f"{_TOPICS}/test_partitions.py::test_dead_letters_are_created_without_partitions",
        ),
    ),
    "System topics": (
        Rule(
            f"`{CHANGE_EVENTS}`",
            "The topic has the topic policies of its namespace.",
            "proto/test_special_names.py::test_the_events_of_a_namespace",
        ),
        Rule(
            f"`{CHANGE_EVENTS}`",
            "Each subscription type is allowed.",
            f"{_SYSTEM_TOPICS}::test_the_topic_of_policies_takes_each_subscription_type",
        ),
        Rule(
            _INTERNAL,
            "Topics of transactions. Clients cannot create persistent ones.",
            f"{_SYSTEM_TOPICS}::test_clients_create_no_topics_of_transactions",
        ),
        Rule(
            _INTERNAL,
            "PUT over REST is refused (400), and for pending acknowledgements also of non-persistent topics.",
            f"{_TOPICS}/test_topics.py::test_topics_of_pending_acknowledgements_are_not_created",
        ),
        Rule(
            _NAMED,
            "The names of system topics in any namespace, and of their partitions.",
            "proto/test_special_names.py::test_system_topics_are_known_by_name",
        ),
        Rule(
            _NAMED,
            "Patterns of clients do not match the topic.",
            f"{_SYSTEM_TOPICS}::test_clients_find_topics_of_brokers_by_pattern_but_not_those_with_system_names",
        ),
        Rule(
            _NAMED,
            "The topic cannot be terminated (405).",
            f"{_TOPICS}/test_topics.py::test_topics_with_system_names_are_not_terminated",
        ),
        Rule(
            _NAMED,
            "encryptionRequireOnProducer does not count.",
            f"{_SYSTEM_TOPICS}::test_producers_of_topics_with_system_names_need_no_encryption",
        ),
        Rule(
            _NAMED,
            "Only a policy of the topic itself retains messages.",
            f"{_SYSTEM_TOPICS}::test_only_a_policy_of_its_own_retains_messages_of_a_topic_with_a_system_name",
        ),
        Rule(
            _BROKERS,
            "System topics too.",
            "proto/test_special_names.py::test_each_topic_in_a_namespace_of_brokers_is_a_system_topic",
        ),
        Rule(
            _SYSTEM,
            "Lists over REST show the topic only with includeSystemTopic.",
            f"{_TOPICS}/test_topics.py::test_topics_in_namespaces_of_brokers_are_listed_on_request",
        ),
        Rule(
            _SYSTEM,
            "Clients create the topic even where allowAutoTopicCreation is false. Needs systemTopicEnabled.",
            f"{_SYSTEM_TOPICS}::test_system_topics_are_created_where_clients_create_no_topics",
        ),
        Rule(
            _SYSTEM,
            "maxTopicsPerNamespace does not count the topic.",
            f"{_SYSTEM_TOPICS}::test_system_topics_do_not_count_as_topics_of_a_namespace",
        ),
        Rule(
            _SYSTEM,
            "Limits of producers, consumers and subscriptions do not count.",
            f"{_SYSTEM_TOPICS}::test_limits_of_clients_do_not_count_for_system_topics",
        ),
        Rule(
            _SYSTEM,
            "Messages do not expire, no quota limits the backlog, and the topic is never inactive. "
            "The topic is compacted.",
            f"{_SYSTEM_TOPICS}::test_nothing_expires_system_topics_or_their_messages",
        ),
        Rule(
            _SYSTEM,
            "The namespace's rates of publishing and dispatch and its deduplication do not apply.",
            f"{_SYSTEM_TOPICS}::test_rates_and_deduplication_of_the_namespace_are_not_for_system_topics",
        ),
        Rule(
            _SYSTEM,
            "systemTopicSchemaCompatibilityStrategy takes the place of other strategies, and new schemas are accepted.",
            "broker/commands/test_schema.py::test_the_strategy_of_system_topics",
        ),
        Rule(
            _SYSTEM,
            "A namespace with no other topics is empty, and is deleted without force.",
            f"{_SYSTEM_TOPICS}::test_a_namespace_with_only_system_topics_is_deleted",
        ),
        Rule(
            _SYSTEM,
            "clearBacklog and unsubscribe of a namespace leave the topic out.",
            f"{_SYSTEM_TOPICS}::test_subscriptions_of_system_topics_stay_when_the_namespace_unsubscribes",
        ),
        Rule(
            _SYSTEM,
            "systemTopicBytesInCounter of the stats counts published bytes.",
            f"{_SYSTEM_TOPICS}::test_bytes_published_to_system_topics_are_counted_apart",
        ),
        Rule(
            f"`{CHANGE_EVENTS}`, {_SNAPSHOTS}; topics in `pulsar/HOST:PORT`",
            "The topic stays when its cluster migrates.",
            "proto/test_special_names.py::test_events_and_heartbeats_never_migrate",
        ),
    ),
    "Subscriptions and producers": (
        Rule(
            _REPLICATOR,
            "SUBSCRIBE is refused: the names belong to cursors of the broker.",
            "broker/model/topic/test_joining.py::test_the_names_of_replicators_are_reserved",
        ),
        Rule(
            f"`{DEDUPLICATION_CURSOR}`",
            "SUBSCRIBE of a persistent topic is refused: the broker has a cursor of this name.",
            "broker/model/topic/test_joining.py::test_the_name_of_the_cursor_of_deduplication_is_reserved",
        ),
        Rule(
            _REPLICATOR,
            "REST creates and deletes such a subscription, and does not skip, expire or peek at its messages (404).",
            f"{_TOPICS}/test_backlog.py::test_a_subscription_with_the_name_of_a_replicator_is_not_moved",
        ),
        Rule(
            _REPLICATOR,
            "unsubscribe of a namespace is refused (412).",
            "broker/web/admin/namespace/test_backlog.py::"
            "test_backlogs_of_absent_namespaces_and_of_replicators_are_not_cleared",
        ),
        Rule(
            f"`{COMPACTION_CURSOR}`",
            "The cursor of compaction. See [the differences](differences.md).",
            "broker/model/compaction/test_compaction.py::test_the_name_of_the_compaction_cursor_is_reserved",
        ),
        Rule(
            f"`{SYSTEM_READERS}...`",
            "The readers of brokers: bytesOutInternalCounter of the stats counts their bytes.",
            f"{_SYSTEM_TOPICS}::test_bytes_to_the_readers_of_brokers_are_counted_apart",
        ),
        Rule(
            f"`{INTERNAL_PROPERTIES}...`",
            "A property of a subscription with such a name is refused.",
            f"{_TOPICS}/test_subscriptions.py::test_a_property_with_an_internal_name_is_refused",
        ),
        Rule(
            f"producer `{REPLICATORS}.CLUSTER`",
            "Limits of producers do not count a replicator.",
            "broker/commands/test_producer.py::test_producers_of_replicators_are_not_counted",
        ),
    ),
    "Tenants and namespaces": (
        Rule(
            "letters, digits and `_ - = : .`",
            "Tenants and namespaces have no other characters.",
            "proto/test_topic_name.py::test_an_invalid_namespace_is_refused_with_pulsar_s_text",
        ),
    ),
}


def names_page() -> str:
    """Return the text of docs/names.md."""
    lines = [
        "# Names",
        "",
        "The rules of Pulsar 4.2 that depend on names, with the test that shows each. Some names only look special:",
        "`reader-...` and `multiTopicsReader-...` of clients' readers, `__pending_ack_state`, and topics as `__other`.",
        "Generated from `proto/special_names.py` and `scripts/pages/names.py`; do not edit.",
    ]
    for title, rules in SECTIONS.items():
        lines += ["", f"## {title}", "", "| name | rule | test |", "|---|---|---|"]
        lines += [f"| {each.form} | {each.rule} | `{each.test.rpartition('::')[2]}` |" for each in rules]
    return "\n".join([*lines, ""])
