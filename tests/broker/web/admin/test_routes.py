"""The registry of routes."""

from __future__ import annotations

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
