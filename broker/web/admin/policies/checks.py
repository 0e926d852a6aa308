"""Refuse values that are well-formed, but that Pulsar does not accept. Replication is stored and shown only."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.model.namespace.policies import REPLICATORS_UPDATE_SCHEMAS
from pulsarium.broker.model.namespace.values import BOOKIES, FILTER_NAMES
from pulsarium.broker.web.admin.cluster import clusters
from pulsarium.broker.web.admin.policies.policy import Json
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError, request_failed, unexpected_body
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.topic_name import TopicName

MOST_BOOKIES = 5  # managedLedgerMaxEnsembleSize, managedLedgerMaxWriteQuorum, managedLedgerMaxAckQuorum
INVALID = "Invalid configuration for autoTopicCreationOverride. the detail is "


def check_auto_creation(call: Call, kept: Json, value: Any) -> None:
    """Refuse an unknown type of topic, and a wrong number of partitions."""
    if value is None or not value["allowAutoTopicCreation"]:
        return
    kind, partitions = value.get("topicType"), value.get("defaultNumPartitions")
    if kind not in ("partitioned", "non-partitioned"):
        raise AdminError(412, f"{INVALID}Unknown topic type [{'null' if kind is None else kind}]")
    if kind == "non-partitioned":
        if call.broker.profile.newer_rest and partitions not in (None, 0, 1):
            text = "[defaultNumPartitions] must be null, 0 or 1 when the type is non-partitioned."
            raise AdminError(412, INVALID + text)
        if partitions is not None and not call.broker.profile.newer_rest:
            text = "[defaultNumPartitions] is not allowed to be set when the type is non-partition."
            raise AdminError(412, INVALID + text)
        return
    if partitions is None:
        raise AdminError(412, f"{INVALID}[defaultNumPartitions] cannot be null when the type is partitioned.")
    if partitions <= 0:
        raise AdminError(412, f"{INVALID}[defaultNumPartitions] cannot be less than 1 for partition type.")
    limit = call.broker.config.maxNumPartitionsPerPartitionedTopic
    if 0 < limit < partitions:
        raise AdminError(406, f"Number of partitions should be less than or equal to {limit}")


def update_of_replicators(call: Call, value: Any) -> Json:
    """Return whether replicators may register new schemas, where a call says so (5.0.1)."""
    name = "allowAutoUpdateSchemaWithReplicator"
    if not call.broker.profile.newer_rest or name not in call.query:
        return {}
    allowed = call.flag(name)
    if value and not allowed:
        raise AdminError(400, "Can not enable for all producers but denies for replicators, which is meaningless")
    return {REPLICATORS_UPDATE_SCHEMAS: allowed}


def check_types_of_namespace(call: Call, kept: Json, value: Any) -> None:
    """Refuse null and unknown types with a 500, as Pulsar does."""
    if value is None or None in value:
        raise request_failed()


def check_types_of_topic(call: Call, kept: Json, value: Any) -> None:
    """Refuse null and unknown types, in Pulsar's words for topics."""
    if value is None:
        what = 'java.util.Set.forEach(java.util.function.Consumer)" because "subscriptionTypesEnabledSet'
    elif None in value:
        what = 'org.apache.pulsar.client.api.SubscriptionType.name()" because "subscriptionType'
    else:
        return
    raise unexpected_body(f'Cannot invoke "{what}" is null')


def check_message_size(call: Call, kept: Json, value: Any) -> None:
    """Refuse a size larger than the broker's maxMessageSize."""
    if not 0 <= value <= call.broker.config.maxMessageSize:
        text = "topic-level maxMessageSize must be greater than or equal to 0 and must be smaller than that in the "
        raise AdminError(412, f"{text}broker-level")


def check_filters(call: Call, kept: Json, value: Any) -> None:
    """Refuse every entry filter, because none is installed."""
    if value is None:
        return
    names = [name.strip() for name in value.get(FILTER_NAMES, "").split(",") if name.strip()]
    if not names:
        raise AdminError(400, f"{FILTER_NAMES} can't be empty. To remove entry filters use the remove method.")
    raise AdminError(400, f"Entry filter '{names[0]}' not found")


def check_persistence(call: Call, kept: Json, value: Any) -> None:
    """Refuse numbers of bookies that Pulsar does not accept."""
    if value is None:
        raise AdminError(400, "persistence policies should not be null")
    numbers = {word: value[name] for word, name in BOOKIES.items()}
    for word, number in numbers.items():
        if not 0 < number <= MOST_BOOKIES:
            raise AdminError(400, f"Bookkeeper-{word} must be <= {MOST_BOOKIES} and > 0.")
    if list(numbers.values()) != sorted(numbers.values(), reverse=True):
        raise AdminError(400, "Bookkeeper " + " >= ".join(f"{word} ({number})" for word, number in numbers.items()))


