"""Settings of cluster/kept.py, which are only stored and shown, beyond the recorded calls (conformance/rest)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pulsarium.broker.model.namespace.metadata import LOCAL_POLICIES
from tests.broker.web.admin.rest import ADMIN, NAMESPACES, Rest, rest_of
from tests.broker.web.admin.steps import EMPTY, PAGE, Reason, Step, Text, play
from tests.broker.wire import Bed, Type, Wire, serving

DEFAULT = f"{NAMESPACES}/public/default"
CLUSTER = f"{ADMIN}/clusters/standalone"
NOPE = f"{ADMIN}/clusters/nope"
NO_CLUSTER = {"reason": "Cluster nope does not exist."}
ISOLATION = f"{CLUSTER}/namespaceIsolationPolicies"
FAILOVER = {"parameters": {"min_limit": "1", "usage_threshold": "80"}, "policy_type": "min_available"}
POLICY = {"namespaces": ["public/.*"], "primary": ["localhost.*"], "secondary": [], "auto_failover_policy": FAILOVER}


@pytest.mark.parametrize("data", [{"serviceUrl": 1}, {"serviceUrl": ["http://x"]}, {"peerClusterNames": "c2"}, "x"])
async def test_a_cluster_is_not_made_of_data_of_wrong_types(rest: Rest, data: Any) -> None:
    assert (await rest.call("PUT", f"{ADMIN}/clusters/c2", data)).status == 400


@pytest.mark.parametrize("peers", [{"a": 1}, [[]], "c2", 5])
async def test_the_peers_of_a_cluster_are_a_list_of_names(rest: Rest, peers: Any) -> None:
    assert (await rest.call("POST", f"{CLUSTER}/peers", peers)).status == 400


async def test_a_cluster_is_not_updated_without_data(rest: Rest) -> None:
    assert (await rest.refused("POST", CLUSTER, None))[0] == 400


async def test_a_rack_moves_to_another_group_and_has_no_slash_inside(rest: Rest) -> None:
    url, rack = f"{ADMIN}/bookies/racks-info", {"rack": "/rack1", "hostname": "h1"}
    await play(
        rest,
        Step(f"POST {url}/b1%3A3181?group=g1", 204, value=rack),
        Step(f"POST {url}/b2%3A3181?group=g1", 412, Reason("Bookie 'rack' parameter is invalid"), {"rack": "/a/b"}),
        Step(f"POST {url}/b2%3A3181?group=g1", 400, Text(PAGE)),
        Step(f"POST {url}/b2%3A3181?group=g1", 204, value={}),
        Step(f"POST {url}/b1%3A3181?group=g2", 204, value=rack),
        Step(f"GET {url}", 200, {"g1": {"b2:3181": {}}, "g2": {"b1:3181": rack}}),
    )


async def test_a_broker_is_in_one_failure_domain(rest: Rest) -> None:
    url, one, two = f"{CLUSTER}/failureDomains", {"brokers": ["b:8080"]}, {"brokers": ["b:8080", "c:8080"]}
    await play(
        rest,
        Step(f"POST {url}/d1", 204, value=one),
        Step(f"POST {url}/d1", 204, value=two),
        Step(f"POST {url}/d2", 409, {"reason": "[b:8080] already exists in d1"}, one),
        Step(f"POST {url}/d%2F3", 204, value={}),
        Step(f"POST {url}/d4", 204),
        Step(f"GET {url}", 200, {"d1": two, "d/3": {}}),
        Step(f"DELETE {NOPE}/failureDomains/d", 412, NO_CLUSTER),
        Step(f"POST {url}/d", 400, Text("Cannot construct instance of `java.util.HashSet`"), {"brokers": "x"}),
    )


@pytest.mark.parametrize(
    "missing",
    [
        {"namespaces": None},
        {"primary": []},
        {"secondary": None},
        {"auto_failover_policy": None},
        {"auto_failover_policy": FAILOVER | {"policy_type": "wrong"}},
        {"auto_failover_policy": FAILOVER | {"parameters": {"min_limit": "1"}}},
        {"primary": ["("]},
    ],
)
async def test_an_isolation_policy_that_says_too_little_is_refused(rest: Rest, missing: Any) -> None:
    status, reason = await rest.refused("POST", f"{ISOLATION}/p", POLICY | missing)
    assert status == 400
    assert reason.startswith('Invalid format of input policy data. policy: p; data: {\n  "namespaces" : ')


async def test_isolation_policies_are_those_of_a_cluster_that_is_there(rest: Rest) -> None:
    nope = f"{NOPE}/namespaceIsolationPolicies"
    await play(
        rest,
        Step(f"GET {nope}/p", 412, NO_CLUSTER),
        Step(f"GET {nope}/brokers", 412, NO_CLUSTER),
        Step(f"GET {nope}/brokers/b", 412, NO_CLUSTER),
        Step(f"DELETE {nope}/p", 412, NO_CLUSTER),
        Step(f"POST {ISOLATION}/p", 400, Text("Cannot construct instance"), "x"),
    )


# Columns: unload_scope, the policy before, whether clients of public/default are disconnected.
@pytest.mark.parametrize(
    ("scope", "before", "unloads"),
    [
        ("none", None, False),
        (None, None, True),
        ("changed", POLICY, False),
        ("changed", POLICY | {"primary": ["other"]}, True),
        ("all_matching", POLICY, True),
    ],
)
async def test_an_isolation_policy_unloads_what_its_scope_says(
    rest: Rest, wire: Wire, scope: str | None, before: Any, unloads: bool
) -> None:
    if before is not None:
        await rest.done("POST", f"{ISOLATION}/p", before)
    await wire.producer()
    await rest.done("POST", f"{ISOLATION}/p", POLICY | {"unload_scope": scope})
    await (wire.expect(Type.CLOSE_PRODUCER) if unloads else wire.quiet())


async def test_an_isolation_policy_reads_patterns_as_java_does(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    await rest.done("POST", f"{ISOLATION}/p", POLICY | {"namespaces": [r"public/(?!x)\p{Alpha}++"]})
    await wire.expect(Type.CLOSE_PRODUCER)


async def test_a_cluster_says_where_it_migrated(rest: Rest) -> None:
    url = f"{CLUSTER}/migrate"
    there = {"serviceUrl": "http://example.com:8080", "brokerServiceUrl": "pulsar://example.com:6650"}
    await play(
        rest,
        Step(f"POST {url}?migrated=true", 200, value=there | {"other": 1}),
        Step(f"GET {url}", 200, {"migrated": True, "migratedClusterUrl": there | {"empty": False}}),
        Step(f"POST {url}?migrated=true", 200, value={}),
        Step(f"GET {url}", 200, {"migrated": True, "migratedClusterUrl": {"empty": False}}),
        Step(f"POST {url}?migrated=false", 200),
        Step(f"GET {url}", 200, {"migrated": False}),
        Step(f"POST {url}?migrated=true", 400, Text(PAGE)),
    )


async def test_a_namespace_says_that_it_migrated(rest: Rest) -> None:
    for migrated in (True, False):
        await rest.done("POST", f"{DEFAULT}/migration", migrated)
        assert (await rest.get(DEFAULT))["migrated"] is migrated


async def test_resource_groups_come_and_go_unless_a_namespace_is_in_them(rest: Rest) -> None:
    url, of_default, of_missing = (
        f"{ADMIN}/resourcegroups",
        f"{DEFAULT}/resourcegroup",
        f"{NAMESPACES}/public/missing/resourcegroup",
    )
    group, none = {"publishRateInMsgs": 10, "publishRateInBytes": 1000}, {"reason": "ResourceGroup does not exist"}
    shown = group | {"dispatchRateInMsgs": -1, "dispatchRateInBytes": -1}
    wrong = Text("Cannot deserialize value of type `java.lang.Integer`")
    await play(
        rest,
        Step(f"GET {url}", 200, []),
        Step(f"GET {url}/rg", 404, none),
        Step(f"DELETE {url}/rg", 404, none),
        Step(f"POST {of_default}/rg", 412, none),
        Step(f"PUT {url}/rg", 204, value=group),
        Step(f"GET {url}/rg", 200, shown),
        Step(f"PUT {url}/rg", 204, value={"dispatchRateInMsgs": 5, "publishRateInMsgs": None}),
        Step(f"GET {url}/rg", 200, shown | {"dispatchRateInMsgs": 5}),
        Step(f"PUT {url}/b", 400, wrong, {"publishRateInMsgs": "x"}),
        Step(f"PUT {url}/b", 400, Reason("null")),
        Step(f"GET {url}", 200, ["rg"]),
        Step(f"POST {of_default}/rg", 204),
        Step(f"POST {of_missing}/rg", 404, {"reason": "Namespace policies does not exist"}),
        Step(f"GET {of_default}", 200, Text("rg")),
        Step(f"DELETE {url}/rg", 412, {"reason": "ResourceGroup is in use"}),
        Step(f"DELETE {of_default}", 204),
        Step(f"DELETE {url}/rg", 204),
        Step(f"GET {of_missing}", 404, {"reason": "Namespace does not exist"}),
    )


async def test_quotas_hold_for_a_bundle_or_by_default(rest: Rest) -> None:
    url = f"{ADMIN}/resource-quotas"
    one, other = f"{url}/public/default/0x00000000_0x40000000", f"{url}/public/default/0x40000000_0x80000000"
    rates = {"msgRateIn": 40.0, "msgRateOut": 120.0, "bandwidthIn": 100000.0, "bandwidthOut": 300000.0}
    standard = {**rates, "memory": 80.0, "dynamic": True}
    quota = standard | {"msgRateIn": -1.0, "dynamic": False}
    zeros = dict.fromkeys(standard, 0.0) | {"dynamic": True, "memory": 1.0}
    await play(
        rest,
        Step(f"POST {one}", 204, value={"memory": 1}),
        Step(f"GET {one}", 200, zeros),
        Step(f"POST {one}", 400, Text("Cannot deserialize value of type `double`"), {"memory": "x"}),
        Step(f"DELETE {url}/public/default/junk", 412, {"reason": "Invalid bundle range: junk"}),
        Step(f"POST {url}", 204, value=quota),
        Step(f"POST {url}", 204),
        Step(f"GET {url}", 200, quota),
        Step(f"GET {one}", 200, zeros),
        Step(f"GET {other}", 200, quota),
    )


async def test_a_namespace_has_local_policies_once_a_topic_was_looked_for(rest: Rest, wire: Wire) -> None:
    url = "{}/public/{}/persistence/bookieAffinity".format
    absent = {"reason": "Namespace local-policies does not exist"}
    names = ("by-client", "by-http", "by-topic")
    for name in names:
        await rest.done("PUT", f"{NAMESPACES}/public/{name}")
        await play(rest, Step(f"GET {url(NAMESPACES, name)}", 404, absent))
    await wire.ask(Type.LOOKUP, topic="persistent://public/by-client/t")
    assert (await rest.call("GET", "/lookup/v2/topic/persistent/public/by-http/t")).status == 200
    assert (await rest.call("GET", f"{ADMIN}/persistent/public/by-topic/t/stats")).status == 404
    for name in names:
        await play(rest, Step(f"GET {url(NAMESPACES, name)}", 200), Step(f"DELETE {NAMESPACES}/public/{name}", 204))
        await rest.done("PUT", f"{NAMESPACES}/public/{name}")
        await play(rest, Step(f"GET {url(NAMESPACES, name)}", 404, absent))


async def test_a_namespace_has_local_policies_once_its_bookie_affinity_was_removed(rest: Rest) -> None:
    url = f"{DEFAULT}/persistence/bookieAffinity"
    absent = {"reason": "Namespace local-policies does not exist"}
    await play(rest, Step(f"GET {url}", 404, absent), Step(f"DELETE {url}", 204), Step(f"GET {url}", 200))


async def test_a_removal_of_an_anti_affinity_group_makes_no_record(rest: Rest, bed: Bed) -> None:
    for namespace in ("public/default", "public/absent"):
        await play(rest, Step(f"DELETE {NAMESPACES}/{namespace}/antiAffinity", 204))
        assert bed.broker.metadata.records.get(LOCAL_POLICIES, namespace) is None


async def test_the_namespaces_of_an_anti_affinity_group_are_found_by_its_name_in_any_case(rest: Rest) -> None:
    url = f"{NAMESPACES}/standalone/antiAffinity"
    await rest.done("PUT", f"{NAMESPACES}/public/n")
    for name in ("default", "n"):
        answer = await rest.call("POST", f"{NAMESPACES}/public/{name}/antiAffinity", body=b"Group-1")
        assert answer.status == 204
    await play(
        rest,
        Step(f"GET {url}/group-1?tenant=public", 200, ["public/default", "public/n"]),
        Step(f"DELETE {NAMESPACES}/public/n", 204),
        Step(f"PUT {NAMESPACES}/public/n", 204),
        Step(f"GET {url}/group-1?tenant=public", 200, ["public/default"]),
    )


async def test_kept_records_outlive_the_broker(tmp_path: Path) -> None:
    url = f"{DEFAULT}/persistence/bookieAffinity"
    groups = {"bookkeeperAffinityGroupPrimary": "a", "bookkeeperAffinityGroupSecondary": "b"}
    async with serving(data=tmp_path) as bed:
        await play(rest_of(bed), Step(f"POST {url}", 204, value={}), Step(f"GET {url}", 200, {}))
        await play(rest_of(bed), Step(f"POST {url}", 204, EMPTY, groups))
    async with serving(data=tmp_path) as bed:
        await play(rest_of(bed), Step(f"GET {url}", 200, groups))
