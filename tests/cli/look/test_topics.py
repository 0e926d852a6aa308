"""`pulsarium topics`."""

from __future__ import annotations

import json

import pytest

from pulsarium.cli.look import topics as module
from pulsarium.cli.look.console import short
from pulsarium.proto.topic_name import TopicName
from tests.cli.admin.live import live
from tests.cli.lab.line import LabLine


@pytest.mark.parametrize(
    ("name", "known_as"),
    [
        ("persistent://public/default/orders", "orders"),
        ("persistent://public/default/a/b", "public/default/a/b"),
        ("persistent://shop/eu/orders", "shop/eu/orders"),
        ("non-persistent://public/default/orders", "non-persistent://public/default/orders"),
    ],
)
def test_a_topic_has_the_shortest_name_that_commands_know(name: str, known_as: str) -> None:
    assert short(name) == known_as


async def test_topics_are_listed_by_their_names_over_all_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE", 1)
    async with live() as here:
        topics = LabLine(here, "topics")
        assert await topics.said() == ""
        here.bed.broker.topics.create_partitions(TopicName.parse("orders"), 2)
        for name in ("invoices", "persistent://public/default/a"):
            here.bed.broker.topics.create(TopicName.parse(name))
        assert (await topics.said()).split() == ["a", "invoices", "orders"]
        assert (await topics.said("oice")).split() == ["invoices"]
        assert [line.split() for line in (await topics.said("--long", "orders")).splitlines()] == [
            ["TOPIC", "PARTITIONS", "SUBSCRIPTIONS", "BACKLOG", "SCHEMA"],
            ["orders", "2", "0", "0"],
        ]
        assert [json.loads(line)["partitions"] for line in (await topics.said("--json")).splitlines()] == [0, 0, 2]
