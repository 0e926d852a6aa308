"""/admin/v2: what has moved."""

from __future__ import annotations

from tests.broker.admin.rest import ADMIN, NAMESPACES, Rest
from tests.broker.admin.steps import PAGE, Reason, Step, Text, play

URL = f"{ADMIN}/clusters/standalone/migrate"
METADATA = f"{ADMIN}/metadata/migration"
THERE = {"serviceUrl": "http://example.com:8080", "brokerServiceUrl": "pulsar://example.com:6650"}
NOT_SAID = {"reason": "Cluster does not exist"}


async def test_a_cluster(rest: Rest) -> None:
    await play(
        rest,
        Step(f"GET {URL}", 404, NOT_SAID),
        Step(f"POST {URL}?migrated=true", 200, value=THERE | {"other": 1}),
        Step(f"GET {URL}", 200, {"migrated": True, "migratedClusterUrl": THERE | {"empty": False}}),
        Step(f"POST {URL}?migrated=true", 200, value={}),
        Step(f"GET {URL}", 200, {"migrated": True, "migratedClusterUrl": {"empty": False}}),
        Step(f"POST {URL}?migrated=false", 200),
        Step(f"GET {URL}", 200, {"migrated": False}),
        Step(f"POST {URL}?migrated=true", 400, Text(PAGE)),
        Step(f"GET {ADMIN}/clusters/nope/migrate", 404, NOT_SAID),
    )


async def test_a_namespace(rest: Rest) -> None:
    namespace = f"{NAMESPACES}/public/default"
    await rest.done("POST", f"{namespace}/migration", True)
    assert (await rest.get(namespace))["migrated"] is True
    await rest.done("POST", f"{namespace}/migration", False)
    assert (await rest.get(namespace))["migrated"] is False
    await play(
        rest,
        Step(f"POST {NAMESPACES}/public/missing/migration", 204, value=True),
        Step(f"POST {namespace}/migration", 400, Text("Cannot deserialize value of type `boolean`"), "x"),
        Step(f"POST {namespace}/migration", 400, Text("The request entity cannot be empty.")),
    )


async def test_the_metadata(rest: Rest) -> None:
    unsupported = Reason("Metadata store is not configured for migration.")
    await play(
        rest,
        Step(f"GET {METADATA}/status", 200, {"phase": "NOT_STARTED"}),
        Step(f"POST {METADATA}/start", 400, {"reason": "Target URL is required"}),
        Step(f"POST {METADATA}/start?target=junk", 400, unsupported),
    )
