"""httpRequestsMaxPerSecond: too many requests a second are refused with 429."""

from __future__ import annotations

import pytest
import trio

from pulsarium.broker.config import Config
from tests.broker.web.admin.rest import TENANTS, Rest, rest_of
from tests.broker.wire import serving

pytestmark = pytest.mark.usefixtures("autojump_clock")


async def statuses(rest: Rest, count: int, url: str = TENANTS) -> list[int]:
    return [(await rest.call("GET", url)).status for _ in range(count)]


@pytest.mark.serving(Config(httpRequestsLimitEnabled=True, httpRequestsMaxPerSecond=4.0))
async def test_unused_requests_of_the_last_second_may_come_at_once(rest: Rest) -> None:
    assert await statuses(rest, 2) == [200, 429]  # no request is saved up at first
    await trio.sleep(0.25)
    assert await statuses(rest, 2) == [200, 429]
    await trio.sleep(10)
    assert await statuses(rest, 6) == [200] * 5 + [429]


@pytest.mark.serving(Config(httpRequestsLimitEnabled=True, httpRequestsMaxPerSecond=1.0))
async def test_the_refusal_is_the_servers_not_the_apis(rest: Rest) -> None:
    await rest.get(TENANTS)
    refused = await rest.call("GET", TENANTS)
    assert refused.status == 429
    assert refused.json["message"] == "Too Many Requests"
    assert b"<title>Error 429 Too Many Requests</title>" in (await rest.call("GET", "/x", accept="text/html")).body


@pytest.mark.parametrize("config", [Config(httpRequestsMaxPerSecond=1.0), Config()])
async def test_no_request_is_refused_unless_the_limit_is_on(config: Config) -> None:
    async with serving(config) as bed:
        assert await statuses(rest_of(bed), 5) == [200] * 5


@pytest.mark.serving(Config(httpRequestsLimitEnabled=True, httpRequestsMaxPerSecond=1.0))
async def test_the_page_and_the_lab_are_not_limited(rest: Rest) -> None:
    assert await statuses(rest, 3, "/lab/clock") == [200] * 3
    assert await statuses(rest, 3, "/pulsarium/topics") == [200] * 3
    assert await statuses(rest, 2) == [200, 429]
