"""Segments over REST."""

from __future__ import annotations

import pytest

from tests.broker.web.admin.rest import ADMIN, Rest
from tests.broker.wire import Wire, plain

SEGMENT = f"{ADMIN}/segments/public/default/t/0000-ffff-0"
TOPIC = "segment://public/default/t/0000-ffff-0"


async def test_a_segment_needs_no_scalable_topic(rest: Rest) -> None:
    for _ in range(2):
        await rest.done("PUT", SEGMENT, ["s"])
    assert await rest.get(f"{SEGMENT}/subscription/s/backlog") == 0


async def test_the_backlog_of_a_subscription_is_skipped_and_comes_back_with_a_seek(rest: Rest, wire: Wire) -> None:
    await rest.done("PUT", SEGMENT, ["s"])
    await wire.producer(TOPIC)
    await wire.publish(plain(b"m"))
    backlog = f"{SEGMENT}/subscription/s/backlog"
    assert await rest.get(backlog) == 1
    await rest.done("POST", f"{SEGMENT}/subscription/s/skip-all")
    assert await rest.get(backlog) == 0
    await rest.done("POST", f"{SEGMENT}/subscription/s/seek?timestamp=0")
    assert await rest.get(backlog) == 1


async def test_a_segment_is_terminated_and_deleted_any_number_of_times(rest: Rest, wire: Wire) -> None:
    await rest.done("PUT", SEGMENT)
    for method, path in (("POST", "/terminate"), ("DELETE", "")):
        await rest.done(method, f"{SEGMENT}{path}")
        if method == "DELETE":
            await rest.done(method, f"{SEGMENT}{path}")


async def test_a_subscription_is_created_and_deleted_any_number_of_times(rest: Rest) -> None:
    await rest.done("PUT", SEGMENT)
    for method in ("PUT", "DELETE"):
        for _ in range(2):
            await rest.done(method, f"{SEGMENT}/subscription/s")


@pytest.mark.parametrize(
    ("method", "path", "status", "text"),
    [
        ("POST", "terminate", 404, f"Segment topic not found: {TOPIC}"),
        ("PUT", "subscription/s", 404, f"Segment topic not found: {TOPIC}"),
        ("GET", "subscription/s/backlog", 404, f"Segment topic not loaded: {TOPIC}"),
        ("POST", "subscription/s/seek", 503, f"Segment topic not loaded: {TOPIC}"),
        ("POST", "subscription/s/skip-all", 503, f"Segment topic not loaded: {TOPIC}"),
    ],
)
async def test_an_absent_segment_is_refused_in_pulsars_words(
    rest: Rest, method: str, path: str, status: int, text: str
) -> None:
    assert await rest.refused(method, f"{SEGMENT}/{path}") == (status, text)


@pytest.mark.parametrize("path", ["backlog", "seek", "skip-all"])
async def test_an_absent_subscription_is_not_found(rest: Rest, path: str) -> None:
    await rest.done("PUT", SEGMENT)
    method = "GET" if path == "backlog" else "POST"
    assert await rest.refused(method, f"{SEGMENT}/subscription/s/{path}") == (
        404,
        "Subscription not found on segment: s",
    )


@pytest.mark.parametrize("descriptor", ["bad", "2000-1000-1", "0000-fffff-1"])
async def test_a_wrong_descriptor_is_refused(rest: Rest, descriptor: str) -> None:
    assert (await rest.call("PUT", f"{ADMIN}/segments/public/default/t/{descriptor}")).status == 400


async def test_stats_of_a_segment_are_those_of_its_topic(rest: Rest, wire: Wire) -> None:
    scalable = f"{ADMIN}/scalable/public/default/t"
    await rest.done("PUT", scalable)
    await wire.producer(TOPIC)
    assert len((await rest.get(f"{scalable}/segments/0/stats"))["publishers"]) == 1
    assert await rest.refused("GET", f"{scalable}/segments/9/stats") == (
        404,
        "Segment 9 not found in scalable topic topic://public/default/t",
    )
