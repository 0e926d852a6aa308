"""Behaviour profiles: what `--profile` switches, each switch by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from pulsarium.broker.config.meaning import ConfigError
from pulsarium.broker.config.version import VERSION

# These clients close their connection on a REACHED_END_OF_TOPIC (requirements.md, "Open choices"; protocol.md W-10).
CLOSED_BY_END_OF_TOPIC: Final = ("Pulsar-CPP", "Pulsar Go")

TOPIC_WATCHERS: Final = "supports_topic_watchers"
PARTITIONS_UNMADE: Final = "supports_get_partitioned_metadata_without_auto_creation"
REPLICATION_ONCE: Final = "supports_repl_dedup_by_lid_and_eid"
WATCHERS_RECONCILE: Final = "supports_topic_watcher_reconcile"

# Commands that later releases brought, by their names in BaseCommand.Type
BROUGHT_BY_2_10: Final = frozenset({"TC_CLIENT_CONNECT_REQUEST"})
BROUGHT_BY_2_11: Final = frozenset({"WATCH_TOPIC_LIST", "WATCH_TOPIC_LIST_CLOSE"})
BROUGHT_BY_5_0: Final = frozenset(
    {
        *("SCALABLE_TOPIC_LOOKUP", "SCALABLE_TOPIC_CLOSE", "SCALABLE_TOPIC_SUBSCRIBE"),
        *("WATCH_SCALABLE_TOPICS", "WATCH_SCALABLE_TOPICS_CLOSE"),
        *("WATCH_TC_ASSIGNMENTS", "WATCH_TC_ASSIGNMENTS_CLOSE"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How the broker behaves where the PIPs, good sense and the released broker part; as in `pip`, if not said.

    defaults: of broker.conf keys that are not set, where they are not Pulsar's own.
    max_protocol_version: the highest protocol version that CONNECTED announces, and that the broker speaks.
    flags: the FeatureFlags that CONNECTED sets, where the configuration lets it.
    unknown: names of commands that are not known: they close the connection (W-06), unless there is an
        unknown_error, a ServerError's name, which answers them.
    server_version: CONNECTED.server_version. Clients refuse a broker without one; none of the official ones reads it.
    end_of_topic_to_all_clients: send REACHED_END_OF_TOPIC also to clients that close their connection on it.
    own_faults_close: a command on which 4.2.4 runs into an exception of its own closes the connection, where otherwise
        an error is answered: CONSUMER_STATS for an unknown consumer, SEND in a transaction to a non-persistent topic.
    skip_by_message_ids: PIP-423's skipByMessageIds is there; no released broker has it (S423-72).
    missing_index_is_zero: getMessageIdByIndex without an index means index 0, not 404 (X-15).
    index_on_non_persistent: the status of getMessageIdByIndex on a non-persistent topic (X-12).
    index_as_released: getMessageIdByIndex finds markers, and nothing in the first batch below its last index (X-31);
        its body has batchIndex and batchSize too (S415-03).
    index_per_transactional_entry: an entry of a transaction takes one index, however many messages it has (X-32).
    transaction_by_send: an entry is of the transaction that its SEND names, also where its metadata does not say so, as
        that of the Go client; a released broker shows such an entry after an abort too.
    resource_groups_limit_dispatch: the dispatch rates of a resource group hold, which 4.2.4 keeps and does not enforce.
    acknowledged_stay_delayed: a delayed message that was acknowledged or skipped counts as delayed until its time, and
        one whose consumers left until the next one joins, so that msgBacklogNoDelayed may be negative.
    delay_alarms_may_be_early: where a policy's tick of delayed delivery is shorter than that of broker.conf, an alarm
        may meet nothing that is due; its message waits until something else lets the subscription dispatch.
    chunks_stall: on Shared a chunk that cannot go to the consumer of its first one stops what comes behind the entries
        it was read with, and a consumer that left keeps the chunks of the messages it has the first chunk of.
    unload_forgets: acknowledgements that 4.2.4 does not read back when it loads a topic are forgotten: those of parts
        of batches, unless the cursor has too many ranges for the metadata store, and ranges past the number kept.
    chunks_are_duplicates: when a topic is loaded, a chunk counts as its whole message for deduplication.
    abandoned_consumers_refuse: SUBSCRIBE for the id of a consumer that was closed before it was there is refused.
    refused_producers_stay_exclusive: a producer that claimed exclusive access stays its owner where the topic refuses
        it then (it is terminated, or being unloaded), and those that wait behind that one hear nothing.
    own_faults_are_shown: 500, where 4.2.4 runs into an exception of its own for a call (a peek at position 0, an entry
        beyond the last, a body that is missing), where otherwise a 4xx says what was wrong; UnknownError for a new
        subscription at the earliest entry of a topic that was terminated without any, and is loaded again.
    forbids_as_pips_say: who may not gets 403 of skipByMessageIds and getMessageIdByIndex (S423-23, S415-15), where
        4.2.4 answers 401 as of everything about topics.
    leaves_schemas_open: every role may read and add schemas of every topic by binary commands, and read about
        transactions of every topic over REST, as 4.2.4 lets it.
    """

    name: str
    defaults: tuple[tuple[str, object], ...] = ()
    max_protocol_version: int
    flags: frozenset[str]
    unknown: frozenset[str] = frozenset()
    unknown_error: str | None = None
    server_version: str
    end_of_topic_to_all_clients: bool = False
    own_faults_close: bool = False
    forbids_as_pips_say: bool = True
    leaves_schemas_open: bool = False
    skip_by_message_ids: bool = True
    missing_index_is_zero: bool = False
    index_on_non_persistent: int = 406
    index_as_released: bool = False
    index_per_transactional_entry: bool = False
    transaction_by_send: bool = True
    acknowledged_stay_delayed: bool = False
    delay_alarms_may_be_early: bool = False
    own_faults_are_shown: bool = False
    resource_groups_limit_dispatch: bool = True
    chunks_stall: bool = False
    unload_forgets: bool = False
    chunks_are_duplicates: bool = False
    abandoned_consumers_refuse: bool = False
    refused_producers_stay_exclusive: bool = False

    def tells_end_of_topic(self, client_version: str) -> bool:
        """Whether a client that calls itself so (CONNECT.client_version) is sent REACHED_END_OF_TOPIC."""
        return self.end_of_topic_to_all_clients or not client_version.startswith(CLOSED_BY_END_OF_TOPIC)


