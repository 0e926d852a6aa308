"""A scalable topic whose segments are split and merged all the time, while a producer sends messages with few keys."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import trio

from pulsarium.client import Checkpoint, Client, Message
from pulsarium.client.admin.errors import ServerSideError

from .journal import number_of, numbered
from .stage import CONTENT, Stage
from .topics import NAMESPACE

KEYS = 8
LIFETIME = 600  # messages
MOST_SEGMENTS = 6
LAST_HASH = 0xFFFF


class Scalable:
    """An actor that publishes to a scalable topic and changes its layout."""

    def __init__(self) -> None:
        self.parts = {"scalable"}
        self._topics = 0
        self._condemned: list[str] = []
        self._begin()

    def _begin(self) -> None:
        self._topics += 1
        self._topic = f"topic://{NAMESPACE}/scalable-{self._topics}"
        self._sent = 0
        self._confirmed: set[int] = set()
        self._epoch = 0  # the newest epoch of the layout that the broker confirmed

    async def live(self, stage: Stage) -> None:
        async with stage.client() as client:
            await self._prepare(client)
            await self._check(client)
            await stage.has_verified("scalable")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._publish, stage, client)
                nursery.start_soon(self._change, stage, client)

    async def _prepare(self, client: Client) -> None:
        """Delete old topics, create the current one if it is missing, and let a subscription keep all its messages."""
        topics = client.admin.scalable_topics
        if self._sent >= LIFETIME:
            self._condemned.append(self._topic)
            self._begin()
        there = await topics.list_scalable_topics(NAMESPACE)
        for topic in list(self._condemned):
            if topic in there:
                await topics.delete_scalable_topic(topic, force=True)
            self._condemned.remove(topic)
        if self._topic not in there:
            assert not self._sent, f"{self._topic} is gone"
            await topics.create_scalable_topic(self._topic)
        await topics.create_subscription(self._topic, "keeps")

    async def _check(self, client: Client) -> None:
        """Check that the segments cover all hashes, and that all confirmed messages are stored, in order by key."""
        segments = await self._layout(client)
        ranges = sorted((each["hashRange"]["start"], each["hashRange"]["end"]) for each in active(segments))
        assert [ranges[0][0], ranges[-1][1]] == [0, LAST_HASH], ranges
        assert all(first[1] + 1 == second[0] for first, second in pairwise(ranges)), ranges
        for each in segments.values():
            assert each["active"] or each["childIds"], f"{self._topic}: no segment replaces {each}"
        missing = set(self._confirmed)
        newest: dict[str | None, int] = defaultdict(lambda: -1)
        async with client.scalable.create_checkpoint_consumer(self._topic, Checkpoint.earliest) as consumer:
            while missing:
                message: Message[bytes] = await consumer.receive()
                number = number_of(message)
                key = message.partition_key()
                assert number not in missing or number > newest[key], f"{self._topic}: {number} after {newest[key]}"
                missing.discard(number)
                newest[key] = max(newest[key], number)

    async def _layout(self, client: Client) -> dict[str, Any]:
        metadata = await client.admin.scalable_topics.get_metadata(self._topic)
        assert metadata["epoch"] >= self._epoch, f"{self._topic}: epoch {metadata['epoch']} after {self._epoch}"
        return metadata["segments"]

    async def _publish(self, stage: Stage, client: Client) -> None:
        async with client.scalable.create_producer(self._topic) as producer:
            while True:
                numbers = range(self._sent, self._sent + stage.chance.randrange(1, 10))
                self._sent = numbers.stop
                receipts = {
                    number: await producer.submit(CONTENT[:100], partition_key=f"k{number % KEYS}", **numbered(number))
                    for number in numbers
                }
                for number, receipt in receipts.items():
                    await receipt.wait()
                    self._confirmed.add(number)
                    stage.confirms()
                await stage.pause()

    async def _change(self, stage: Stage, client: Client) -> None:
        topics, chance = client.admin.scalable_topics, stage.chance
        while True:
            segments = await self._layout(client)
            there = sorted(active(segments), key=lambda each: each["hashRange"]["start"])
            try:
                if len(there) > 1 and (len(there) >= MOST_SEGMENTS or chance.random() < 0.5):
                    first = chance.randrange(len(there) - 1)
                    await topics.merge_segments(self._topic, there[first]["segmentId"], there[first + 1]["segmentId"])
                else:
                    await topics.split_segment(self._topic, chance.choice(there)["segmentId"])
            except ServerSideError:  # auto-scaling was faster, or the hash range is too small
                continue
            self._epoch += 1
            stage.confirms()
            await stage.pause(0.05)


def active(segments: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the active segments of a layout."""
    return [each for each in segments.values() if each["active"]]
