"""/admin/v2/namespaces."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from tests.broker.web.admin.rest import ADMIN, NAMESPACES, TENANTS, Rest, rest_of
from tests.broker.wire import TOPIC, Bed, Type, Wire

FRESH = {
    "auth_policies": {"namespace_auth": {}, "destination_auth": {}, "subscription_auth_roles": {}},
    "replication_clusters": ["standalone"],
    "allowed_clusters": [],
    "bundles": {"boundaries": ["0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff"], "numBundles": 4},
    "backlog_quota_map": {},
    "clusterDispatchRate": {},
    "topicDispatchRate": {},
    "subscriptionDispatchRate": {},
    "replicatorDispatchRate": {},
    "clusterSubscribeRate": {},
    "publishMaxMessageRate": {},
    "latency_stats_sample_rate": {},
    "deleted": False,
    "encryption_required": False,
    "subscription_auth_mode": "None",
    "offload_threshold": -1,
    "offload_threshold_in_seconds": -1,
    "schema_compatibility_strategy": "UNDEFINED",
    "is_allow_auto_update_schema": True,
    "schema_validation_enforced": False,
    "subscription_types_enabled": [],
    "properties": {},
    "migrated": False,
}


@pytest.mark.parametrize("name", ["public/default", "pulsar/system"])
async def test_a_fresh_namespace_shows_its_fields_in_pulsars_order(rest: Rest, name: str) -> None:
    policies = await rest.get(f"{NAMESPACES}/{name}")
    assert policies == FRESH
    assert list(policies) == list(FRESH)


async def test_policies_come_with_a_new_namespace(rest: Rest) -> None:
    given = {
        "retention_policies": {"retentionTimeInMinutes": 5, "retentionSizeInMB": 5},
        "message_ttl_in_seconds": 60,
        "bundles": {"boundaries": ["0x00000000", "0x80000000", "0xffffffff"], "numBundles": 2},
        "unknown_policy": 1,
    }
    await rest.done("PUT", f"{NAMESPACES}/public/n", given)
    policies = await rest.get(f"{NAMESPACES}/public/n")
    del given["unknown_policy"]
    assert policies == FRESH | given
    order = list(policies)
    assert order.index("message_ttl_in_seconds") == order.index("latency_stats_sample_rate") + 1
    assert order.index("retention_policies") == order.index("deleted") - 1


@pytest.mark.parametrize(
    ("bundles", "count"),
    [({"numBundles": 8}, 8), ({"numBundles": 3}, 3), ({"numBundles": 0}, 4), ({"numBundles": -1}, 4)],
)
async def test_a_namespace_is_cut_into_as_many_bundles_as_asked(rest: Rest, bundles: Any, count: int) -> None:
    await rest.done("PUT", f"{NAMESPACES}/public/n", {"bundles": bundles})
    shown = await rest.get(f"{NAMESPACES}/public/n/bundles")
    assert shown["numBundles"] == count == len(shown["boundaries"]) - 1
    if count == 8:
        assert shown["boundaries"] == [f"0x{i}0000000" for i in "02468ace"] + ["0xffffffff"]
    if count == 3:
        assert shown["boundaries"] == ["0x00000000", "0x55555555", "0xaaaaaaaa", "0xffffffff"]


@pytest.mark.parametrize("boundaries", [["x"], "0x00000000", [None], [[]]])
async def test_boundaries_that_are_no_hexadecimal_numbers_are_refused(rest: Rest, boundaries: Any) -> None:
    status, _ = await rest.refused("PUT", f"{NAMESPACES}/public/n", {"bundles": {"boundaries": boundaries}})
    assert status == 400


@pytest.mark.serving(Config(forceDeleteNamespaceAllowed=True))
async def test_a_namespace_is_deleted_by_force_with_its_clients(bed: Bed) -> None:
    rest, wire = rest_of(bed), await bed.connect()
    await wire.producer()
    await rest.done("DELETE", f"{NAMESPACES}/public/default?force=true")
    await wire.expect(Type.CLOSE_PRODUCER)
    assert await rest.get(f"{NAMESPACES}/public") == []


@pytest.mark.serving(Config(forceDeleteNamespaceAllowed=True))
async def test_a_namespace_of_several_clusters_is_not_deleted_even_by_force(rest: Rest) -> None:
    url, clusters = f"{NAMESPACES}/public/n", ["standalone", "other"]
    assert (await rest.call("PUT", f"{ADMIN}/clusters/other", {})).status == 200
    await rest.done("POST", f"{TENANTS}/public", {"allowedClusters": clusters})
    await rest.done("PUT", url, {"replication_clusters": clusters})
    for query in ("", "?force=true"):
        status, reason = await rest.refused("DELETE", url + query)
        assert (status, reason.partition(".")[0]) == (412, "Cannot delete the global namespace public/n")
    assert (await rest.call("POST", f"{url}/replication", ["standalone"])).status == 200
    await rest.done("DELETE", url)


@pytest.mark.req("B-50")
async def test_an_unloaded_namespace_disconnects_its_clients(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    await wire.subscribe(TOPIC.replace("persistent", "non-persistent"))
    await rest.done("PUT", f"{NAMESPACES}/public/default/unload")
    assert {(await wire.next()).command.type for _ in range(2)} == {Type.CLOSE_PRODUCER, Type.CLOSE_CONSUMER}
    assert await rest.refused("PUT", f"{NAMESPACES}/public/nope/unload") == (404, "Namespace not found")


async def test_bundles_of_a_deleted_namespace_have_no_owner(bed: Bed, rest: Rest) -> None:
    """A namespace of the same name may have other bundles."""
    url = f"{NAMESPACES}/public/gone"
    await rest.done("PUT", url)
    ownership = bed.broker.cluster.ownership
    ownership.assign("public/gone", "0x00000000_0x40000000", bed.broker)
    kept = ("public/default", "0x00000000_0x40000000")
    ownership.assign(*kept, bed.broker)
    await rest.done("DELETE", url)
    assert ownership.bundles_of(bed.broker) == [kept]


@pytest.mark.serving(Config(maxNamespacesPerTenant=2))
async def test_a_tenant_gets_no_more_namespaces_above_the_limit(rest: Rest) -> None:
    """A tenant may have one more, as in Pulsar, and the limit comes before a name that is taken."""
    full = (412, "Exceed the maximum number of namespace in tenant :t")
    for tenant in ("t", "t2"):
        await rest.done("PUT", f"/admin/v2/tenants/{tenant}", {"allowedClusters": ["standalone"], "adminRoles": []})
    for name in "abc":
        await rest.done("PUT", f"{NAMESPACES}/t/{name}")
    assert await rest.refused("PUT", f"{NAMESPACES}/t/d") == full
    assert await rest.refused("PUT", f"{NAMESPACES}/t/a") == full
    await rest.done("PUT", f"{NAMESPACES}/t2/a")
    assert (await rest.call("POST", "/admin/v2/brokers/configuration/maxNamespacesPerTenant/3")).status == 200
    await rest.done("PUT", f"{NAMESPACES}/t/d")
