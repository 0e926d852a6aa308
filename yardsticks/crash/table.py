"""A topic of messages with keys that is compacted all the time."""

from __future__ import annotations

import trio

from pulsarium.client import Client, Message

from .journal import START, Messages, Place, place_of
from .log import publish
from .stage import Stage, fence, keep_all, located, read
from .topics import Lives

KEYS = 12
LIFETIME = 600  # messages


class Table:
    """An actor that publishes messages with few keys, and compacts their topic."""

    def __init__(self, lives: Lives) -> None:
        self._lives = lives
        self.parts = {"table"}
        self._begin()

    def _begin(self) -> None:
        self.messages = Messages(self._lives.next("table"))
        self._compacted: Place = START
        """Position up to which a successful compaction has compacted the topic."""

    async def live(self, stage: Stage) -> None:
        if self._lives.is_over(self.messages, LIFETIME):
            self._begin()
        topic = self.messages.topic
        async with stage.client() as client, trio.open_nursery() as nursery:
            await keep_all(client, self.messages.topic)
            until = await fence(client, self.messages)
            everything = await read(client, topic, until)
            self.messages.check(located(everything))
            self._check(everything, await read(client, topic, until, read_compacted=True))
            nursery.start_soon(publish, stage, client, self.messages, stage.chance.random() < 0.5, KEYS)
            await stage.has_verified("table")
            await self._compact(stage, client)

    def _check(self, everything: list[Message[bytes]], left: list[Message[bytes]]) -> None:
        topic = self.messages.topic
        strange = set(located(left)) - set(located(everything))
        assert not strange, f"{topic}: compaction invented {sorted(strange)}"
        newest, kept = _newest(everything), _newest(left)
        assert kept == newest, f"{topic}: compacted to {kept}, and not to {newest}"
        keys = [each.partition_key() for each in left if place_of(each.message_id()) <= self._compacted]
        assert len(set(keys)) == len(keys), f"{topic}: compacted up to {self._compacted}, but has keys twice: {keys}"

    async def _compact(self, stage: Stage, client: Client) -> None:
        topics, topic = client.admin.topics, self.messages.topic
        while True:
            upto = max(self.messages.receipts.values())
            await topics.trigger_compaction(topic)
            while (status := (await topics.compaction_status(topic))["status"]) == "RUNNING":
                await stage.pause(0.005)
            assert status == "SUCCESS", f"{topic}: compaction ended with {status}"
            self._compacted = upto
            stage.confirms()
            await stage.pause(0.1)


def _newest(messages: list[Message[bytes]]) -> dict[str, Place]:
    """Return the position of the newest value of each key. A null value deletes its key."""
    found: dict[str, Place] = {}
    for each in messages:
        if each.has_null_value():
            found.pop(each.partition_key(), None)
        else:
            found[each.partition_key()] = place_of(each.message_id())
    return found
