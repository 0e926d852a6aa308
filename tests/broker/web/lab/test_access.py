"""Access to the lab over HTTP: only superusers have it when authentication is on."""

from __future__ import annotations

import pytest

from pulsarium.broker.auth.needs import SUPERUSER
from pulsarium.broker.web.routes import all_routes
from tests.broker.auth.secured import bearer, by_token
from tests.broker.web.admin.rest import rest_of
from tests.broker.wire import serving

LAB = sorted({(route.method, route.path) for route, _ in all_routes() if route.path.startswith("/lab")})


def test_every_route_of_the_lab_is_for_superusers() -> None:
    assert LAB
    assert {route.needs for route, _ in all_routes() if route.path.startswith("/lab")} == {SUPERUSER}


@pytest.mark.usefixtures("autojump_clock")
async def test_only_superusers_may_use_the_lab() -> None:
    async with serving(by_token()) as bed:
        rest = rest_of(bed)
        for method, path in LAB:
            url = path.replace("{id}", "1")
            assert (await rest.call(method, url)).status == 401, (method, path)
            assert (await rest.call(method, url, **bearer("somebody"))).status == 401, (method, path)
        assert (await rest.call("GET", "/lab/faults", **bearer("admin"))).json == []


@pytest.mark.usefixtures("autojump_clock")
@pytest.mark.parametrize("path", ["/lab/restore", "/lab/seed"])
async def test_large_bodies_are_kept_for_superusers_only(path: str) -> None:
    async with serving(by_token(maxMessageSize=100_000)) as bed:
        rest = rest_of(bed)
        large = bytes(1_000_000)
        assert (await rest.call("POST", path, body=large, **bearer("somebody"))).status == 413
        assert (await rest.call("POST", path, body=b"", **bearer("somebody"))).status == 401
        assert (await rest.call("POST", path, body=large, **bearer("admin"))).status == 400
