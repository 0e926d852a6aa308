"""The registry of routes."""

from __future__ import annotations

import pytest

from pulsarium.broker.config.profile import PULSAR_3_0, PULSAR_4_0, PULSAR_4_2, Profile
from pulsarium.broker.web.http.pulsar_routes import PACKAGES, absent_routes, anonymous, pulsar_routes
from pulsarium.broker.web.http.registry import Route, by_path
from pulsarium.broker.web.routes import all_routes

OUR_OWN = {  # with routes of proposals that 4.2.4 does not have
    Route("GET", "/"),
    Route("GET", "/metrics"),
    Route("GET", "/metrics/"),
    Route("GET", "/console/{file}"),
    Route("GET", "/pulsarium/find"),
    Route("GET", "/pulsarium/form/{domain}/{tenant}/{namespace}/{topic}"),
    Route("GET", "/pulsarium/messages/{domain}/{tenant}/{namespace}/{topic}"),
    Route("POST", "/pulsarium/preview/{domain}/{tenant}/{namespace}/{topic}"),
    Route("POST", "/pulsarium/publish/{domain}/{tenant}/{namespace}/{topic}"),
    Route("GET", "/pulsarium/policies/{tenant}/{namespace}"),
    Route("GET", "/pulsarium/policies/{domain}/{tenant}/{namespace}/{topic}"),
    Route("GET", "/pulsarium/topic/{domain}/{tenant}/{namespace}/{topic}"),
    Route("GET", "/pulsarium/connections"),
    Route("GET", "/pulsarium/overview"),
    Route("GET", "/pulsarium/samples"),
    Route("GET", "/pulsarium/topics"),
    Route("GET", "/status.html"),
    # Pulsar declares these routes in pulsar-websocket.
    Route("GET", "/admin/v2/proxy-stats/stats"),
    *(
        Route("GET", f"/admin/v2/proxy-stats/{domain}/{{tenant}}/{{namespace}}/{{topic}}/stats")
        for domain in ("persistent", "non-persistent")
    ),
    Route("POST", "/admin/v2/persistent/{tenant}/{namespace}/{topic}/subscription/{subscription}/skipByMessageIds"),
}


def is_pulsars(route: Route) -> bool:
    """Return whether a route may be one of 4.2.4: neither the lab's, which is no part of Pulsar, nor added by 5.0."""
    since_5_0 = route.path.startswith(("/admin/v2/scalable/", "/admin/v2/segments/")) or "scalableTopic" in route.path
    return not (since_5_0 or route.path.startswith("/lab"))


def test_every_route_is_pulsars_or_known_to_be_our_own() -> None:
    known = {(route.method, anonymous(route.path)) for route in pulsar_routes()}
    strange = {route for route, _ in all_routes() if (route.method, anonymous(route.path)) not in known}
    assert set(filter(is_pulsars, strange)) == OUR_OWN


def test_routes_are_either_absent_or_built() -> None:
    built = {route for route, _ in all_routes() if is_pulsars(route)}
    absent = absent_routes(built)
    assert not {(each.method, anonymous(each.path)) for each in absent} & {
        (each.method, anonymous(each.path)) for each in built
    }
    assert len(absent) == len(list(pulsar_routes())) - len(built - OUR_OWN)
    assert all(PACKAGES.fullmatch(route.path) for route in absent)  # all other routes are built


def test_every_handler_says_what_it_does() -> None:
    assert all(handler.__doc__ for _, handler in all_routes())


def test_paths_that_are_one_have_one_name() -> None:
    paths = [path for path, _ in by_path(all_routes())]
    assert len({anonymous(path) for path in paths}) == len(paths)


ON_NAMESPACE, ON_TOPIC = (
    "/admin/v2/namespaces/{tenant}/{namespace}",
    "/admin/v2/persistent/{tenant}/{namespace}/{topic}",
)
# What tests.foreign.every_route found on brokers of these releases: 404, or 405 where other methods or paths fit.
LATER_THAN_4_0 = {
    f"GET {ON_TOPIC}/getMessageIdByIndex",
    *(f"{method} {ON_TOPIC}/subscriptionExpirationTime" for method in ("GET", "POST", "DELETE")),
    *(f"{method} {ON_NAMESPACE}/allowedTopicPropertyKeysForMetrics" for method in ("GET", "POST", "DELETE")),
    "GET /admin/v2/metadata/migration/status",
    "POST /admin/v2/metadata/migration/start",
}
LATER_THAN_3_0 = {
    *LATER_THAN_4_0,
    *(f"{method} {ON_NAMESPACE}/dispatcherPauseOnAckStatePersistent" for method in ("GET", "POST", "DELETE")),
    *(f"{method} {ON_TOPIC}/dispatcherPauseOnAckStatePersistent" for method in ("GET", "POST", "DELETE")),
    f"DELETE {ON_TOPIC}/policies",
    "GET /admin/v2/clusters/{cluster}/migrate",
    "GET /admin/v2/schemas/{tenant}/{namespace}/{topic}/metadata",
    f"POST {ON_NAMESPACE}/migration",
    "POST /admin/v2/namespaces/grantPermissionsOnTopics",
    "POST /admin/v2/namespaces/revokePermissionsOnTopics",
    "POST /admin/v3/transactions/abortTransaction/{mostSigBits}/{leastSigBits}",
    "GET /admin/v3/transactions/transactionBufferInternalStats/{tenant}/{namespace}/{topic}",
}


def routes_of(profile: Profile) -> set[str]:
    """Return the routes of a profile, and one route for both kinds of topics."""
    found = {f"{method} {path}" for path, handlers in by_path(all_routes(), profile) for method in handlers}
    return {route.replace("/non-persistent/", "/persistent/") for route in found}


@pytest.mark.parametrize(
    ("profile", "later"), [(PULSAR_4_0, LATER_THAN_4_0), (PULSAR_3_0, LATER_THAN_3_0)], ids=["4.0", "3.0"]
)
def test_a_release_lacks_the_routes_of_later_ones(profile: Profile, later: set[str]) -> None:
    assert routes_of(PULSAR_4_2) - routes_of(profile) == later
