"""Explanations of scalable topics: why a topic was or was not split, and what its subscriptions wait for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import trio

from pulsarium.broker.config import Config
from pulsarium.broker.config.profile import PULSAR_5_0_M1
from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.why import NotThere, Why, WhyError
from pulsarium.broker.model.scalable.controller import Controller
from pulsarium.proto.topic_name import TopicName
from tests.broker.model.scalable.silent import Silent
from tests.broker.wire import Bed, Earliest, plain, serving

NAME = TopicName.parse("topic://public/default/t")
SEGMENT = "segment://public/default/t/0000-ffff-0"

pytestmark = pytest.mark.usefixtures("autojump_clock")


@pytest.fixture
async def bed() -> AsyncIterator[Bed]:
    async with serving(Config(), profile=PULSAR_5_0_M1) as bed:
        yield bed


def why(bed: Bed, subscription: str | None = None, message: str | None = None) -> Why:
    lab = bed.broker.cluster.attached(Lab)
    return lab.why(str(NAME), subscription, message)


def led(bed: Bed, consumers: int = 0, **policy: Any) -> Controller:
    """Create the topic with an auto scale policy, and register consumers."""
    cluster = bed.broker.cluster
    topic = cluster.scalable.create(NAME)
    topic.set_policy(policy)
    controller = cluster.controllers.lead(topic, bed.broker)
    for number in range(consumers):
        controller.registrations.join("s", f"c{number}", Silent(), 1, ordered=True)
    return controller


async def test_a_topic_that_nobody_used_has_no_controller(bed: Bed) -> None:
    bed.broker.cluster.scalable.create(NAME)
    assert why(bed).reason == "no-controller"
    assert why(bed).details["active"] == [0]


@pytest.mark.parametrize(
    ("consumers", "policy", "reason", "text"),
    [
        (1, {}, "steady", "no split, merge or rebucket is due"),
        (2, {"enabled": False}, "disabled", "auto scale is off"),
        (2, {"maxSegments": 1}, "max_segments", "maxSegments = 1"),
        (3, {"splitCooldownSeconds": 50}, "split_cooldown", "cool-down of 50 s"),
    ],
)
async def test_the_next_operation_is_explained(
    bed: Bed, consumers: int, policy: dict[str, Any], reason: str, text: str
) -> None:
    led(bed, consumers, **policy)
    await trio.sleep(1)
    assert why(bed).reason == reason
    assert text in why(bed).text


async def test_the_last_operation_is_told_with_its_trigger(bed: Bed) -> None:
    led(bed, 2)
    await trio.sleep(1)
    answer = why(bed)
    assert answer.text.startswith("split of segment 0 at ")
    assert "because of consumer-count" in answer.text
    assert answer.details["lastOperation"]["trigger"] == "consumer-count"
    assert (answer.details["active"], answer.details["sealed"]) == ([1, 2], [0])


async def test_a_subscription_waits_for_the_sealed_segment_first(bed: Bed) -> None:
    topic = led(bed, 1, enabled=False).topic
    wire = await bed.connect()
    await wire.subscribe(SEGMENT, "s", initialPosition=Earliest)
    sender = await bed.connect()
    await sender.producer(SEGMENT)
    await sender.publish(plain(b"0"))
    topic.split(0)
    await trio.sleep(1)
    waits = why(bed, "s")
    assert (waits.reason, waits.details["undrained"]) == ("no-permits", [0])
    assert waits.text.startswith("segment 0: ")
    await wire.flow(1)
    message = await wire.message()
    assert why(bed, "s").reason == "waits-for-drain"
    await wire.ack(message.position)
    await trio.sleep(10)
    assert why(bed, "s").reason == "caught-up"


@pytest.mark.parametrize(
    ("ask", "kind"),
    [
        (why, NotThere),
        (lambda bed: (led(bed), why(bed, "nobody"))[1], NotThere),
        (lambda bed: (led(bed), why(bed, "s", "1:1"))[1], WhyError),
    ],
)
async def test_a_question_without_an_answer_says_what_to_ask(
    bed: Bed, ask: Callable[[Bed], Why], kind: type[WhyError]
) -> None:
    with pytest.raises(kind, match=r"scalable topic|segment"):
        ask(bed)
