"""Watchers of topics (PIP-145): requests, updates, and brokers without watchers."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from pulsarium.client import Consumer
from pulsarium.client.consumer.discovery import Matching, broker_pattern
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.hostile.clocks import on_both
from tests.client.hostile.played import Answer, Played, playing, saying, silence
from tests.client.peer import Peer, Type

BASE = "persistent://public/default/"


@pytest.mark.parametrize(
    ("pattern", "flags", "asked"),
    [
        ("my-topic-.*", 0, "public/default/my-topic-.*"),
        ("my:topic/.+_1", re.UNICODE, "public/default/my:topic/.+_1"),
        (".*", 0, "public/default/.*"),
        ("t.*", re.IGNORECASE, ".*"),
        (r"t\d", 0, ".*"),  # in Python, \d is a digit of any alphabet
        ("a|b", 0, ".*"),  # brokers take each side for a whole name
        ("(?P<n>t)", 0, ".*"),
        ("t.*+", 0, ".*"),  # a possessive quantifier
        ("ä.*", 0, ".*"),
        ("t" * 36 + ".*", 0, ".*"),  # over subscriptionPatternMaxLength
    ],
)
def test_patterns_as_brokers_read_them(pattern: str, flags: int, asked: str) -> None:
    assert broker_pattern("public/default", pattern, flags) == asked


class Watching:
    """A consumer by a pattern, and a broker that reports topics when the test says so."""

    def __init__(self, played: Played, consumer: Consumer[bytes]) -> None:
        self.played = played
        self.consumer = consumer

    @property
    def peer(self) -> Peer:
        return self.played.connections[-1]

    @property
    def topics(self) -> list[str]:
        return sorted(part.topic.removeprefix(BASE) for part in self.consumer._parts.all)

    async def subscribed(self, *topics: str) -> None:
        for _ in range(10_000):
            if self.topics == list(topics):
                return
            await anyio.sleep(0.001)
        raise AssertionError(self.topics)

    async def watched(self, count: int = 1) -> pb.CommandWatchTopicList:
        asked: pb.CommandWatchTopicList = await self.played.sent(Type.WATCH_TOPIC_LIST, count)
        return asked

    async def heard(self) -> None:
        """Wait until the client has processed all reports."""
        pongs = self.played.count(Type.PONG)
        await self.peer.say(Type.PING)
        await self.played.sent(Type.PONG, pongs + 1)

    async def answer(self, watch: pb.CommandWatchTopicList, topics_hash: str, *topics: str) -> None:
        ids: dict[str, Any] = {"request_id": watch.request_id, "watcher_id": watch.watcher_id}
        found = [BASE + topic for topic in topics]
        await self.peer.say(Type.WATCH_TOPIC_LIST_SUCCESS, topics_hash=topics_hash, topic=found, **ids)

    async def update(self, watch: pb.CommandWatchTopicList, topics_hash: str, **changed: Any) -> None:
        await self.peer.say(Type.WATCH_TOPIC_UPDATE, watcher_id=watch.watcher_id, topics_hash=topics_hash, **changed)


async def connect(peer: Peer, body: Any) -> None:
    flags = {"supports_topic_watchers": True}
    await peer.say(Type.CONNECTED, server_version="played", protocol_version=22, feature_flags=flags)


@asynccontextmanager
async def watching(**options: Any) -> AsyncIterator[Watching]:
    """Begin with a pattern that no topic matches."""
    async with playing() as (played, client):
        played.on |= {Type.CONNECT: connect, Type.GET_TOPICS_OF_NAMESPACE: listing(), Type.WATCH_TOPIC_LIST: silence}
        async with client.subscribe(re.compile("x.*"), "s", **options) as consumer:
            yield Watching(played, consumer)


def listing(*topics: str) -> Answer:
    return saying(Type.GET_TOPICS_OF_NAMESPACE_RESPONSE, topics=[BASE + topic for topic in topics])


@on_both
async def test_news_of_the_watcher_change_the_topics() -> None:
    async with watching() as watched:
        watch = await watched.watched()
        assert (watch.namespace, watch.topics_pattern) == ("public/default", "public/default/x.*")
        assert not watch.HasField("topics_hash")
        await watched.answer(watch, "1", "x1", "y")
        await watched.subscribed("x1")
        await watched.update(watch, "2", new_topics=[BASE + "x2", "", "/", "http://x/y/x3", "persistent://o/d/x4"])
        await watched.subscribed("x1", "x2")
        await watched.update(watch, "3", new_topics=[BASE + "x3-partition-0"], deleted_topics=[BASE + "x1"])
        await watched.subscribed("x2", "x3-partition-0")
        await watched.update(watch, "4", deleted_topics=[BASE + "nonesuch"])
        await watched.peer.say(Type.WATCH_TOPIC_UPDATE, watcher_id=99, new_topics=[BASE + "x9"], topics_hash="5")
        await watched.heard()
        assert watched.topics == ["x2", "x3-partition-0"]
        assert watched.played.count(Type.GET_TOPICS_OF_NAMESPACE) == 1


@on_both
async def test_watching_ends_with_the_consumer() -> None:
    async with watching() as watched:
        watch = await watched.watched()
        await watched.answer(watch, "1")
        await watched.heard()
        await watched.consumer.aclose()
        assert (await watched.played.sent(Type.WATCH_TOPIC_LIST_CLOSE)).watcher_id == watch.watcher_id
        await watched.answer(watch, "2", "x1")  # the consumer has closed, and ignores the answer
        await watched.heard()
        assert watched.topics == []


@on_both
async def test_after_a_reconnect_the_broker_is_told_what_is_known() -> None:
    async with watching() as watched:
        watch = await watched.watched()
        await watched.answer(watch, "1", "x1")
        await watched.update(watch, "2", new_topics=[BASE + "x2"])
        await watched.subscribed("x1", "x2")
        await watched.peer.close()
        watch = await watched.watched(2)
        assert watch.topics_hash == "2"
        await watched.answer(watch, "2")  # nothing changed
        await watched.heard()
        assert watched.topics == ["x1", "x2"]
        await watched.peer.close()
        await watched.answer(await watched.watched(3), "3", "x2", "x3")
        await watched.subscribed("x2", "x3")


@on_both
async def test_brokers_that_refuse_are_asked() -> None:
    async with watching(pattern_auto_discovery_period=0.01) as watched:
        watch = await watched.watched()
        await watched.peer.say(Type.ERROR, request_id=watch.request_id, error=pb.NotAllowedError, message="disabled")
        watched.played.on[Type.GET_TOPICS_OF_NAMESPACE] = listing("x1")
        await watched.subscribed("x1")
        assert watched.played.count(Type.WATCH_TOPIC_LIST) == 1


@on_both
async def test_endless_news_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 1024
    monkeypatch.setattr("pulsarium.client.consumer.discovery.MOST_TOPICS", most)
    async with watching() as watched:
        watch = await watched.watched()
        await watched.answer(watch, "1")
        discovery = watched.consumer._parts._discovery
        assert isinstance(discovery, Matching)
        for start in range(0, 2 * most, 128):
            await watched.update(watch, "2", new_topics=[f"{BASE}x{n}" for n in range(start, start + 128)])
        await watched.heard()
        assert 0 < len(discovery._known) <= most