CLUSTERS = "replication_clusters"
ALLOWED = "allowed_clusters"


def check_known(call: Call, value: Any) -> None:
    """Refuse clusters that do not exist, that are peers of each other, or that the tenant may not use."""
    known = clusters.names(call.broker)
    for name in value:
        if name not in known:
            raise AdminError(403, f"Invalid cluster id: {name}")
        peers = clusters.data_of(call.broker, name).get("peerClusterNames") or ()
        both = ", ".join(peer for peer in peers if peer in value)
        if both:
            text = f"{name}'s peer-clusters [{both}] can't be part of replication-clusters [{', '.join(value)}]"
            raise AdminError(409, text)
    check_of_tenant(call, value)


def check_of_tenant(call: Call, value: Any) -> None:
    """Refuse clusters that the tenant may not use."""
    tenant = call.parameter("tenant")
    allowed = call.broker.metadata.tenants.get(tenant, {}).get("allowedClusters", [])
    for name in value:
        if name not in allowed:
            text = f"Cluster [{name}] is not in the list of allowed clusters list for tenant [{tenant}]"
            raise AdminError(403, text)


def check_some(value: Any) -> None:
    """Refuse an empty list of clusters."""
    if not value:
        raise AdminError(412, "ClusterIds should not be null or empty")


def check_clusters_of_namespace(call: Call, kept: Json, value: Any) -> None:
    """Refuse an empty list, and clusters that the namespace may not use."""
    check_some(value)
    if not call.broker.metadata.namespaces.get(call.namespace):
        return  # the caller answers 404 then
    check_known(call, value)
    allowed = kept.get(ALLOWED) or value
    for name in value:
        if name not in allowed:
            text = f"Cluster [{name}] is not in the list of allowed clusters list for namespace [{call.namespace}]"
            raise AdminError(400, text)


def check_clusters_of_topic(call: Call, kept: Json, value: Any) -> None:
    """Refuse clusters that a topic may not use. A topic is always in its own cluster."""
    check_some(value)
    local = call.broker.metadata.cluster
    if call.flag("isGlobal"):
        replicated = call.broker.metadata.namespaces[call.namespace].get(CLUSTERS, [])
        if len(replicated) < 2:
            text = "Please do not use the global topic level policy when namespace-level replication is not enabled, "
            raise AdminError(412, f"{text}because the global level policy relies on namespace-level replication")
        if not set(value) <= set(replicated):
            text = "The policies at the global topic level will only be copied to the clusters included in the "
            text += "namespace level replication. Therefore, please do not set the policies including other clusters"
            raise AdminError(412, text)
    elif local not in value:
        raise AdminError(412, "Can not remove local cluster from the local topic-level replication clusters policy")
    check_known(call, value)


def check_allowed_clusters(call: Call, kept: Json, value: Any) -> None:
    """Refuse a list without the namespace's present replication clusters."""
    if not call.broker.metadata.namespaces.get(call.namespace):
        return
    if value is None:
        text = 'Cannot invoke "java.util.List.stream()" because "clusterIds" is null'
        raise unexpected_body(text, AdminError(400, "ClusterIds should not be null"))
    check_of_tenant(call, value)
    clusters_now = kept.get(CLUSTERS, [])
    if not set(clusters_now) <= set(value):
        text = f"Allowed clusters do not contain the replication cluster [{', '.join(clusters_now)}]. "
        text += "Please remove the replication cluster if the cluster is not allowed for this namespace"
        raise AdminError(400, text)
    check_known(call, value)


def check_shadows_enabled(call: Call) -> None:
    """Refuse shadow topics where enableShadowTopics is off."""
    if not call.broker.config.enableShadowTopics:
        raise AdminError(405, "Shadow topics are disabled")


def check_shadow_topics(call: Call, kept: Json, value: Any) -> None:
    """Refuse topics that cannot be shadow topics."""
    check_shadows_enabled(call)
    if call.domain != "persistent":
        raise AdminError(412, "Only persistent source topic is supported with shadow topics.")
    if not value:
        raise AdminError(412, "Cannot specify empty shadow topics, please use remove command instead.")
    for text in value:
        try:
            name = TopicName.parse(text)
        except InvalidTopicName:
            raise AdminError(403, f"Invalid shadow topic name: {text}") from None
        if not name.is_persistent:
            raise AdminError(412, "Only persistent topic can be set as shadow topic")
        if not (call.broker.topics.exists(name) or call.broker.metadata.partitions_of(name)):
            raise AdminError(412, f"Shadow topic [{text}] not exists.")
