"""Who may use the lab over HTTP: superusers, where roles are asked for."""

from __future__ import annotations

import pytest

from pulsarium.broker.admin.routes import all_routes
from pulsarium.broker.auth.needs import SUPERUSER
from tests.broker.admin.rest import rest_of
from tests.broker.auth.secured import bearer, by_token
from tests.broker.wire import serving

LAB = sorted({(route.method, route.path) for route, _ in all_routes() if route.path.startswith("/lab")})


def test_every_route_of_the_lab_is_for_superusers() -> None:
    assert LAB
    assert {route.needs for route, _ in all_routes() if route.path.startswith("/lab")} == {SUPERUSER}


@pytest.mark.usefixtures("autojump_clock")
async def test_nobody_else_is_heard() -> None:
    async with serving(by_token()) as bed:
        rest = rest_of(bed)
        for method, path in LAB:
            url = path.replace("{id}", "1")
            assert (await rest.call(method, url)).status == 401, (method, path)
            assert (await rest.call(method, url, **bearer("somebody"))).status == 401, (method, path)
        assert (await rest.call("GET", "/lab/faults", **bearer("admin"))).json == []
