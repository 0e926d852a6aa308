"""/admin/v2/clusters: isolation policies."""

from __future__ import annotations

from typing import Any

import pytest

from tests.broker.admin.rest import ADMIN, Rest
from tests.broker.admin.steps import Step, Text, play
from tests.broker.wire import Type, Wire

URL = f"{ADMIN}/clusters/standalone/namespaceIsolationPolicies"
NOPE = f"{ADMIN}/clusters/nope/namespaceIsolationPolicies"
FAILOVER = {"parameters": {"min_limit": "1", "usage_threshold": "80"}, "policy_type": "min_available"}
POLICY = {"namespaces": ["public/.*"], "primary": ["localhost.*"], "secondary": [], "auto_failover_policy": FAILOVER}
NONE_SET = {"reason": "NamespaceIsolationPolicies for cluster standalone does not exist"}
NO_CLUSTER = {"reason": "Cluster nope does not exist."}
HERE = {"brokerName": "localhost:8080", "policyName": "p", "namespaceRegex": ["public/.*"], "primary": True}


async def test_their_life(rest: Rest) -> None:
    second = POLICY | {"primary": ["other"], "secondary": ["local.*"], "namespaces": ["x"]}
    both = {**HERE, "policyName": "q", "namespaceRegex": ["public/.*", "x"], "primary": False}
    await play(
        rest,
        Step(f"GET {URL}", 404, NONE_SET),
        Step(f"GET {URL}/p", 404, NONE_SET),
        Step(f"GET {URL}/brokers", 404, NONE_SET),
        Step(f"POST {URL}/p", 204, value=POLICY),
        Step(f"GET {URL}", 200, {"p": POLICY}),
        Step(f"GET {URL}/p", 200, POLICY),
        Step(f"GET {URL}/none", 404, {"reason": "Cannot find NamespaceIsolationPolicy none for cluster standalone"}),
        Step(f"GET {URL}/brokers", 200, [HERE]),
        Step(f"GET {URL}/brokers/localhost%3A8080", 200, HERE),
        Step(f"GET {URL}/brokers/n%3A1", 200, {"brokerName": "n:1", "namespaceRegex": [], "primary": False}),
        Step(f"POST {URL}/q", 204, value=second | {"unload_scope": "none"}),
        Step(f"GET {URL}/brokers", 200, [both]),
        Step(f"DELETE {URL}/p", 204),
        Step(f"DELETE {URL}/q", 204),
        Step(f"DELETE {URL}/none", 204),
        Step(f"GET {URL}", 200, {}),
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
async def test_policies_that_say_too_little(rest: Rest, missing: Any) -> None:
    status, reason = await rest.refused("POST", f"{URL}/p", POLICY | missing)
    assert status == 400
    assert reason.startswith('Invalid format of input policy data. policy: p; data: {\n  "namespaces" : ')


async def test_how_a_wrong_one_is_shown(rest: Rest) -> None:
    _, reason = await rest.refused("POST", f"{URL}/p", {"namespaces": ["t1/.*"], "primary": ["x"]})
    shown = (
        '{\n  "namespaces" : [ "t1/.*" ],\n  "primary" : [ "x" ],\n  "secondary" : null,\n'
        '  "auto_failover_policy" : null,\n  "unload_scope" : null\n}'
    )
    assert reason == f"Invalid format of input policy data. policy: p; data: {shown}"


async def test_clusters_that_there_are_not(rest: Rest) -> None:
    await play(
        rest,
        Step(f"GET {NOPE}", 404, NO_CLUSTER),
        Step(f"GET {NOPE}/p", 412, NO_CLUSTER),
        Step(f"GET {NOPE}/brokers", 412, NO_CLUSTER),
        Step(f"GET {NOPE}/brokers/b", 412, NO_CLUSTER),
        Step(f"POST {NOPE}/p", 412, NO_CLUSTER, POLICY),
        Step(f"DELETE {NOPE}/p", 412, NO_CLUSTER),
        Step(f"POST {URL}/p", 400, Text("Cannot construct instance"), "x"),
    )


# unload_scope, the policy before, whether clients of public/default are disconnected
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
async def test_what_is_unloaded(rest: Rest, wire: Wire, scope: str | None, before: Any, unloads: bool) -> None:
    if before is not None:
        await rest.done("POST", f"{URL}/p", before)
    await wire.producer()
    await rest.done("POST", f"{URL}/p", POLICY | {"unload_scope": scope})
    if unloads:
        await wire.expect(Type.CLOSE_PRODUCER)
    else:
        await wire.quiet()
