"""Behavior profiles: the differences that `--profile` switches, each by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from pulsarium.broker.config.meaning import ConfigError
from pulsarium.broker.config.proposals import BACKLOG_AGE, PROPOSALS, proposals_of
from pulsarium.broker.config.version import VERSION
from pulsarium.proto.drafts import DRAFT_COMMANDS

# These clients close their connection on REACHED_END_OF_TOPIC.
CLOSED_BY_END_OF_TOPIC: Final = ("Pulsar-CPP", "Pulsar Go")

TOPIC_WATCHERS: Final = "supports_topic_watchers"
PARTITIONS_UNMADE: Final = "supports_get_partitioned_metadata_without_auto_creation"
REPLICATION_ONCE: Final = "supports_repl_dedup_by_lid_and_eid"
WATCHERS_RECONCILE: Final = "supports_topic_watcher_reconcile"
SCALABLE_TOPICS: Final = "supports_scalable_topics"
COORDINATOR_WATCHES: Final = "supports_tc_metadata_discovery"

FLAGS_OF_4_2: Final = frozenset({TOPIC_WATCHERS, PARTITIONS_UNMADE, REPLICATION_ONCE, WATCHERS_RECONCILE})

# Commands that later releases added, by their names in BaseCommand.Type
BROUGHT_BY_2_10: Final = frozenset({"TC_CLIENT_CONNECT_REQUEST"})
BROUGHT_BY_2_11: Final = frozenset({"WATCH_TOPIC_LIST", "WATCH_TOPIC_LIST_CLOSE"})
BROUGHT_BY_5_0: Final = frozenset(
    {
        *("SCALABLE_TOPIC_LOOKUP", "SCALABLE_TOPIC_CLOSE"),
        *("SCALABLE_TOPIC_SUBSCRIBE", "SCALABLE_TOPIC_UNSUBSCRIBE"),
        *("WATCH_SCALABLE_TOPICS", "WATCH_SCALABLE_TOPICS_CLOSE"),
        *("WATCH_TC_ASSIGNMENTS", "WATCH_TC_ASSIGNMENTS_CLOSE"),
    }
)
BROUGHT_BY_5_0_1: Final = frozenset({"SCALABLE_TOPIC_UNSUBSCRIBE"})
DRAFTS: Final = frozenset(DRAFT_COMMANDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Choices where the PIPs, good sense and the released broker differ. The defaults are those of `pip`.

    defaults: values for broker.conf keys that nobody set, where they differ from Pulsar's own.
    max_protocol_version: the highest protocol version that CONNECTED announces, and that the broker speaks.
    flags: the FeatureFlags that CONNECTED sets, where the configuration allows it.
    unknown: names of commands that the broker does not know. They close the connection, or get `unknown_error`,
    the name of a ServerError.
    server_version: CONNECTED.server_version. Clients refuse a broker without one; no official client reads it.
    end_of_topic_to_all_clients: send REACHED_END_OF_TOPIC also to clients that close their connection on it.
    own_faults_close: close the connection on a command that makes 4.2.4 throw an exception, in place of an error:
    CONSUMER_STATS for an unknown consumer, SEND in a transaction to a non-persistent topic.
    skip_by_message_ids: PIP-423's skipByMessageIds exists; no released broker has it.
    missing_index_is_zero: getMessageIdByIndex without an index means index 0, not 404.
    index_on_non_persistent: the status of getMessageIdByIndex on a non-persistent topic.
    index_as_released: getMessageIdByIndex finds markers, and finds nothing in the first batch below its last index.
    Its body has batchIndex and batchSize too.
    index_per_transactional_entry: an entry of a transaction takes one index, however many messages it has.
    transaction_by_send: an entry belongs to the transaction that its SEND names, even if its metadata does not name it,
    as with the Go client. A released broker delivers such an entry even after an abort.
    resource_groups_limit_dispatch: enforce the dispatch rates of a resource group, which 4.2.4 stores only.
    acknowledged_stay_delayed: a delayed message that was acknowledged or skipped counts as delayed until its time. One
    whose consumers left counts until the next consumer joins. So msgBacklogNoDelayed may be negative.
    delay_alarms_may_be_early: where a policy's tick of delayed delivery is shorter than that of broker.conf, an alarm
    may find nothing that is due; its message waits until something else makes the subscription dispatch.
    chunks_stall: on Shared, a chunk that cannot go to the consumer of its first chunk stops all entries behind those it
    was read with. A consumer that left keeps the chunks of messages whose first chunk it has.
    unload_forgets: when a topic is loaded, forget the acknowledgements that 4.2.4 does not read back. These are parts
    of batches, unless the cursor has too many ranges for the metadata store, and ranges beyond the number stored.
    chunks_are_duplicates: when a topic is loaded, a chunk counts as its whole message for deduplication.
    invalid_acknowledgements_fail: an ACK with a request id gets an error when it names an entry that does not exist
    yet, or is cumulative and before the mark-delete position (5.0.1). Earlier releases answer success.
    empty_sets_keep_batches: a cumulative ACK whose ack set has no bits left does not acknowledge the batch itself.
    faulty_schema_topics_close: GET_OR_CREATE_SCHEMA with a topic name that is none closes the connection.
    scalable_partitions_unasked: PARTITIONED_METADATA of an absent scalable topic that must not be created answers 0.
    shows_recently_joined: stats of subscriptions have consumersAfterMarkDeletePosition, which 5.0.1 dropped.
    tells_consumable: a message over REST has X-Pulsar-txn-consumable, and X-Pulsar-txn-uncommitted only in a
    transaction (5.0.1).
    silent_non_persistent_failover: consumers of a Failover subscription of a non-persistent topic get no
    ACTIVE_CONSUMER_CHANGE when one of them becomes active.
    abandoned_consumers_refuse: refuse a SUBSCRIBE with the id of a consumer that was closed before it existed.
    refused_producers_stay_exclusive: a producer that claimed exclusive access stays the owner if the topic refuses it
    then (because it is terminated, or being unloaded). Producers that wait behind it get no answer.
    own_faults_are_shown: answer 500 where 4.2.4 throws an exception on a call (a peek at position 0, an entry beyond
    the last, a missing body), in place of a 4xx that says what was wrong. Answer UnknownError to a new subscription at
    the earliest entry of a topic that was terminated while empty and was loaded again.
    forbids_as_pips_say: answer 403 to unauthorized roles on skipByMessageIds and getMessageIdByIndex, where
    4.2.4 answers 401 as for every call about topics.
    lookup_names_broker: the answer to an HTTP lookup has the id of the broker (5.0).
    leaves_schemas_open: every role may read and add schemas of every topic by binary commands, and read about
    transactions of every topic over REST, as in 4.2.4.
    scalable_as_m1: scalable topics are those of 5.0.0-M1: without entry buckets (PIP-486), without what a lookup
    creates or brings back, with short stats, and with an assignment that a consumer also gets before the answer.
    scalable_faults: scalable topics can be created in a namespace that does not exist. A connection that ends
    disconnects its registered consumers even if other connections have taken their names. The controller remembers
    subscriptions that all consumers have left (5.0.1).
    newer_rest: REST as in 5.0.1: is_allow_auto_update_schema_with_replicator exists, a cluster migrates to a URL only,
    a policy of unpartitioned topics may have 0 or 1 partitions, and no cluster has an SSL factory.
    separate_publish_times: store a message in a millisecond at least, so that no two messages of a client that waits
    for each receipt have one publish time.
    strays_are_topics: PRODUCER and SUBSCRIBE create a topic with the name of a partitioned topic, beside the
    partitions, or with the name of a partition of no partitioned topic. Later releases answer NotAllowedError.
    refuses_illegal_partitions: PRODUCER and SUBSCRIBE get NotAllowedError for a partition beyond the last, in place of
    TopicNotFound.
    scatters_keyless: on Key_Shared, entries without a key have keys of their own. Otherwise all have the same one.
    key_shared_modes_mix: a consumer that asks for another mode of Key_Shared than those before it gets theirs, in place
    of ConsumerBusy.
    unsubscribes_by_force: UNSUBSCRIBE may force the deletion of a subscription that has other consumers.
    absent_fields_close: END_TXN without an action closes the connection, and so does the end of a transaction on a
    topic or subscription without an action or a low watermark, all of which are optional.
    later_routes: routes of the admin API that later releases brought, each as the end of its method and path.
    later_stats: fields that later releases brought into the stats of topics, subscriptions and consumers.
    newer_error_pages: error pages of the servlet container name the whole URL and no servlet, as in 5.0.
    proposals: numbers of the proposals that are on, of those in `proposals.py`. Code asks `has`.
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
    invalid_acknowledgements_fail: bool = False
    empty_sets_keep_batches: bool = False
    faulty_schema_topics_close: bool = False
    scalable_partitions_unasked: bool = False
    shows_recently_joined: bool = True
    tells_consumable: bool = False
    silent_non_persistent_failover: bool = False
    abandoned_consumers_refuse: bool = False
    refused_producers_stay_exclusive: bool = False
    scalable_as_m1: bool = False
    scalable_faults: bool = False
    strays_are_topics: bool = False
    refuses_illegal_partitions: bool = False
    scatters_keyless: bool = True
    key_shared_modes_mix: bool = False
    unsubscribes_by_force: bool = True
    absent_fields_close: bool = False
    later_routes: tuple[str, ...] = ()
    later_stats: frozenset[str] = frozenset()
    newer_error_pages: bool = False
    newer_rest: bool = False
    separate_publish_times: bool = False
    lookup_names_broker: bool = False
    proposals: frozenset[int] = frozenset()

    @property
    def releases(self) -> tuple[str, ...]:
        """Return the releases of Pulsar whose configuration files belong to the profile."""
        return ("4.2", "5.0") if self.name == "pip" else (self.name.removeprefix("pulsar-"),)

    def has(self, proposal: int) -> bool:
        """Return whether a proposal is on."""
        return proposal in self.proposals

    @property
    def scalable_topics(self) -> bool:
        """Return whether the broker knows scalable topics."""
        return SCALABLE_TOPICS in self.flags

    @property
    def entry_buckets(self) -> bool:
        """Return whether segments of scalable topics have entry buckets, which consumers can share (PIP-486)."""
        return self.scalable_topics and not self.scalable_as_m1

    def tells_end_of_topic(self, client_version: str) -> bool:
        """Return whether a client of this CONNECT.client_version gets REACHED_END_OF_TOPIC."""
        return self.end_of_topic_to_all_clients or not client_version.startswith(CLOSED_BY_END_OF_TOPIC)


PIP: Final = Profile(
    name="pip",
    # Unused transactions cost no time, and a broker without them refuses clients that use them.
    defaults=(("transactionCoordinatorEnabled", True),),
    max_protocol_version=22,
    flags=FLAGS_OF_4_2 | {SCALABLE_TOPICS, COORDINATOR_WATCHES},
    unknown=DRAFTS,
    server_version=f"Pulsarium {VERSION}",
)

PULSAR_4_2: Final = Profile(
    name="pulsar-4.2",
    max_protocol_version=21,
    flags=FLAGS_OF_4_2,
    unknown=BROUGHT_BY_5_0 | DRAFTS,
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
    empty_sets_keep_batches=True,
    faulty_schema_topics_close=True,
    scalable_partitions_unasked=True,
    silent_non_persistent_failover=True,
    abandoned_consumers_refuse=True,
    refused_producers_stay_exclusive=True,
    separate_publish_times=True,
)


# As recorded
PULSAR_5_0_M1: Final = replace(
    PULSAR_4_2,
    name="pulsar-5.0-m1",
    server_version="Pulsar Server5.0.0-M1",
    flags=PIP.flags,
    unknown=BROUGHT_BY_5_0_1 | DRAFTS,
    newer_error_pages=True,
    scalable_as_m1=True,
    scalable_faults=True,
    lookup_names_broker=True,
)
PULSAR_5_0: Final = replace(
    PULSAR_5_0_M1,
    name="pulsar-5.0",
    defaults=(
        ("authenticateOriginalAuthData", True),
        ("internalListenerName", "internal"),
        ("defaultNumberOfSystemNamespaceBundles", 64),
        ("defaultNumberOfNamespaceBundles", 32),
        ("dispatcherMaxReadBatchSize", 500),
        ("enableShadowTopics", False),
        ("keySharedLookAheadMsgInReplayThresholdPerConsumer", 4000),
        ("keySharedLookAheadMsgInReplayThresholdPerSubscription", 40_000),
        ("managedLedgerMaxUnackedRangesToPersist", 200_000),
        ("managedLedgerMaxUnackedRangesToPersistInMetadataStore", 200_000),
        ("managedLedgerMaxBatchDeletedIndexToPersist", 200_000),
        ("managedLedgerInfoCompressionType", "LZ4"),
        ("managedCursorInfoCompressionType", "LZ4"),
    ),
    server_version="Pulsar Server5.0.1",
    unknown=DRAFTS,
    scalable_as_m1=False,
    leaves_schemas_open=False,
    chunks_stall=False,
    invalid_acknowledgements_fail=True,
    empty_sets_keep_batches=False,
    faulty_schema_topics_close=False,
    scalable_partitions_unasked=False,
    shows_recently_joined=False,
    tells_consumable=True,
    silent_non_persistent_failover=False,
    newer_rest=True,
    proposals=frozenset({BACKLOG_AGE}),
)

# As recorded
PULSAR_4_0: Final = replace(
    PULSAR_4_2,
    name="pulsar-4.0",
    defaults=(("managedLedgerPersistIndividualAckAsLongArray", False),),
    server_version="Pulsar Server4.0.7",
    flags=FLAGS_OF_4_2 - {WATCHERS_RECONCILE},
    strays_are_topics=True,
    absent_fields_close=True,
    later_routes=(
        "/{topic}/getMessageIdByIndex",
        "/{topic}/subscriptionExpirationTime",
        "/allowedTopicPropertyKeysForMetrics",
        "/metadata/migration/start",
        "/metadata/migration/status",
    ),
    later_stats=frozenset(
        {
            *("lastPublishTimeStamp", "topicCreationTimeStamp"),
            *("firstConsumedFlowTimestamp", "firstMessagesSentTimestamp", "msgExpired"),
        }
    ),
)
PULSAR_3_0: Final = replace(
    PULSAR_4_0,
    name="pulsar-3.0",
    defaults=(
        *PULSAR_4_0.defaults,
        ("subscriptionKeySharedUseClassicPersistentImplementation", True),
        ("topicCompactionRetainNullKey", True),
    ),
    server_version="Pulsar Server3.0.7",
    flags=PULSAR_4_0.flags - {REPLICATION_ONCE},
    refuses_illegal_partitions=True,
    scatters_keyless=False,
    key_shared_modes_mix=True,
    unsubscribes_by_force=False,
    later_routes=(
        *PULSAR_4_0.later_routes,
        "/dispatcherPauseOnAckStatePersistent",
        "/{topic}/policies",
        "/{topic}/metadata",
        "GET /admin/v2/clusters/{cluster}/migrate",
        "/namespaces/{tenant}/{namespace}/migration",
        "/namespaces/grantPermissionsOnTopics",
        "/namespaces/revokePermissionsOnTopics",
        "/transactions/abortTransaction/{mostSigBits}/{leastSigBits}",
        "/transactions/transactionBufferInternalStats/{tenant}/{namespace}/{topic}",
    ),
    later_stats=PULSAR_4_0.later_stats
    | {
        *("drainingHashesCount", "drainingHashesClearedTotal", "drainingHashesUnackedMessages", "drainingHashes"),
        *("keyHashRangeArrays", "bytesOutInternalCounter", "systemTopicBytesInCounter"),
        *(
            f"dispatchThrottled{unit}EventsBy{scope}Limit"
            for unit in ("Msg", "Bytes")
            for scope in ("Broker", "Subscription", "Topic")
        ),
    },
)


def _older(release: str, max_protocol_version: int, flags: set[str], unknown: frozenset[str] = frozenset()) -> Profile:
    """Return a profile that announces itself as an older release. The broker's behavior is that of 3.0."""
    return replace(
        PULSAR_3_0,
        name=f"pulsar-{release}",
        server_version=f"Pulsar Server{release}.4",
        max_protocol_version=max_protocol_version,
        flags=frozenset(flags),
        unknown=PULSAR_3_0.unknown | unknown,
    )


