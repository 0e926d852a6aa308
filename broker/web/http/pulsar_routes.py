"""The routes of Pulsar 4.2.4's admin API, which tell a missing route from an unknown path.

Each line has methods, a colon, and paths after the prefix of their group. A line may continue below.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import Route

# Routes that a broker without functions and packages answers with an error of their own, not with 404
FUNCTIONS = re.compile(r"/admin/v[23]/(functions|sinks?|sources?|worker|worker-stats)(/.*)?")
PACKAGES = re.compile(r"/admin/v3/packages/.+")
NO_PACKAGES = "Package Management Service is not enabled in the broker."  # enablePackagesManagement
NO_FUNCTIONS = "Pulsar Function Worker is not enabled, probably functionsWorkerEnabled is set to false"

OF_NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"
OF_PERSISTENT = "/admin/v2/persistent/{tenant}/{namespace}"
OF_NON_PERSISTENT = "/admin/v2/non-persistent/{tenant}/{namespace}"

NAMESPACES = """
DELETE,GET,PUT: / /compactionThreshold /offloadDeletionLagMs /properties
GET,POST: /allowedClusters /deduplicationSnapshotInterval /encryptionRequired /isAllowAutoUpdateSchema
    /offloadPolicies /replication /schemaValidationEnforced /subscriptionAuthMode
DELETE,GET,POST: /allowedTopicPropertyKeysForMetrics /antiAffinity /autoSubscriptionCreation /autoTopicCreation
    /deduplication /delayedDelivery /dispatchRate /dispatcherPauseOnAckStatePersistent /entryFilters
    /inactiveTopicPolicies /maxConsumersPerSubscription /maxConsumersPerTopic /maxProducersPerTopic
    /maxSubscriptionsPerTopic /maxTopicsPerNamespace /maxUnackedMessagesPerConsumer
    /maxUnackedMessagesPerSubscription /messageTTL /persistence /persistence/bookieAffinity /publishRate
    /replicatorDispatchRate /retention /subscribeRate /subscriptionDispatchRate
    /subscriptionExpirationTime /subscriptionTypesEnabled
DELETE,POST: /backlogQuota /permissions/{role}
GET: /backlogQuotaMap /bundles /permissions /permissions/subscription /scanOffloadedLedgers /topics
    /{bundle}/topicHashPositions
POST: /clearBacklog /clearBacklog/{subscription} /migration /permissions/subscription/{subscription}
    /resourcegroup/{resourcegroup} /unsubscribe/{subscription} /{bundle}/clearBacklog
    /{bundle}/clearBacklog/{subscription} /{bundle}/unsubscribe/{subscription}
GET,PUT: /offloadThreshold /offloadThresholdInSeconds /schemaAutoUpdateCompatibilityStrategy
    /schemaCompatibilityStrategy
DELETE: /permissions/{subscription}/{role} /removeOffloadPolicies /{bundle}
DELETE,GET: /property/{key} /resourcegroup
PUT: /property/{key}/{value} /unload /{bundle}/split /{bundle}/unload
"""

BOTH_DOMAINS = """
GET: / /partitioned /{topic}/backlog /{topic}/backlogQuotaMap /{topic}/examinemessage
    /{topic}/getMessageIdByIndex /{topic}/internal-info /{topic}/internalStats /{topic}/lastMessageId
    /{topic}/ledger/{ledgerId}/entry/{entryId} /{topic}/messageid/{timestamp}
    /{topic}/partitioned-internalStats /{topic}/partitioned-stats /{topic}/permissions /{topic}/stats
    /{topic}/subscription/{subscription}/position/{messagePosition} /{topic}/subscriptions
DELETE,PUT: /{topic} /{topic}/subscription/{subscription}
POST: /{topic}/all_subscription/expireMessages/{expireTimeInSeconds} /{topic}/createMissedPartitions
    /{topic}/subscription/{subscription}/analyzeBacklog
    /{topic}/subscription/{subscription}/expireMessages
    /{topic}/subscription/{subscription}/expireMessages/{expireTimeInSeconds}
    /{topic}/subscription/{subscription}/resetcursor
    /{topic}/subscription/{subscription}/resetcursor/{timestamp}
    /{topic}/subscription/{subscription}/skip/{numMessages}
    /{topic}/subscription/{subscription}/skip_all /{topic}/terminate /{topic}/terminate/partitions
    /{topic}/trim
