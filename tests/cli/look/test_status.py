"""`pulsarium status` and `pulsarium top`."""

from __future__ import annotations

import json

from pulsarium.broker.web.console.waiting import PATIENCE_MS
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import plain
from tests.cli.admin.live import Live, live
from tests.cli.lab.line import LabLine


async def some_topics(here: Live) -> None:
    """Make `t`, which has one message that nobody receives, and the partitioned topic `orders`."""
    here.bed.broker.topics.create_partitions(TopicName.parse("orders"), 2)
    wire = await here.bed.connect()
    await wire.producer()
    await wire.subscribe(consumer_name="c")
    await wire.publish(plain(b"0", publish_time=here.bed.broker.clock.now_ms()))


async def test_the_status_has_a_line_for_each_topic_at_work() -> None:
    async with live() as here:
        status = LabLine(here, "status")
        assert "No topics to show." in await status.said()
        await some_topics(here)
        lines = (await status.said()).splitlines()
        assert lines[0].split("  ")[:2] == ["Pulsarium 0.1.0.dev0", here.url]
        assert "backlog 1" in lines[1]
        assert [line.split()[0] for line in lines[3:5]] == ["TOPIC", "t"]
        assert lines[5] == "1 idle topics: --idle shows them"
        assert any(line.startswith("orders (2) ") for line in (await status.said("--idle")).splitlines())


async def test_a_topic_that_is_stuck_comes_first_with_its_reason_and_the_remedy() -> None:
    async with live() as here:
        await some_topics(here)
        here.bed.broker.clock.jump(PATIENCE_MS / 1000 + 1)
        lines = (await LabLine(here, "status").said()).splitlines()
        assert "sub: " in lines[4]
        assert "STUCK" in lines
        assert "permits" in lines[-1]


async def test_the_status_as_json_has_the_overview_and_the_topics() -> None:
    async with live() as here:
        await some_topics(here)
        answer = json.loads(await LabLine(here, "status").said("--json", "--limit", "1", "--sort", "backlog"))
        assert [row["name"] for row in answer["topics"]] == ["persistent://public/default/t"]
        assert answer["now"]["backlog"] == 1


async def test_top_draws_as_often_as_it_is_asked_to_and_once_without_a_terminal() -> None:
    async with live() as here:
        await some_topics(here)
        top = LabLine(here, "top")
        assert (await top.said()).count("Pulsarium 0.1.0.dev0") == 1
        assert (await top.said("--count", "2", "--interval", "1ms")).count("Pulsarium 0.1.0.dev0") == 2
