"""/admin/v2: which clusters have copies; shadow topics."""

from __future__ import annotations

from tests.broker.admin.rest import ADMIN, NAMESPACES, NON_PERSISTENT, TENANTS, TOPICS, Rest
from tests.broker.admin.steps import Reason, Step, Text, play

DEFAULT = f"{NAMESPACES}/public/default"
MISSING = f"{NAMESPACES}/public/missing"
TOPIC = f"{TOPICS}/t"
HERE = ["standalone"]
BOTH = ["standalone", "other"]
NONE_GIVEN = {"reason": "ClusterIds should not be null or empty"}
ABSENT = {"reason": "Namespace does not exist"}


async def other_cluster(rest: Rest, *, allowed: bool) -> None:
    """A second cluster, which tenant public may use or not."""
    assert (await rest.call("PUT", f"{ADMIN}/clusters/other", {})).status == 200
    if allowed:
        await rest.done("POST", f"{TENANTS}/public", {"allowedClusters": BOTH})


async def test_clusters_of_a_namespace(rest: Rest) -> None:
    url = f"{DEFAULT}/replication"
    await other_cluster(rest, allowed=False)
    await play(
        rest,
        Step(f"GET {url}", 200, HERE),
        Step(f"POST {url}", 412, NONE_GIVEN),
        Step(f"POST {url}", 412, NONE_GIVEN, None),
        Step(f"POST {url}", 412, NONE_GIVEN, []),
        Step(f"POST {url}", 403, {"reason": "Invalid cluster id: nope"}, ["nope"]),
        Step(
            f"POST {url}", 403, Reason("Cluster [other] is not in the list of allowed clusters list for tenant"), BOTH
        ),
        Step(f"POST {url}", 400, Text("Cannot construct instance of `java.util.ArrayList`"), "x"),
        Step(f"POST {url}", 200, value=HERE),
        Step(f"POST {TENANTS}/public", 204, value={"allowedClusters": BOTH}),
        Step(f"POST {url}", 200, value=BOTH),
        Step(f"GET {url}", 200, BOTH),
        Step(f"GET {MISSING}/replication", 404, ABSENT),
        Step(f"POST {MISSING}/replication", 404, ABSENT, HERE),
    )


async def test_clusters_that_a_namespace_may_have(rest: Rest) -> None:
    url = f"{DEFAULT}/allowedClusters"
    await other_cluster(rest, allowed=True)
    left_out = "Allowed clusters do not contain the replication cluster [standalone]. "
    outside = "Cluster [other] is not in the list of allowed clusters list for namespace [public/default]"
    await play(
        rest,
        Step(f"POST {url}", 400, Reason(left_out), []),
        Step(
            f"POST {url}",
            403,
            Reason("Cluster [nope] is not in the list of allowed clusters list for tenant [public]"),
            ["nope"],
        ),
        Step(f"POST {url}", 200, value=HERE),
        Step(f"GET {url}", 200, HERE),
        Step(f"POST {DEFAULT}/replication", 400, {"reason": outside}, BOTH),
        Step(f"GET {MISSING}/allowedClusters", 404, ABSENT),
        Step(f"POST {MISSING}/allowedClusters", 404, ABSENT, HERE),
    )


async def test_clusters_of_a_topic(rest: Rest) -> None:
    url = f"{TOPIC}/replication"
    await rest.done("PUT", TOPIC)
    local = {"reason": "Can not remove local cluster from the local topic-level replication clusters policy"}
    await play(
        rest,
        Step(f"GET {url}", 200),
        Step(f"GET {url}?applied=true", 200, HERE),
        Step(f"POST {url}", 412, NONE_GIVEN, []),
        Step(f"POST {url}", 412, local, ["nope"]),
        Step(f"POST {url}", 403, {"reason": "Invalid cluster id: nope"}, ["standalone", "nope"]),
        Step(f"POST {url}", 204, value=HERE),
        Step(f"GET {url}", 200, HERE),
        Step(f"DELETE {url}", 204),
        Step(f"GET {url}", 200),
    )


async def test_clusters_of_a_topic_for_all_clusters(rest: Rest) -> None:
    url = f"{TOPIC}/replication?isGlobal=true"
    await rest.done("PUT", TOPIC)
    await other_cluster(rest, allowed=True)
    await play(
        rest,
        Step(f"POST {url}", 412, Reason("Please do not use the global topic level policy when"), HERE),
        Step(f"POST {DEFAULT}/replication", 200, value=BOTH),
        Step(f"POST {url}", 412, Reason("The policies at the global topic level will only be copied to"), ["nope"]),
        Step(f"POST {url}", 204, value=["other"]),
        Step(f"GET {url}", 200, ["other"]),
    )


async def test_shadow_topics(rest: Rest) -> None:
    url, shadow = f"{TOPIC}/shadowTopics", "persistent://public/default/shadow"
    await rest.done("PUT", TOPIC)
    only = {"reason": "Only persistent topic can be set as shadow topic"}
    await play(
        rest,
        Step(f"GET {url}", 200),
        Step(f"PUT {url}", 412, {"reason": f"Shadow topic [{shadow}] not exists."}, [shadow]),
        Step(f"PUT {TOPICS}/shadow", 204),
        Step(f"PUT {url}", 204, value=[shadow]),
        Step(f"GET {url}", 200, [shadow]),
        Step(f"PUT {url}", 403, {"reason": "Invalid shadow topic name: not a topic:/"}, ["not a topic:/"]),
        Step(f"PUT {url}", 412, only, [f"non-{shadow}"]),
        Step(f"PUT {url}", 412, Reason("Cannot specify empty shadow topics"), []),
        Step(f"DELETE {url}", 204),
        Step(f"GET {url}", 200),
        Step(f"GET {TOPICS}/absent/shadowTopics", 404, Reason("Topic persistent://public/default/absent not found")),
    )


async def test_only_persistent_topics_have_shadows(rest: Rest) -> None:
    await rest.done("PUT", f"{NON_PERSISTENT}/t")
    refused = {"reason": "Only persistent source topic is supported with shadow topics."}
    await play(rest, Step(f"PUT {NON_PERSISTENT}/t/shadowTopics", 412, refused, []))