DELETE,GET,POST: /{topic}/autoSubscriptionCreation /{topic}/compactionThreshold /{topic}/deduplicationEnabled
    /{topic}/deduplicationSnapshotInterval /{topic}/delayedDelivery /{topic}/dispatchRate
    /{topic}/dispatcherPauseOnAckStatePersistent /{topic}/entryFilters /{topic}/inactiveTopicPolicies
    /{topic}/maxConsumers /{topic}/maxConsumersPerSubscription /{topic}/maxMessageSize
    /{topic}/maxProducers /{topic}/maxSubscriptionsPerTopic /{topic}/maxUnackedMessagesOnConsumer
    /{topic}/maxUnackedMessagesOnSubscription /{topic}/messageTTL /{topic}/offloadPolicies
    /{topic}/persistence /{topic}/publishRate /{topic}/replication /{topic}/replicatorDispatchRate
    /{topic}/retention /{topic}/subscribeRate /{topic}/subscriptionDispatchRate
    /{topic}/subscriptionExpirationTime /{topic}/subscriptionTypesEnabled
    /{topic}/{subscription}/dispatchRate
DELETE,POST: /{topic}/backlogQuota /{topic}/permissions/{role}
PUT: /{topic}/backlogSize /{topic}/unload
GET,PUT: /{topic}/compaction /{topic}/offload /{topic}/subscription/{subscription}/properties
DELETE,GET,POST,PUT: /{topic}/partitions
DELETE: /{topic}/policies /{topic}/truncate
DELETE,GET,PUT: /{topic}/properties /{topic}/schemaCompatibilityStrategy /{topic}/shadowTopics
GET,POST: /{topic}/schemaValidationEnforced /{topic}/subscription/{subscription}/replicatedSubscriptionStatus
"""

NON_PERSISTENT = """
GET: /{bundle}
"""

OTHERS = """
GET: /admin/v2/bookies/all /admin/v2/bookies/racks-info
    /admin/v2/broker-stats/allocator-stats/{allocator} /admin/v2/broker-stats/bookieops
    /admin/v2/broker-stats/broker-resource-availability/{tenant}/{namespace}
    /admin/v2/broker-stats/load-report /admin/v2/broker-stats/mbeans /admin/v2/broker-stats/metrics
    /admin/v2/broker-stats/topics /admin/v2/brokers /admin/v2/brokers/backlog-quota-check
    /admin/v2/brokers/configuration /admin/v2/brokers/configuration/runtime
    /admin/v2/brokers/configuration/values /admin/v2/brokers/health
    /admin/v2/brokers/internal-configuration /admin/v2/brokers/leaderBroker /admin/v2/brokers/ready
    /admin/v2/brokers/version /admin/v2/brokers/{clusterName}/{brokerId}/ownedNamespaces
    /admin/v2/brokers/{cluster} /admin/v2/clusters /admin/v2/clusters/{cluster}/failureDomains
    /admin/v2/clusters/{cluster}/namespaceIsolationPolicies
    /admin/v2/clusters/{cluster}/namespaceIsolationPolicies/brokers
    /admin/v2/clusters/{cluster}/namespaceIsolationPolicies/brokers/{broker}
    /admin/v2/metadata/migration/status /admin/v2/namespaces/{cluster}/antiAffinity/{group}
    /admin/v2/namespaces/{tenant} /admin/v2/resourcegroups
    /admin/v2/schemas/{tenant}/{namespace}/{topic}/metadata
    /admin/v2/schemas/{tenant}/{namespace}/{topic}/schema/{version}
    /admin/v2/schemas/{tenant}/{namespace}/{topic}/schemas /admin/v2/tenants
    /admin/v3/packages/{type}/{tenant}/{namespace}
    /admin/v3/packages/{type}/{tenant}/{namespace}/{packageName}
    /admin/v3/transactions/coordinatorInternalStats/{coordinatorId}
    /admin/v3/transactions/coordinatorStats /admin/v3/transactions/coordinators
    /admin/v3/transactions/pendingAckInternalStats/{tenant}/{namespace}/{topic}/{subscription}
    /admin/v3/transactions/pendingAckStats/{tenant}/{namespace}/{topic}/{subscription}
    /admin/v3/transactions/positionStatsInPendingAck/{tenant}/{namespace}/{topic}/{subscription}/{ledgerId}/{entryId}
    /admin/v3/transactions/slowTransactions/{timeout}
    /admin/v3/transactions/transactionBufferInternalStats/{tenant}/{namespace}/{topic}
    /admin/v3/transactions/transactionBufferStats/{tenant}/{namespace}/{topic}
    /admin/v3/transactions/transactionInBufferStats/{tenant}/{namespace}/{topic}/{mostSigBits}/{leastSigBits}
    /admin/v3/transactions/transactionInPendingAckStats/{tenant}/{namespace}/{topic}/{subscription}/{mostSigBits}/{leastSigBits}
    /admin/v3/transactions/transactionMetadata/{mostSigBits}/{leastSigBits}
    /lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}
    /lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}/bundle