# From the protocol library of each release
PULSAR_4_1: Final = replace(PULSAR_4_2, name="pulsar-4.1", server_version="Pulsar Server4.1.0", flags=PULSAR_4_0.flags)
OLDER: Final = (
    _older("2.11", 19, {TOPIC_WATCHERS}),
    _older("2.10", 19, set(), BROUGHT_BY_2_11),
    _older("2.8", 17, set(), BROUGHT_BY_2_10 | BROUGHT_BY_2_11),
)

PROFILES: Final[Mapping[str, Profile]] = MappingProxyType(
    {
        each.name: each
        for each in (PIP, PULSAR_5_0, PULSAR_5_0_M1, PULSAR_4_2, PULSAR_4_1, PULSAR_4_0, PULSAR_3_0, *OLDER)
    }
)


def profile_of(
    name: str,
    max_protocol_version: int | None = None,
    separate_publish_times: bool | None = None,
    pip: Iterable[object] = (),
) -> Profile:
    """Return the named profile, with a lower protocol version and separate publish times as they are given.

    `pip` has proposals to switch on beside those of the profile. Raise `ConfigError` for a wrong name, version or
    proposal.
    """
    if name not in PROFILES:
        raise ConfigError("profile", "", f"{name!r} is not one of {', '.join(PROFILES)}")
    profile = PROFILES[name]
    proposals = profile.proposals | proposals_of(pip)
    if proposals != profile.proposals:
        on = [PROPOSALS[number] for number in proposals]
        profile = replace(
            profile,
            proposals=proposals,
            flags=profile.flags.union(*(each.draft_flags for each in on)),
            unknown=profile.unknown.difference(*(each.draft_commands for each in on)),
        )
    if separate_publish_times not in (None, profile.separate_publish_times):
        profile = replace(profile, separate_publish_times=separate_publish_times)
    if max_protocol_version is None:
        return profile
    highest = profile.max_protocol_version
    if not 0 <= max_protocol_version <= highest:
        raise ConfigError("max_protocol_version", "", f"{max_protocol_version} is not between 0 and {highest} ({name})")
    return replace(profile, max_protocol_version=max_protocol_version)
