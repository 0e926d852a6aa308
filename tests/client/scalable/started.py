"""Our broker in this process with one scalable topic, and a client of it, under trio."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pulsarium.broker.config import Config
from pulsarium.broker.model.scalable.topics import ScalableTopic
from pulsarium.client import Client
from pulsarium.proto.topic_name import TopicName
from tests.client.in_process import InProcess, in_process
from tests.client.scalable.layouts import TOPIC


class World:
    """A broker with one scalable topic."""

    def __init__(self, inside: InProcess, client: Client) -> None:
        self.inside = inside
        self.client = client
        self.broker = inside.bed.broker

    @property
    def topic(self) -> ScalableTopic:
        """Return the scalable topic."""
        return self.broker.cluster.scalable.get(TopicName.parse(TOPIC))

    def create(self, segments: int = 1) -> None:
        self.broker.cluster.scalable.create(TopicName.parse(TOPIC), segments)
        self.broker.turn.finish()

    def split(self, segment_id: int) -> None:
        self.topic.split(segment_id)
        self.broker.turn.finish()

    def merge(self, first: int, second: int) -> None:
        self.topic.merge(first, second)
        self.broker.turn.finish()


@asynccontextmanager
async def world(segments: int = 1, *, config: Config | None = None, brokers: int = 1) -> AsyncIterator[World]:
    """Yield a broker and a client, with a scalable topic of that many segments, or without a topic for 0."""
    async with in_process(config, brokers=brokers) as inside, inside.client() as client:
        found = World(inside, client)
        if segments:
            found.create(segments)
        yield found