DELETE,GET,POST: /admin/v2/bookies/racks-info/{bookie} /admin/v2/clusters/{cluster}/failureDomains/{domainName}
    /admin/v2/clusters/{cluster}/namespaceIsolationPolicies/{policyName}
    /admin/v2/resource-quotas/{tenant}/{namespace}/{bundle}
    /admin/v2/schemas/{tenant}/{namespace}/{topic}/schema
    /admin/v3/packages/{type}/{tenant}/{namespace}/{packageName}/{version}
DELETE: /admin/v2/brokers/configuration/{configName}
POST: /admin/v2/brokers/configuration/{configName}/{configValue} /admin/v2/brokers/shutdown
    /admin/v2/metadata/migration/start /admin/v2/namespaces/grantPermissionsOnTopics
    /admin/v2/namespaces/revokePermissionsOnTopics
    /admin/v2/schemas/{tenant}/{namespace}/{topic}/compatibility
    /admin/v2/schemas/{tenant}/{namespace}/{topic}/version
    /admin/v3/transactions/abortTransaction/{mostSigBits}/{leastSigBits}
    /admin/v3/transactions/transactionCoordinator/replicas
    /topics/non-persistent/{tenant}/{namespace}/{topic}
    /topics/non-persistent/{tenant}/{namespace}/{topic}/partitions/{partition}
    /topics/persistent/{tenant}/{namespace}/{topic}
    /topics/persistent/{tenant}/{namespace}/{topic}/partitions/{partition}
DELETE,GET,POST,PUT: /admin/v2/clusters/{cluster} /admin/v2/tenants/{tenant}
GET,POST: /admin/v2/clusters/{cluster}/migrate /admin/v2/clusters/{cluster}/peers /admin/v2/resource-quotas
DELETE,GET,PUT: /admin/v2/resourcegroups/{resourcegroup}
GET,PUT: /admin/v3/packages/{type}/{tenant}/{namespace}/{packageName}/{version}/metadata
"""


def pulsar_routes() -> Iterator[Route]:
    """Yield all routes of Pulsar, without those of functions, connectors and their workers."""
    yield from _read(NAMESPACES, OF_NAMESPACE)
    yield from _read(BOTH_DOMAINS, OF_PERSISTENT)
    yield from _read(BOTH_DOMAINS, OF_NON_PERSISTENT)
    yield from _read(NON_PERSISTENT, OF_NON_PERSISTENT)
    yield from _read(OTHERS, "")


def _read(text: str, prefix: str) -> Iterator[Route]:
    methods: list[str] = []
    for word in text.split():
        if word.startswith("/"):
            yield from (Route(method, prefix + word.rstrip("/")) for method in methods)
        else:
            methods = word.rstrip(":").split(",")


def check_absent(path: str) -> None:
    """Raise the error of a feature that is not enabled. Raise nothing for other paths."""
    if FUNCTIONS.fullmatch(path):
        raise AdminError(409, NO_FUNCTIONS)
    if PACKAGES.fullmatch(path):
        raise AdminError(503, NO_PACKAGES)


def absent_routes(built: set[Route]) -> list[Route]:
    """Return Pulsar's routes without those that are built, whatever their parameters are called."""
    known = {(route.method, anonymous(route.path)) for route in built}
    return [route for route in pulsar_routes() if (route.method, anonymous(route.path)) not in known]


def anonymous(path: str) -> str:
    """Return a path without the names of its parameters."""
    return re.sub(r"\{[^}]*\}", "{}", path)
