"""Events that are told to listeners."""

from __future__ import annotations

from collections.abc import Mapping

import trio
import trio.lowlevel

from pulsarium.broker.model.news import Kind, News, acting, acting_for


async def test_a_listener_hears_the_kinds_that_it_asked_for() -> None:
    news, heard = News(), list[tuple[Kind, object]]()

    def told(kind: Kind, about: Mapping[str, object]) -> None:
        heard.append((kind, about["topic"]))

    news.listen(told, Kind.UNLOADED, Kind.TOPIC_CREATED)
    for kind in (Kind.TOPIC_CREATED, Kind.TOPIC_DELETED, Kind.UNLOADED):
        news.tell(kind, topic="t")
    assert heard == [(Kind.TOPIC_CREATED, "t"), (Kind.UNLOADED, "t")]
    news.ignore(told)
    news.tell(Kind.UNLOADED, topic="t")
    assert len(heard) == 2


async def test_each_task_acts_for_its_own_caller() -> None:
    found = dict[str, str]()

    async def act(by: str) -> None:
        with acting_for(by):
            await trio.lowlevel.checkpoint()
            found[by] = acting()

    async with trio.open_nursery() as nursery:
        for by in ("person", "test"):
            nursery.start_soon(act, by)
    assert found == {"person": "person", "test": "test"}
    assert acting() == ""
