"""REST calls of /lab/why."""

from __future__ import annotations

from tests.broker.admin.rest import rest_of
from tests.broker.wire import TOPIC, plain, serving


async def test_the_reason_is_told_over_rest() -> None:
    async with serving() as bed:
        rest, wire = rest_of(bed), await bed.connect()
        await wire.producer()
        await wire.subscribe(consumer_name="c")
        (position,) = await wire.publish(plain(b"0"))
        found = await rest.get(f"/lab/why?topic=t&subscription=sub&messageId={position}")
        assert (found["reason"], found["text"]) == ("no-permits", "c has no permits left: its client sent no FLOW")
        assert (found["details"]["topic"], found["details"]["messageId"]) == (TOPIC, str(position))
        assert await rest.get("/lab/why?topic=t&subscription=sub") == found
        missing = await rest.refused("GET", "/lab/why?topic=t&subscription=other")
        assert missing == (404, f"{TOPIC} has no subscription other; there are: sub")
        assert (await rest.refused("GET", "/lab/why?topic=t&subscription=sub&messageId=1"))[0] == 400
        for query in ("", "?topic=t", "?topic=t&subscription=sub&message=1"):
            assert (await rest.refused("GET", f"/lab/why{query}"))[0] == 400
