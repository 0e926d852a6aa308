"""REST calls of /lab/masks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.broker.web.admin.rest import rest_of
from tests.broker.wire import Bed, serving


@pytest.fixture
async def here() -> AsyncIterator[Bed]:
    async with serving() as bed:
        yield bed


WHOLE = {
    "profile": "pulsar-4.0",
    "maxProtocolVersion": 0,
    "flags": {"supports_topic_watchers": False},
    "clientFlags": {"supports_partial_producer": True},
    "allowed": ["LOOKUP", "SEND"],
    "unknownError": "NotAllowedError",
    "clientVersion": "wire",
    "listener": "pulsar:*",
    "role": "",
}


async def test_a_mask_from_beginning_to_end(here: Bed) -> None:
    rest = rest_of(here)
    assert await rest.get("/lab/masks") == []
    added = (await rest.call("POST", "/lab/masks", WHOLE)).json
    assert added == {"id": 1, "hits": 0, **WHOLE}
    assert (await here.dial().connect()).protocol_version == 0
    assert await rest.get("/lab/masks/1") == {**added, "hits": 1}
    assert (await rest.call("DELETE", "/lab/masks/1")).status == 204
    assert (await rest.call("GET", "/lab/masks/1")).status == 404
    await rest.call("POST", "/lab/masks", {"allowed": []})
    assert await rest.get("/lab/masks") == [{"id": 2, "hits": 0, "allowed": []}]
    assert (await rest.call("DELETE", "/lab/masks")).status == 204
    assert await rest.get("/lab/masks") == []


async def test_a_mask_can_disconnect_open_connections(here: Bed) -> None:
    wire = await here.connect()
    await rest_of(here).call("POST", "/lab/masks", {"disconnect": True})
    await wire.closed()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ([], "a mask is a JSON object"),
        (None, "a mask is a JSON object"),
        ({"version": 3}, "version: a mask takes profile, maxProtocolVersion"),
        ({"maxProtocolVersion": "3"}, "maxProtocolVersion: it is a number"),
        ({"maxProtocolVersion": True}, "maxProtocolVersion: it is a number"),
        ({"maxProtocolVersion": 23}, "max_protocol_version is 23; it must be 0 to 22"),
        ({"flags": {"supports_topic_watchers": 1}}, "flags: each is true or false"),
        ({"allowed": [1]}, "allowed: names of commands, such as SEND"),
        ({"profile": "x"}, "no profile 'x'; there are pip"),
    ],
)
async def test_an_invalid_mask_is_refused(here: Bed, given: Any, text: str) -> None:
    answer = await rest_of(here).call("POST", "/lab/masks", given)
    assert answer.status == 400
    assert answer.json["reason"].startswith(text)
