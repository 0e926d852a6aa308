"""A topic that keeps only unacknowledged messages, so that the broker deletes its ledgers all the time."""

from __future__ import annotations

import trio

from pulsarium.client import ConsumerType

from .journal import Acknowledged, Messages, place_of
from .log import acknowledge, acknowledge_these, consuming, publish, received
from .stage import Stage, fence, located
from .topics import NAMESPACE

LEFT = 10  # messages that stay unacknowledged before load begins
MOST_LEDGERS = 40  # with more ledgers, the broker deletes none


class Stream:
    """An actor that publishes to a topic and acknowledges its messages soon."""

    def __init__(self) -> None:
        self.parts = {"stream"}
        self.messages = Messages(f"persistent://{NAMESPACE}/stream")
        self._acknowledged = Acknowledged(f"{self.messages.topic} reads")

    async def live(self, stage: Stage) -> None:
        topic = self.messages.topic
        async with (
            stage.client() as client,
            trio.open_nursery() as nursery,
            client.subscribe(topic, "reads", **consuming(ConsumerType.Shared)) as consumer,
        ):
            until = await fence(client, self.messages)
            came = await received(consumer, until)
            self.messages.settle(located(came))
            self._acknowledged.check(self.messages.places(), [place_of(each.message_id()) for each in came])
            self.messages.forget(self._acknowledged.done)
            # old unacknowledged messages would keep their ledgers and all newer ones
            await acknowledge_these(consumer, self._acknowledged, came[:-LEFT])
            came = came[-LEFT:]
            ledgers = (await client.admin.topics.get_internal_stats(topic))["ledgers"]
            assert len(ledgers) < MOST_LEDGERS, f"{topic}: the broker deletes none of {ledgers}"
            await stage.has_verified("stream")
            nursery.start_soon(publish, stage, client, self.messages, stage.chance.random() < 0.5)
            await acknowledge(stage, consumer, self._acknowledged, came, None)
