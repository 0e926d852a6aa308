"""/admin/v2/namespaces: local policies."""

from __future__ import annotations

from pathlib import Path

import trio

from tests.broker.admin.rest import ADMIN, NAMESPACES, Rest, rest_of
from tests.broker.admin.steps import Step, Text, play
from tests.broker.wire import Type, Wire, serving

DEFAULT = f"{NAMESPACES}/public/default"
MISSING = f"{NAMESPACES}/public/missing"
ABSENT = {"reason": "Namespace not found"}
GROUPS = {"bookkeeperAffinityGroupPrimary": "a", "bookkeeperAffinityGroupSecondary": "b"}


async def test_bookies(rest: Rest) -> None:
    url = f"{DEFAULT}/persistence/bookieAffinity"
    await play(
        rest,
        Step(f"GET {url}", 404, {"reason": "Namespace local-policies does not exist"}),
        Step(f"DELETE {url}", 204),
        Step(f"GET {url}", 404, {"reason": "Namespace local-policies does not exist"}),
        Step(f"POST {url}", 204, value={}),
        Step(f"GET {url}", 200, {}),
        Step(f"POST {url}", 204, value=None),
        Step(f"GET {url}", 200),
        Step(f"POST {url}", 204, value=GROUPS | {"other": 1}),
        Step(f"GET {url}", 200, GROUPS),
        Step(f"DELETE {url}", 204),
        Step(f"GET {url}", 200),
        Step(f"GET {MISSING}/persistence/bookieAffinity", 404, ABSENT),
        Step(f"POST {MISSING}/persistence/bookieAffinity", 404, ABSENT, GROUPS),
        Step(f"DELETE {MISSING}/persistence/bookieAffinity", 404, ABSENT),
    )


async def test_local_policies_are_there_once_a_topic_was_looked_for(rest: Rest, wire: Wire) -> None:
    lookup = "/lookup/v2/topic/persistent/public"
    url = "{}/public/{}/persistence/bookieAffinity".format
    absent = {"reason": "Namespace local-policies does not exist"}
    for name in ("by-client", "by-http", "by-topic"):
        await play(
            rest, Step(f"PUT {NAMESPACES}/public/{name}", 204), Step(f"GET {url(NAMESPACES, name)}", 404, absent)
        )
    await wire.ask(Type.LOOKUP, topic="persistent://public/by-client/t")
    assert (await rest.call("GET", f"{lookup}/by-http/t")).status == 200
    assert (await rest.call("GET", f"{ADMIN}/persistent/public/by-topic/t/stats")).status == 404
    for name in ("by-client", "by-http", "by-topic"):
        assert (await rest.call("GET", url(NAMESPACES, name))).body == b""
        await play(rest, Step(f"GET {url(NAMESPACES, name)}", 200), Step(f"DELETE {NAMESPACES}/public/{name}", 204))
        await play(
            rest, Step(f"PUT {NAMESPACES}/public/{name}", 204), Step(f"GET {url(NAMESPACES, name)}", 404, absent)
        )


async def test_the_name_of_a_group_is_whatever_was_sent(rest: Rest) -> None:
    url = f"{DEFAULT}/antiAffinity"
    await play(
        rest,
        Step(f"GET {url}", 200),
        Step(f"POST {url}", 412, {"reason": "Anti-affinity group can't be empty"}),
        Step(f"POST {url}", 204, value=None),
        Step(f"GET {url}", 200, None),
        Step(f"POST {url}", 204, value="g"),
        Step(f"GET {url}", 200, Text('"g"')),
        Step(f"DELETE {url}", 204),
        Step(f"GET {url}", 200),
        Step(f"POST {MISSING}/antiAffinity", 204, value="g"),
        Step(f"DELETE {NAMESPACES}/nope/missing/antiAffinity", 204),
    )


async def test_the_namespaces_of_a_group(rest: Rest) -> None:
    await rest.done("PUT", f"{NAMESPACES}/public/n")
    for name in ("default", "n"):
        answer = await rest.call("POST", f"{NAMESPACES}/public/{name}/antiAffinity", body=b"Group-1")
        assert answer.status == 204
    url = f"{NAMESPACES}/standalone/antiAffinity"
    await play(
        rest,
        Step(f"GET {url}/group-1?tenant=public", 200, ["public/default", "public/n"]),
        Step(f"GET {url}/none?tenant=public", 200, []),
        Step(f"GET {url}/group-1?tenant=nope", 200, []),
        Step(f"GET {url}/group-1", 400, {"reason": "Tenant should not be null"}),
        Step(f"GET {NAMESPACES}/nope/antiAffinity/g?tenant=public", 412, {"reason": "Cluster nope does not exist."}),
        Step(f"DELETE {NAMESPACES}/public/n", 204),
        Step(f"PUT {NAMESPACES}/public/n", 204),
        Step(f"GET {url}/group-1?tenant=public", 200, ["public/default"]),
    )


def test_they_outlive_the_broker(tmp_path: Path) -> None:
    async def first() -> None:
        async with serving(data=tmp_path) as bed:
            await play(rest_of(bed), Step(f"POST {DEFAULT}/persistence/bookieAffinity", 204, value=GROUPS))

    async def second() -> None:
        async with serving(data=tmp_path) as bed:
            await play(rest_of(bed), Step(f"GET {DEFAULT}/persistence/bookieAffinity", 200, GROUPS))

    trio.run(first)
    trio.run(second)
