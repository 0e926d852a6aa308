"""REST calls of /lab/clock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.broker.web.admin.rest import Rest, rest_of
from tests.broker.wire import serving

DAY = 86_400


@pytest.fixture
async def rest() -> AsyncIterator[Rest]:
    async with serving() as here:
        yield rest_of(here)


async def post(rest: Rest, path: str, body: Any = None) -> Any:
    answer = await rest.call("POST", f"/lab/clock/{path}", **({} if body is None else {"value": body}))
    assert answer.status == 200, answer
    return answer.json


async def test_the_state_of_the_clock_has_these_fields(rest: Rest) -> None:
    state = await rest.get("/lab/clock")
    assert set(state) == {
        "now",
        "nowMs",
        "offsetMs",
        "frozen",
        "autoAdvance",
        "nextInSeconds",
        "included",
        "namespaces",
    }
    assert state | {"now": 0, "nowMs": 0} == {
        "now": 0,
        "nowMs": 0,
        "offsetMs": 0,
        "frozen": False,
        "autoAdvance": False,
        "nextInSeconds": None,
        "included": [],
        "namespaces": [],
    }


async def test_each_call_steers_the_clock_of_a_namespace(rest: Rest) -> None:
    async def steer(path: str, body: Any = None) -> Any:
        return await post(rest, f"{path}?namespace=public/default", body)

    before = await rest.get("/lab/clock?namespace=public/default")
    assert (before["namespace"], before["own"]) == ("public/default", False)
    frozen = await steer("freeze")
    state = await steer("advance", {"seconds": DAY})
    assert (state["own"], state["frozen"], state["nowMs"] - frozen["nowMs"]) == (True, True, DAY * 1000)
    state = await steer("advance", {"to": frozen["nowMs"] + 2 * DAY * 1000})
    assert state["nowMs"] == frozen["nowMs"] + 2 * DAY * 1000
    assert (await steer("auto-advance", {"on": True}))["autoAdvance"]
    assert not (await steer("resume"))["frozen"]
    broker = await rest.get("/lab/clock")
    assert (broker["offsetMs"], broker["namespaces"]) == (0, ["public/default"])
    assert not (await steer("reset"))["own"]


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("freeze?namespace=public/none", 404, "the namespace public/none does not exist"),
        ("run-next?namespace=public/default", 409, "no timer waits"),
    ],
)
async def test_a_namespaces_clock_refuses(rest: Rest, path: str, status: int, text: str) -> None:
    answer = await rest.call("POST", f"/lab/clock/{path}")
    assert (answer.status, text in str(answer.json)) == (status, True), answer


async def test_no_timer_of_connections_is_included_in_a_namespaces_clock(rest: Rest) -> None:
    answer = await rest.call("POST", "/lab/clock/include?namespace=public/default", value={"names": ["keep-alive"]})
    assert (answer.status, "belong to connections" in str(answer.json)) == (400, True), answer


async def test_the_clock_is_frozen_advanced_resumed_and_reset(rest: Rest) -> None:
    before = (await post(rest, "freeze"))["nowMs"]
    state = await post(rest, "advance", {"seconds": 7 * DAY})
    assert (state["nowMs"] - before, state["advancedSeconds"]) == (7 * DAY * 1000, 7 * DAY)
    state = await post(rest, "advance", {"to": before + 8 * DAY * 1000})
    assert abs(state["nowMs"] - before - 8 * DAY * 1000) <= 1
    assert (await post(rest, "advance", {"to": "2190-01-01T00:00"}))["now"] == "2190-01-01T00:00:00.000Z"
    assert not (await post(rest, "resume"))["frozen"]
    assert (await post(rest, "reset"))["offsetMs"] == 0


async def test_the_clock_is_switched_over_rest(rest: Rest) -> None:
    assert (await post(rest, "auto-advance", {"on": True}))["autoAdvance"] is True
    assert (await post(rest, "auto-advance", {"on": False}))["autoAdvance"] is False
    assert (await post(rest, "include", {"names": ["token-expiry"]}))["included"] == ["token-expiry"]
    assert (await post(rest, "exclude", {"names": ["token-expiry"]}))["included"] == []


async def test_the_next_timer(rest: Rest) -> None:
    status, reason = await rest.refused("POST", "/lab/clock/run-next")
    assert (status, reason) == (409, "the clock has no timer to run: no timer waits")


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("advance", {}, "an advance takes"),
        ("advance", {"seconds": "7d"}, "an advance takes"),
        ("advance", {"seconds": True}, "an advance takes"),
        ("advance", {"seconds": 10**400}, "an advance takes"),
        ("advance", {"seconds": 1, "to": 1}, "an advance takes"),
        ("advance", {"to": "tomorrow"}, "an advance takes"),
        ("advance", {"to": None}, "an advance takes"),
        ("advance", {"to": 2**60}, "an advance takes"),
        ("advance", {"seconds": -1}, "cannot advance by -1 seconds"),
        ("advance", {"seconds": 1e300}, "the year 9999 is the last one"),
        ("advance", {"to": 1}, "cannot go back"),
        ("advance", {"minutes": 1}, "minutes: the body takes seconds, to"),
        ("auto-advance", {"on": 1}, "takes on"),
        ("auto-advance", {}, "takes on"),
        ("include", {"names": "keep-alive"}, "is a list"),
        ("include", {"names": ["ttl"]}, "'ttl' cannot be included"),
    ],
)
async def test_wrong_arguments_of_the_clock_are_refused(rest: Rest, path: str, body: Any, says: str) -> None:
    status, reason = await rest.refused("POST", f"/lab/clock/{path}", body)
    assert status == 400
    assert says in reason
    assert (await rest.get("/lab/clock"))["offsetMs"] == 0


async def test_brokers_of_a_cluster_have_one_clock() -> None:
    async with serving(brokers=2) as bed:
        await post(rest_of(bed, 1), "advance", {"seconds": DAY})
        assert (await rest_of(bed, 0).get("/lab/clock"))["offsetMs"] == DAY * 1000
