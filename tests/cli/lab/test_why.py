"""`pulsarium why`."""

from __future__ import annotations

import json

from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import plain
from tests.cli.admin.live import live
from tests.cli.lab.line import LabLine


async def test_a_message_that_nobody_asked_for() -> None:
    async with live() as here:
        why = LabLine(here, "why")
        wire = await here.bed.connect()
        await wire.producer()
        await wire.subscribe(consumer_name="c")
        assert await why.said("t", "sub") == "caught-up: the topic has no messages\n"
        (position,) = await wire.publish(plain(b"0"))
        said = f"{position} no-permits: c has no permits left: its client sent no FLOW\n"
        assert await why.said("t", "sub") == await why.said("t", "sub", str(position)) == said
        answer = json.loads(await why.said("t", "sub", str(position), "--json"))
        assert (answer["reason"], answer["details"]["consumers"][0]["name"]) == ("no-permits", "c")
        refused = await why.run("t", "other")
        assert refused.exit_code == 1
        assert "has no subscription other; there are: sub" in refused.stderr


async def test_a_producer_that_would_be_refused() -> None:
    async with live() as here:
        why = LabLine(here, "why")
        wire = await here.bed.connect()
        await wire.producer(producer_name="p", producer_access_mode=pb.Exclusive)
        assert (await why.said("t", "--producer")).startswith("refused: a new producer is refused with ProducerBusy: ")
        assert (await why.said("--producer", "t", "p")).startswith("publishes: p is connected from ")
        refused = await why.run("t", "p", "1:0", "--producer")
        assert (refused.exit_code, "not about both" in refused.stderr) == (1, True)


async def test_the_partitions_of_a_topic_are_lines_of_a_table() -> None:
    async with live() as here:
        wire = await here.bed.connect()
        here.bed.broker.topics.create_partitions(TopicName.parse("t"), 2)
        for index in range(2):
            await wire.subscribe(
                f"persistent://public/default/t-partition-{index}", consumer_id=index, consumer_name="c"
            )
        await wire.producer("persistent://public/default/t-partition-1")
        (position,) = await wire.publish(plain(b"0"))
        said = (await LabLine(here, "why").said("t", "sub")).splitlines()
        assert said == [
            f"{position} no-permits: partition 1: c has no permits left: its client sent no FLOW",
            "partition  backlog  unacked  reason      text",
            "1          1        0        no-permits  c has no permits left: its client sent no FLOW",
            "0          0        0        caught-up   the topic has no messages",
        ]
