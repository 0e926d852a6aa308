"""Streams of changes."""

from __future__ import annotations

from contextlib import aclosing

import trio

from pulsarium.broker.web.http.live import HEARTBEAT, LOOKS
from tests.broker.web.admin.rest import TOPICS, Rest
from tests.broker.web.http.streams import stream, value_of
from tests.broker.wire import Bed

OVERVIEW = b"/pulsarium/topics"
DETAIL = b"/pulsarium/topic/persistent/public/default/t"


async def test_a_stream_sends_the_value_and_then_its_changes(rest: Rest, bed: Bed) -> None:
    async with aclosing(await stream(rest, OVERVIEW)) as events:
        assert value_of(await anext(events))["topicCount"] == 0
        await rest.done("PUT", f"{TOPICS}/t")
        assert value_of(await anext(events))["topicCount"] == 1


async def test_a_stream_without_changes_shows_that_the_broker_is_there(rest: Rest) -> None:
    async with aclosing(await stream(rest, OVERVIEW)) as events:
        await anext(events)
        before = trio.current_time()
        assert await anext(events) == b":\n\n"
        assert trio.current_time() - before >= HEARTBEAT


async def test_a_stream_ends_when_its_object_is_deleted(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    async with aclosing(await stream(rest, DETAIL)) as events:
        await anext(events)
        await rest.done("DELETE", f"{TOPICS}/t")
        assert (await anext(events)).startswith(b'event: refused\ndata: {"status":404,')
        assert not [each async for each in events]


async def test_a_stream_ends_after_some_minutes_so_that_the_client_proves_its_role_again(rest: Rest) -> None:
    before = trio.current_time()
    assert [each async for each in await stream(rest, OVERVIEW)]
    assert trio.current_time() - before >= LOOKS
