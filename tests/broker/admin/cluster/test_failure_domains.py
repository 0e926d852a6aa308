"""/admin/v2/clusters: failure domains."""

from __future__ import annotations

from tests.broker.admin.rest import ADMIN, Rest
from tests.broker.admin.steps import Step, Text, play

URL = f"{ADMIN}/clusters/standalone/failureDomains"
NOPE = f"{ADMIN}/clusters/nope/failureDomains"
ONE = {"brokers": ["b:8080"]}
TWO = {"brokers": ["b:8080", "c:8080"]}
NO_CLUSTER = {"reason": "Cluster nope does not exist."}


async def test_their_life(rest: Rest) -> None:
    gone = {"reason": "Domain-name d1 or cluster standalone does not exist"}
    await play(
        rest,
        Step(f"GET {URL}", 200, {}),
        Step(f"GET {URL}/d1", 404, {"reason": "Domain d1 for cluster standalone does not exist"}),
        Step(f"POST {URL}/d1", 204, value=ONE),
        Step(f"GET {URL}", 200, {"d1": ONE}),
        Step(f"GET {URL}/d1", 200, ONE),
        Step(f"POST {URL}/d1", 204, value=TWO),
        Step(f"POST {URL}/d2", 409, {"reason": "[b:8080] already exists in d1"}, ONE),
        Step(f"POST {URL}/d%2F3", 204, value={}),
        Step(f"POST {URL}/d4", 204),
        Step(f"GET {URL}", 200, {"d1": TWO, "d/3": {}}),
        Step(f"DELETE {URL}/d1", 200),
        Step(f"DELETE {URL}/d1", 404, gone),
        Step(f"GET {URL}", 200, {"d/3": {}}),
    )


async def test_what_is_refused(rest: Rest) -> None:
    await play(
        rest,
        Step(f"GET {NOPE}", 200, {}),
        Step(f"GET {NOPE}/d", 412, NO_CLUSTER),
        Step(f"POST {NOPE}/d", 412, NO_CLUSTER, ONE),
        Step(f"DELETE {NOPE}/d", 412, NO_CLUSTER),
        Step(f"POST {URL}/d", 400, Text("Cannot construct instance of `java.util.HashSet`"), {"brokers": "x"}),
    )
