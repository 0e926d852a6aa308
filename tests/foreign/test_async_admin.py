"""Tests of our admin client over sockets, under both event loops. They make every call of every group."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import pytest

from pulsarium.client import Admin, AdminError, MessageId, connect, connect_admin
from pulsarium.client.admin import errors
from pulsarium.rest import policies as rows
from pulsarium.rest.data import ClusterUrl
from pulsarium.rest.policies import DispatchRate, Policy
from tests.client.both import on_both

from .broker_process import Address, BrokerProcess, is_pulsarium
from .conftest import Launch
from .public_calls import Spied, public_calls

SECONDS = 300
NAMESPACE = "calls/ns"
TOPIC = f"persistent://{NAMESPACE}/t"
PARTED = f"persistent://{NAMESPACE}/parted"
FLEETING = f"non-persistent://{NAMESPACE}/n"
DELETION = ("--set", "forceDeleteNamespaceAllowed=true", "--set", "forceDeleteTenantAllowed=true")
INTERCEPTORS = "org.apache.pulsar.common.intercept."
COUNTED = (
    "--set",
    "brokerEntryMetadataInterceptors="
    + ",".join(f"{INTERCEPTORS}Append{what}MetadataInterceptor" for what in ("BrokerTimestamp", "Index")),
)
RATE: DispatchRate = {"dispatchThrottlingRateInMsg": 5, "dispatchThrottlingRateInByte": 500, "ratePeriodInSecond": 2}
INACTIVE = {
    "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
    "maxInactiveDurationSeconds": 77,
    "deleteWhileInactive": True,
}
PERSISTENCE = {
    "bookkeeperEnsemble": 1,
    "bookkeeperWriteQuorum": 1,
    "bookkeeperAckQuorum": 1,
    "managedLedgerMaxMarkDeleteRate": 3.0,
}

# Policies of both namespaces and topics, each with a value to set.
OFFLOAD = {"managedLedgerOffloadDriver": "filesystem", "managedLedgerOffloadThresholdInBytes": 5}

SHARED: dict[Policy[Any], Any] = {
    rows.COMPACTION_THRESHOLD: 1000,
    rows.DEDUPLICATION: True,
    rows.DEDUPLICATION_SNAPSHOTS: 55,
    rows.DISPATCH_RATE: RATE,
    rows.INACTIVE_TOPICS: INACTIVE,
    rows.MAX_CONSUMERS_PER_SUBSCRIPTION: 7,
    rows.MAX_SUBSCRIPTIONS: 8,
    rows.PERSISTENCE: PERSISTENCE,
    rows.PUBLISH_RATE: {"publishThrottlingRateInMsg": 9_000, "publishThrottlingRateInByte": 9_000_000},
    rows.REPLICATOR_DISPATCH_RATE: RATE,
    rows.RETENTION: {"retentionTimeInMinutes": 5, "retentionSizeInMB": 6},
    rows.SCHEMA_STRATEGY: "BACKWARD",
    rows.SUBSCRIBE_RATE: {"subscribeThrottlingRatePerConsumer": 3, "ratePeriodInSecond": 4},
    rows.SUBSCRIPTION_DISPATCH_RATE: RATE,
    rows.SUBSCRIPTION_TYPES: ["Exclusive", "Shared"],
    rows.AUTO_SUBSCRIPTION_CREATION: {"allowAutoSubscriptionCreation": True},
}
OF_NAMESPACES = SHARED | {
    rows.AUTO_TOPIC_CREATION: {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 2},
    rows.DELAYED_DELIVERY: {"tickTime": 2000, "active": True, "maxDeliveryDelayInMillis": 5000},
    rows.ENCRYPTION_REQUIRED: False,
    rows.SCHEMA_AUTO_UPDATE: False,
    rows.MAX_CONSUMERS: 6,
    rows.MAX_PRODUCERS: 5,
    rows.MAX_TOPICS: 99,
    rows.METRIC_LABELS: ["made"],
    rows.MAX_UNACKED_PER_CONSUMER: 11,
    rows.MAX_UNACKED_PER_SUBSCRIPTION: 12,
    rows.ALLOWED_CLUSTERS: ["standalone"],
    rows.ENTRY_FILTERS: None,
    rows.MESSAGE_TTL: 3600,
    rows.REPLICATION: ["standalone"],
    rows.OFFLOAD: OFFLOAD,
    rows.OFFLOAD_THRESHOLD: 1000,
    rows.OFFLOAD_SECONDS: 60,
    rows.OLDER_SCHEMA_STRATEGY: "Forward",
    rows.SCHEMA_VALIDATION: False,
    rows.SUBSCRIPTION_AUTH_MODE: "Prefix",
    rows.SUBSCRIPTION_EXPIRATION: 30,
}
OF_TOPICS = SHARED | {
    rows.DELAYED_DELIVERY: {"tickTime": 2000, "active": True, "maxDeliveryDelayInMillis": 5000},
    rows.ENTRY_FILTERS: None,
    rows.MAX_CONSUMERS: 6,
    rows.MAX_MESSAGE_SIZE: 1000,
    rows.MAX_PRODUCERS: 5,
    rows.MAX_UNACKED_PER_CONSUMER: 11,
    rows.MAX_UNACKED_PER_SUBSCRIPTION: 12,
    rows.MESSAGE_TTL: 3600,
    rows.OFFLOAD: OFFLOAD,
    rows.SUBSCRIPTION_EXPIRATION: 30,
    rows.REPLICATION: ["standalone"],
}
# Settings of namespaces that have calls of their own.
OF_NAMESPACES_TOO = {
    "bookie_affinity_group": {"bookkeeperAffinityGroupPrimary": "one"},
    "namespace_anti_affinity_group": "apart",
    "namespace_resource_group": "calls",
}


@pytest.mark.timeout(SECONDS + 30)
@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_every_call_of_the_admin_client_succeeds(launch: Launch, backend: str) -> None:
    anyio.run(every_call, launch, backend=backend)


async def every_call(launch: Launch) -> None:
    options = (*DELETION, *COUNTED) if is_pulsarium() else ()
    with anyio.fail_after(SECONDS):
        process = launch(*options)
        async with connect_admin(process.address.admin_url) as plain:
            admin = Spied(plain)
            await tenants_and_clusters(admin)
            await brokers(admin)
            await namespaces(admin)
            await policies(admin.namespace_policies, NAMESPACE, OF_NAMESPACES)
            await settings(admin.namespaces, OF_NAMESPACES_TOO)
            await odd_settings(admin)
            await topics(admin, process.address)
            await subscriptions(admin, process.address)
            await topic_policies(admin)
            await schemas(admin)
            await ends(admin)
            await admin.brokers.shut_down_broker_gracefully(forced_terminate_topic=True)
            await settled(lambda: status(process), {"status": "stopped"})
            with pytest.raises(errors.AdminConnectError):
                await plain.tenants.get_tenants()
    assert sorted(public_calls(plain) - admin.called) == []


async def status(process: BrokerProcess) -> dict[str, str]:
    return {"status": "running" if process.running else "stopped"}


async def settled(ask: Callable[[], Awaitable[Any]], value: Any) -> None:
    """Wait until a setting has the given value. A real broker reads policies from a topic."""
    found = await ask()
    for _ in range(600):
        if same(found, value):
            break
        await anyio.sleep(0.05)
        found = await ask()
    assert same(found, value), (found, value)


def same(found: Any, value: Any) -> bool:
    """Return whether the broker has the value. Brokers add fields of newer versions, and keep lists as sets."""
    if isinstance(value, dict):
        return isinstance(found, dict) and value.items() <= found.items()
    return sorted(found or ()) == sorted(value) if isinstance(value, list) else bool(found == value)


async def tenants_and_clusters(admin: Admin) -> None:
    await admin.clusters.create_cluster("east", {"serviceUrl": "http://east:8080"})
    await admin.clusters.update_cluster("east", {"serviceUrl": "http://east:8081"})
    assert (await admin.clusters.get_cluster("east"))["serviceUrl"] == "http://east:8081"
    assert set(await admin.clusters.get_clusters()) >= {"standalone", "east"}
    await admin.clusters.update_peer_cluster_names("standalone", ["east"])
    assert await admin.clusters.get_peer_cluster_names("standalone") == ["east"]
    await admin.clusters.update_peer_cluster_names("standalone", [])
    to: ClusterUrl = {"brokerServiceUrl": "pulsar://west:6650", "serviceUrl": "http://west:8080"}
    await admin.clusters.update_cluster_migration("east", to, migrated=False)
    migration = await admin.clusters.get_cluster_migration("east")
    assert migration is not None
    assert migration["migratedClusterUrl"]["brokerServiceUrl"] == to["brokerServiceUrl"]
    await failure_domains(admin)
    await isolation(admin)
    await admin.clusters.delete_cluster("east")
    with pytest.raises(errors.NotFound):
        await admin.clusters.get_cluster("east")

    await admin.tenants.create_tenant("calls", allowed_clusters=["standalone"], admin_roles=["a"])
    await admin.tenants.update_tenant("calls", allowed_clusters=["standalone"], admin_roles=["b"])
    assert await admin.tenants.get_tenant_info("calls") == {"adminRoles": ["b"], "allowedClusters": ["standalone"]}
    assert "calls" in await admin.tenants.get_tenants()


async def failure_domains(admin: Admin) -> None:
    clusters = admin.clusters
    await clusters.create_failure_domain("standalone", "d", {"brokers": ["x:1"]})
    await clusters.update_failure_domain("standalone", "d", {"brokers": ["y:1"]})
    assert await clusters.get_failure_domain("standalone", "d") == {"brokers": ["y:1"]}
    assert await clusters.get_failure_domains("standalone") == {"d": {"brokers": ["y:1"]}}
    await clusters.delete_failure_domain("standalone", "d")
    assert await clusters.get_failure_domains("standalone") == {}


async def isolation(admin: Admin) -> None:
    clusters = admin.clusters
    await clusters.create_namespace_isolation_policy(
        "standalone",
        "p",
        {
            "namespaces": ["nobody/.*"],
            "primary": ["x.*"],
            "secondary": [],
            "auto_failover_policy": {
                "policy_type": "min_available",
                "parameters": {"min_limit": "1", "usage_threshold": "80"},
            },
        },
    )
    assert (await clusters.get_namespace_isolation_policy("standalone", "p"))["primary"] == ["x.*"]
    assert list(await clusters.get_namespace_isolation_policies("standalone")) == ["p"]
    (found,) = await clusters.get_brokers_with_namespace_isolation_policy("standalone")
    broker = found["brokerName"]
    assert (await clusters.get_broker_with_namespace_isolation_policy("standalone", broker))["brokerName"] == broker
    await clusters.delete_namespace_isolation_policy("standalone", "p")
    await admin.resource_groups.create_resource_group("calls", {"publishRateInMsgs": 50_000})
    await admin.resource_groups.update_resource_group("calls", {"publishRateInBytes": 5_000_000})
    group = await admin.resource_groups.get_resource_group("calls")
    assert (group["publishRateInMsgs"], group["publishRateInBytes"]) == (50_000, 5_000_000)
    assert "calls" in await admin.resource_groups.get_resource_groups()


async def brokers(admin: Admin) -> None:
    assert await admin.brokers.healthcheck() == "ok"
    (broker,) = await admin.brokers.get_active_brokers("standalone")
    assert (await admin.brokers.get_leader_broker())["brokerId"] == broker
    assert isinstance(await admin.brokers.get_owned_namespaces("standalone", broker), dict)
    assert (await admin.brokers.get_version()).count(".") >= 1
    name = "maxConcurrentLookupRequest"
    assert name in await admin.brokers.get_dynamic_configuration_names()
    await admin.brokers.update_dynamic_configuration(name, "777")
    await settled(admin.brokers.get_all_dynamic_configurations, {name: "777"})
    await admin.brokers.delete_dynamic_configuration(name)
    assert (await admin.brokers.get_runtime_configurations())["clusterName"] == "standalone"
    assert "metadataStoreUrl" in await admin.brokers.get_internal_configuration_data()
    await admin.brokers.backlog_quota_check()

    assert isinstance(await admin.broker_stats.get_metrics(), list)
    assert isinstance(await admin.broker_stats.get_mbeans(), list)
    assert isinstance(await admin.broker_stats.get_topics(), dict)
    assert isinstance(await admin.broker_stats.get_load_report(), dict | None)
    assert isinstance(await admin.broker_stats.get_allocator_stats("default"), dict)

    await admin.bookies.update_bookie_rack_info("here:3181", {"rack": "/r1"})
    assert (await admin.bookies.get_bookie_rack_info("here:3181"))["rack"] == "/r1"
    assert "here:3181" in (await admin.bookies.get_bookies_rack_info())["default"]
    await admin.bookies.delete_bookie_rack_info("here:3181")
    assert isinstance((await admin.bookies.get_bookies())["bookies"], list)

    quota = await admin.resource_quotas.get_default_resource_quota()
    await admin.resource_quotas.set_default_resource_quota({**quota, "memory": 55.0})
    assert (await admin.resource_quotas.get_default_resource_quota())["memory"] == 55


async def namespaces(admin: Admin) -> None:
    await admin.namespaces.create_namespace(NAMESPACE, bundles=2, replication_clusters=["standalone"])
    assert await admin.namespaces.get_namespaces("calls") == [NAMESPACE]
    assert await admin.namespaces.get_topics(NAMESPACE, mode="ALL") == []
    assert (await admin.namespaces.get_policies(NAMESPACE))["bundles"]["numBundles"] == 2
    bundles = await admin.namespaces.get_bundles(NAMESPACE)
    assert bundles["boundaries"] == ["0x00000000", "0x80000000", "0xffffffff"]
    with pytest.raises(AdminError):
        await admin.namespaces.get_namespaces_of_cluster("standalone", "calls")

    bundle = "0x00000000_0x80000000"
    quotas = admin.resource_quotas
    default = await quotas.get_default_resource_quota()
    await quotas.set_namespace_bundle_resource_quota(NAMESPACE, bundle, {**default, "memory": 33.0})
    assert (await quotas.get_namespace_bundle_resource_quota(NAMESPACE, bundle))["memory"] == 33
    await quotas.reset_namespace_bundle_resource_quota(NAMESPACE, bundle)
    await admin.namespaces.split_namespace_bundle(NAMESPACE, bundle, algorithm="range_equally_divide")
    assert (await admin.namespaces.get_bundles(NAMESPACE))["numBundles"] == 3

    await admin.namespaces.grant_permission_on_namespace(NAMESPACE, "r", ["produce"])
    assert (await admin.namespaces.get_permissions(NAMESPACE))["r"] == ["produce"]
    await admin.namespaces.revoke_permissions_on_namespace(NAMESPACE, "r")
    await admin.namespaces.grant_permission_on_subscription(NAMESPACE, "s", ["r"])
    assert await admin.namespaces.get_permission_on_subscription(NAMESPACE) == {"s": ["r"]}
    await admin.namespaces.revoke_permission_on_subscription(NAMESPACE, "s", "r")

    await admin.namespaces.set_properties(NAMESPACE, {"a": "1"})
    await admin.namespaces.set_property(NAMESPACE, "b", "2")
    assert await admin.namespaces.get_properties(NAMESPACE) == {"a": "1", "b": "2"}
    assert await admin.namespaces.get_property(NAMESPACE, "b") == "2"
    assert await admin.namespaces.remove_property(NAMESPACE, "b") == "2"
    await admin.namespaces.clear_properties(NAMESPACE)
    assert await admin.namespaces.get_properties(NAMESPACE) == {}


async def policies(group: Any, target: str, values: dict[Policy[Any], Any]) -> None:
    """Set, get and remove each policy, as far as the broker has the call."""
    for row, value in values.items():
        calls = group[row]
        if value is None:  # the broker offers no entry filters
            assert await calls.get(target) is None
            with pytest.raises(AdminError):
                await calls.set(target, {"entryFilterNames": "nobody"})
        else:
            await calls.set(target, value)
            await settled(partial(calls.get, target), value)
        place = row.namespace if target == NAMESPACE else row.topic
        if place is not None and place.removal:
            await calls.remove(target)


async def settings(group: Any, values: dict[str, Any]) -> None:
    """Set, get and remove settings that have calls of their own."""
    for name, value in values.items():
        await getattr(group, f"set_{name}")(NAMESPACE, value)
        await settled(partial(getattr(group, f"get_{name}"), NAMESPACE), value)
        removing = next(verb for verb in ("remove", "delete") if hasattr(group, f"{verb}_{name}"))
        await getattr(group, f"{removing}_{name}")(NAMESPACE)


async def odd_settings(admin: Admin) -> None:
    namespaces = admin.namespaces
    policies = admin.namespace_policies
    await policies.set_backlog_quota(NAMESPACE, {"limitSize": 5000, "limitTime": -1, "policy": "producer_exception"})
    quotas = await policies[rows.BACKLOG_QUOTAS].get(NAMESPACE)
    assert quotas is not None
    assert quotas["destination_storage"]["limitSize"] == 5000
    await policies.remove_backlog_quota(NAMESPACE)
    await policies[rows.DISPATCHER_PAUSE].set(NAMESPACE, True)
    assert await policies[rows.DISPATCHER_PAUSE].get(NAMESPACE) is True
    await policies[rows.DISPATCHER_PAUSE].remove(NAMESPACE)
    await policies[rows.OFFLOAD_LAG].set(NAMESPACE, 60_000)
    assert await policies[rows.OFFLOAD_LAG].get(NAMESPACE) == 60_000
    await policies[rows.OFFLOAD_LAG].remove(NAMESPACE)
    await namespaces.set_namespace_anti_affinity_group(NAMESPACE, "apart")
    assert await namespaces.get_anti_affinity_namespaces("calls", "standalone", "apart") == [NAMESPACE]
    await namespaces.delete_namespace_anti_affinity_group(NAMESPACE)
    await namespaces.update_migration_state(NAMESPACE, False)
    await policies[rows.OLDER_SCHEMA_STRATEGY].set(NAMESPACE, "Full")
    await policies[rows.SCHEMA_AUTO_UPDATE].set(NAMESPACE, True)
    await policies[rows.SCHEMA_STRATEGY].set(NAMESPACE, "ALWAYS_COMPATIBLE")
    await policies[rows.SUBSCRIPTION_AUTH_MODE].set(NAMESPACE, "None")


async def topics(admin: Admin, address: Address) -> None:
    of = admin.topics
    await of.create_non_partitioned_topic(TOPIC, {"made": "here"})
    assert same(await of.get_properties(TOPIC), {"made": "here"})
    await of.update_properties(TOPIC, {"more": "x"})
    await of.remove_properties(TOPIC, "made")
    found = await of.get_properties(TOPIC)
    assert same(found, {"more": "x"})
    assert "made" not in (found or ())
    await of.create_partitioned_topic(PARTED, 2, {"p": "q"})
    await of.update_partitioned_topic(PARTED, 3)
    metadata = await of.get_partitioned_topic_metadata(PARTED)
    assert metadata["partitions"] == 3
    assert same(metadata["properties"], {"p": "q"})
    await of.create_missed_partitions(PARTED)
    assert await of.get_partitioned_topic_list(NAMESPACE) == [PARTED]
    assert await of.get_list(NAMESPACE) == sorted([TOPIC, *(f"{PARTED}-partition-{n}" for n in range(3))])
    await of.grant_permission(TOPIC, "r", ["consume"])
    assert (await of.get_permissions(TOPIC))["r"] == ["consume"]
    await of.revoke_permissions(TOPIC, "r")
    enforced = admin.topic_policies[rows.SCHEMA_VALIDATION]
    await enforced.set(TOPIC, True)
    await settled(lambda: enforced.get(TOPIC), True)

    await shadows(admin)
    port = f":{address.port}"
    assert (await admin.lookups.lookup_topic(TOPIC))["brokerUrl"].endswith(port)
    assert list(await admin.lookups.lookup_partitioned_topic(PARTED)) == [f"{PARTED}-partition-{n}" for n in range(3)]
    bundle = await admin.lookups.get_bundle_range(TOPIC)
    assert bundle.startswith("0x")
    assert TOPIC in str(await admin.namespaces.get_topic_hash_positions(NAMESPACE, bundle))

    await admin.non_persistent_topics.create_partitioned_topic(FLEETING, 2)
    assert (await admin.non_persistent_topics.get_partitioned_topic_metadata(FLEETING))["partitions"] == 2
    part = f"{FLEETING}-partition-0"
    async with connect(address.service_url) as client, client.create_producer(part):
        assert len((await admin.non_persistent_topics.get_stats(part))["publishers"]) == 1
        assert await admin.non_persistent_topics.get_internal_stats(part)
        assert await admin.non_persistent_topics.get_list(NAMESPACE) == [part]
        where = await admin.lookups.get_bundle_range(part)
        assert await admin.non_persistent_topics.get_list_in_bundle(NAMESPACE, where) == [part]
    await admin.non_persistent_topics.unload(part)


async def shadows(admin: Admin) -> None:
    of = admin.topics
    shadow = f"{TOPIC}-shadow"
    await of.create_shadow_topic(shadow, TOPIC)
    assert await of.get_shadow_source(shadow) == TOPIC
    shadows = admin.topic_policies[rows.SHADOW_TOPICS]
    await shadows.set(TOPIC, [shadow])
    await settled(lambda: shadows.get(TOPIC), [shadow])
    await shadows.remove(TOPIC)
    await of.delete(shadow, force=True)


async def subscriptions(admin: Admin, address: Address) -> None:
    of = admin.topics
    await of.unload(TOPIC)  # Pulsar 4.2.4 stores no messages between a change of properties and an unload
    before = round(time.time() * 1000) - 60_000
    await of.create_subscription(TOPIC, "s/1", MessageId.earliest, properties={"k": "v"})
    assert await of.get_subscription_properties(TOPIC, "s/1") == {"k": "v"}
    await of.update_subscription_properties(TOPIC, "s/1", {})
    assert await of.get_subscriptions(TOPIC) == ["s/1"]
    async with connect(address.service_url, admin_url=address.admin_url) as client:
        async with client.create_producer(TOPIC, batching_enabled=False) as producer:
            ids = [await producer.send(b"m%d" % n, properties={"n": str(n)}, partition_key="k") for n in range(6)]
        assert (await client.admin.topics.get_message_id_by_index(TOPIC, 2)).entry == ids[2].entry
    assert (await of.get_last_message_id(TOPIC)).entry == ids[-1].entry
    assert (await of.get_message_id_by_timestamp(TOPIC, before)).entry == ids[0].entry
    assert (await of.get_message_id_by_index(TOPIC, 5)).entry == ids[5].entry
    peeked = await of.peek_messages(TOPIC, "s/1", 10)
    assert [(message.data(), message.message_id().entry) for message in peeked] == [
        (b"m%d" % n, ids[n].entry) for n in range(6)
    ]
    assert (peeked[1].properties(), peeked[1].partition_key()) == ({"n": "1"}, "k")
    assert abs(peeked[0].publish_timestamp() / 1000 - time.time()) < 60
    (examined,) = await of.examine_message(TOPIC, "earliest", 2)
    assert examined.data() == b"m1"
    (found,) = await of.get_messages_by_id(TOPIC, *ids[3].entry)
    assert found.data() == b"m3"

    await of.skip_messages(TOPIC, "s/1", 1)
    if is_pulsarium():
        await of.skip_by_message_ids(TOPIC, "s/1", [ids[2], ids[4]])
        assert await left(admin) == [b"m1", b"m3", b"m5"]
    else:
        with pytest.raises(errors.NotFound):  # PIP-423 came after 4.2
            await of.skip_by_message_ids(TOPIC, "s/1", [ids[2], ids[4]])
    assert (await of.analyze_subscription_backlog(TOPIC, "s/1"))["messages"] == (3 if is_pulsarium() else 5)
    await of.reset_cursor(TOPIC, "s/1", before)
    assert len(await left(admin)) == 6
    await of.reset_cursor_to(TOPIC, "s/1", ids[3], is_excluded=True)
    assert await left(admin) == [b"m4", b"m5"]
    await of.expire_messages_up_to(TOPIC, "s/1", ids[4])
    await settled(lambda: left(admin), [b"m5"])
    await of.expire_messages(TOPIC, "s/1", 3600)
    with suppress(errors.Conflict):  # a real broker refuses while the first expiry still runs
        await of.expire_messages_for_all_subscriptions(TOPIC, 3600)
    assert await left(admin) == [b"m5"]
    await of.skip_all_messages(TOPIC, "s/1")
    await of.create_subscription(PARTED, "s/1")  # a topic without the subscription is an error
    if is_pulsarium():
        await admin.namespaces.clear_namespace_backlog(NAMESPACE, subscription="s/1")
    else:  # the system topic of the policies has no subscription s/1
        with pytest.raises(errors.ServerSideError, match="Cursor not found"):
            await admin.namespaces.clear_namespace_backlog(NAMESPACE, subscription="s/1")
    assert await left(admin) == []
    await of.set_replicated_subscription_status(TOPIC, "s/1", True)
    assert await of.get_replicated_subscription_status(TOPIC, "s/1") == {TOPIC: True}

    await counted(admin, ids[0])
    await of.delete_subscription(TOPIC, "s/1", force=True)
    for topic in (TOPIC, PARTED):
        await of.create_subscription(topic, "s2")
    await admin.namespaces.unsubscribe_namespace(NAMESPACE, "s2")
    assert await of.get_subscriptions(TOPIC) == []


async def left(admin: Admin) -> list[bytes]:
    return [message.data() for message in await admin.topics.peek_messages(TOPIC, "s/1", 10)]


async def counted(admin: Admin, first: MessageId) -> None:
    of = admin.topics
    stats = await of.get_stats(TOPIC, get_precise_backlog=True)
    assert (stats["msgInCounter"], stats["subscriptions"]["s/1"]["msgBacklog"]) == (6, 0)
    assert (await of.get_internal_stats(TOPIC, metadata=True))["numberOfEntries"] == 6
    assert (await of.get_internal_info(TOPIC))["ledgers"]
    partitioned = await of.get_partitioned_stats(PARTED, per_partition=True)
    assert sorted(partitioned["partitions"]) == [f"{PARTED}-partition-{n}" for n in range(3)]
    assert len((await of.get_partitioned_internal_stats(PARTED))["partitions"]) == 3
    assert await of.get_backlog_size_by_message_id(TOPIC, first) > 0


async def topic_policies(admin: Admin) -> None:
    group = admin.topic_policies
    await policies(group, TOPIC, OF_TOPICS)
    await group.dispatch_rate_of("s2").set(TOPIC, RATE)
    await settled(lambda: group.dispatch_rate_of("s2").get(TOPIC), RATE)
    await group.set_backlog_quota(
        TOPIC, {"limitTime": 50, "limitSize": -1, "policy": "producer_exception"}, "message_age"
    )
    await settled(lambda: age(admin), 50)
    await group.remove_backlog_quota(TOPIC, "message_age")
    await group[rows.DISPATCHER_PAUSE].set(TOPIC, True)
    await settled(lambda: group[rows.DISPATCHER_PAUSE].get(TOPIC), True)
    await group[rows.DISPATCHER_PAUSE].remove(TOPIC)
    await group[rows.MAX_PRODUCERS].set(TOPIC, 44)
    await settled(lambda: group[rows.MAX_PRODUCERS].get(TOPIC), 44)
    await group.delete_topic_policies(TOPIC)
    await settled(lambda: group[rows.MAX_PRODUCERS].get(TOPIC), None)


async def age(admin: Admin) -> int | None:
    quotas = await admin.topic_policies[rows.BACKLOG_QUOTAS].get(TOPIC)
    return (quotas or {}).get("message_age", {}).get("limitTime")


async def schemas(admin: Admin) -> None:
    of = admin.schemas
    definition = '{"type":"record","name":"R","fields":[{"name":"a","type":["null","string"],"default":null}]}'
    await of.create_schema(TOPIC, {"type": "JSON", "schema": definition, "properties": {}})
    assert (await of.get_schema_info(TOPIC))["type"] == "JSON"
    assert (await of.get_schema_info(TOPIC, 0))["version"] == 0
    assert len(await of.get_all_schemas(TOPIC)) == 1
    assert await of.get_schema_metadata(TOPIC)
    verdict = await of.test_compatibility(TOPIC, {"type": "JSON", "schema": definition, "properties": {}})
    assert verdict["compatibility"] is True
    await of.delete_schema(TOPIC)


async def ends(admin: Admin) -> None:
    of = admin.topics
    await of.trigger_compaction(TOPIC)
    await settled(lambda: of.compaction_status(TOPIC), {"status": "SUCCESS"})
    assert (await of.offload_status(TOPIC))["status"] == "NOT_RUN"
    await of.trigger_offload(TOPIC, await of.get_last_message_id(TOPIC))  # fails: the broker has no driver
    await settled(lambda: of.offload_status(TOPIC), {"status": "ERROR"})
    await of.trim_topic(TOPIC)
    await of.unload(TOPIC)
    await admin.namespaces.unload(NAMESPACE)
    await of.truncate(TOPIC)
    assert isinstance(await of.terminate_topic(TOPIC), MessageId)
    assert sorted(await of.terminate_partitioned_topic(PARTED)) == [0, 1, 2]
    await of.delete_partitioned_topic(PARTED, force=True)
    await of.delete(TOPIC, force=True)
    await admin.resource_groups.delete_resource_group("calls")
    await admin.namespaces.delete_namespace(NAMESPACE, force=True)
    await admin.tenants.delete_tenant("calls")
    assert "calls" not in await admin.tenants.get_tenants()


@on_both
async def test_the_owner_of_a_topic_answers(launch: Launch) -> None:
    """Another broker redirects the request to the owner, and our client follows with the same body."""
    if not is_pulsarium():
        pytest.skip("needs two brokers in one process")
    process = launch("--brokers", "2")
    names = [f"persistent://public/default/{n}" for n in range(8)]
    first, second = (address.admin_url for address in process.addresses)
    async with connect_admin(first) as here, connect_admin(second) as there:
        for name in names:
            await here.topics.create_non_partitioned_topic(name)
        owners = {(await here.lookups.lookup_topic(name))["httpUrl"] for name in names}
        for name in names:
            await there.topics.create_subscription(name, "s", properties={"n": name})
            assert await here.topics.get_subscription_properties(name, "s") == {"n": name}
    assert owners == {first, second}
