"""The registry of routes."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from pulsarium.broker.config import Config
from pulsarium.broker.http.pulsar_routes import PACKAGES, absent_routes, anonymous, pulsar_routes
from pulsarium.broker.http.registry import Route, by_path
from pulsarium.broker.web import all_routes
from tests.broker.admin.rest import rest_of
from tests.broker.wire import serving

OUR_OWN = {  # and the proposals that are not in 4.2.4
    Route("GET", "/"),
    Route("GET", "/metrics"),
    Route("GET", "/metrics/"),
    Route("GET", "/pulsarium/topics"),
    Route("GET", "/status.html"),
    Route("POST", "/admin/v2/persistent/{tenant}/{namespace}/{topic}/subscription/{subscription}/skipByMessageIds"),
}


def test_pulsars_routes() -> None:
    routes = list(pulsar_routes())
    assert len(routes) == len(set(routes)) == 546
    for path in ("/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}", "/admin/v2/persistent/{tenant}/{namespace}"):
        assert Route("GET", path) in routes


def is_pulsars(route: Route) -> bool:
    """The lab is no part of Pulsar."""
    return not route.path.startswith("/lab")


def test_every_route_is_pulsars_or_known_to_be_our_own() -> None:
    known = {(route.method, anonymous(route.path)) for route in pulsar_routes()}
    strange = {route for route, _ in all_routes() if (route.method, anonymous(route.path)) not in known}
    assert set(filter(is_pulsars, strange)) == OUR_OWN


def test_what_is_absent_is_what_is_not_built() -> None:
    built = {route for route, _ in all_routes() if is_pulsars(route)}
    absent = absent_routes(built)
    assert not {(each.method, anonymous(each.path)) for each in absent} & {
        (each.method, anonymous(each.path)) for each in built
    }
    assert len(absent) == 546 - len(built - OUR_OWN)
    assert all(PACKAGES.fullmatch(route.path) for route in absent)  # nothing else has words for what it has not


def test_every_handler_says_what_it_does() -> None:
    assert all(handler.__doc__ for _, handler in all_routes())


def test_paths_that_are_one_have_one_name() -> None:
    paths = [path for path, _ in by_path(all_routes())]
    assert len({anonymous(path) for path in paths}) == len(paths)


FIELDS = [
    "adminRoles",
    "allowedClusters",
    "serviceUrl",
    "peerClusterNames",
    "bundles",
    "boundaries",
    "numBundles",
    "replication_clusters",
    "x",
    "properties",
    "ledgerId",
    "entryId",
    "excluded",
    "batchIndex",
    "messageIds",
    "partitions",
    "autoTopicCreationOverride",
    "retention_policies",
    "deleted",
    "retentionTimeInMinutes",
    "limitSize",
    "policy",
    "tickTime",
    "inactiveTopicDeleteMode",
    "allowAutoTopicCreation",
    "topicType",
    "clusterSubscribeRate",
    "backlog_quota_map",
    "destination_storage",
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
TYPES = ["application/json", "application/vnd.partitioned-topic-metadata+json", "text/plain", ""]
PARTS = st.sampled_from(["public", "default", "t", "p", "p-partition-0", "s", "standalone", "nope", "0x0_0x1"])
FLAGS = ["force", "bundle", "mode", "key", "filter", "perPartition", "getEarliestTimeInBacklog", "listenerName"]
FLAGS += ["applied", "isGlobal", "messageTTL", "backlogQuotaType"]
UNEXPECTED_BY_PULSAR_TOO = "\n --- An unexpected error occurred in the server ---"


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, str, Any, str]:
    """A call of a route that there is, with anything in its parts, query and body."""
    route, _ = draw(st.sampled_from(ROUTES))
    url = "/".join(
        quote(draw(PARTS | st.text(min_size=1, max_size=4)), safe="") if part.startswith("{") else part
        for part in route.path.split("/")
    )
    flags = draw(st.dictionaries(st.sampled_from(FLAGS), st.sampled_from(["true", "x", ""]) | st.text(max_size=3)))
    query = "&".join(f"{name}={quote(value)}" for name, value in flags.items())
    return route.method, f"{url}?{query}", draw(VALUES), draw(st.sampled_from(TYPES))


ROUTES = list(all_routes())


@settings(max_examples=40)
@given(st.lists(calls(), min_size=1, max_size=12))
def test_no_call_finds_a_fault_of_the_broker(program: list[tuple[str, str, Any, str]]) -> None:
    async def play() -> None:
        async with serving(Config(transactionCoordinatorEnabled=True)) as bed:
            rest = rest_of(bed)
            await rest.done("PUT", "/admin/v2/persistent/public/default/p/partitions", 1)
            await rest.done("PUT", "/admin/v2/persistent/public/default/t/subscription/s")
            for method, url, value, content_type in program:
                body = json.dumps(value).encode()
                answer = await rest.call(method, url, body=body, content_type=content_type)
                assert answer.status < 500, (method, url, value, answer)

    trio.run(play, clock=MockClock(autojump_threshold=0))