PIP: Final = Profile(
    name="pip",
    # Where nobody uses them they cost no time; a broker without them refuses whoever tries one.
    defaults=(("transactionCoordinatorEnabled", True),),
    max_protocol_version=22,
    flags=frozenset({TOPIC_WATCHERS, PARTITIONS_UNMADE, REPLICATION_ONCE, WATCHERS_RECONCILE}),
    server_version=f"Pulsarium {VERSION}",
)

PULSAR_4_2: Final = Profile(
    name="pulsar-4.2",
    max_protocol_version=21,
    flags=PIP.flags,
    unknown=BROUGHT_BY_5_0,
    server_version="Pulsar Server4.2.4",
    end_of_topic_to_all_clients=True,
    own_faults_close=True,
    forbids_as_pips_say=False,
    leaves_schemas_open=True,
    skip_by_message_ids=False,
    missing_index_is_zero=True,
    index_on_non_persistent=405,
    index_as_released=True,
    index_per_transactional_entry=True,
    transaction_by_send=False,
    acknowledged_stay_delayed=True,
    delay_alarms_may_be_early=True,
    own_faults_are_shown=True,
    resource_groups_limit_dispatch=False,
    chunks_stall=True,
    unload_forgets=True,
    chunks_are_duplicates=True,
    abandoned_consumers_refuse=True,
    refused_producers_stay_exclusive=True,
)


def _older(
    release: str, patch: str, max_protocol_version: int, flags: set[str], unknown: frozenset[str] = frozenset()
) -> Profile:
    """A release as it shows itself to clients. Only that is as it was; what the broker does is 4.2's."""
    return replace(
        PULSAR_4_2,
        name=f"pulsar-{release}",
        server_version=f"Pulsar Server{release}.{patch}",
        max_protocol_version=max_protocol_version,
        flags=frozenset(flags),
        unknown=PULSAR_4_2.unknown | unknown,
    )


# As the protocol library of each of these releases has it; those between are like the one before.
OLDER: Final = (
    _older("4.1", "0", 21, {TOPIC_WATCHERS, PARTITIONS_UNMADE, REPLICATION_ONCE}),
    _older("4.0", "5", 21, {TOPIC_WATCHERS, PARTITIONS_UNMADE, REPLICATION_ONCE}),
    _older("3.0", "7", 21, {TOPIC_WATCHERS, PARTITIONS_UNMADE}),
    _older("2.11", "4", 19, {TOPIC_WATCHERS}),
    _older("2.10", "4", 19, set(), BROUGHT_BY_2_11),
    _older("2.8", "4", 17, set(), BROUGHT_BY_2_10 | BROUGHT_BY_2_11),
)

PROFILES: Final[Mapping[str, Profile]] = MappingProxyType({each.name: each for each in (PIP, PULSAR_4_2, *OLDER)})


def profile_of(name: str, max_protocol_version: int | None = None) -> Profile:
    """The profile of a name, for clients of no newer protocol than that. Raises ConfigError."""
    if name not in PROFILES:
        raise ConfigError("profile", "", f"{name!r} is none of {', '.join(PROFILES)}")
    profile = PROFILES[name]
    if max_protocol_version is None:
        return profile
    highest = profile.max_protocol_version
    if not 0 <= max_protocol_version <= highest:
        raise ConfigError("max_protocol_version", "", f"{max_protocol_version} is not of 0 to {highest} ({name})")
    return replace(profile, max_protocol_version=max_protocol_version)
