"""Watchers of topics (PIP-145): what brokers are asked to tell, what they tell, and brokers that do not."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from pulsarium.client import Consumer
from pulsarium.client.consumer.discovery import Matching, broker_pattern
from pulsarium.client.opening import open_client
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.both import on_both
from tests.client.peer import Peer, Peers, Type

BASE = "persistent://public/default/"
WATCHES = {"feature_flags": {"supports_topic_watchers": True}}


@pytest.mark.parametrize(
    ("pattern", "flags", "asked"),
    [
        ("my-topic-.*", 0, "public/default/my-topic-.*"),
        ("my:topic/.+_1", re.UNICODE, "public/default/my:topic/.+_1"),
        (".*", 0, "public/default/.*"),
        ("t.*", re.IGNORECASE, ".*"),
        (r"t\d", 0, ".*"),  # digits of any alphabet, to Python
        ("a|b", 0, ".*"),  # of the whole name, to brokers
        ("(?P<n>t)", 0, ".*"),
        ("t.*+", 0, ".*"),  # possessive
        ("ä.*", 0, ".*"),
        ("t" * 36 + ".*", 0, ".*"),  # over subscriptionPatternMaxLength
    ],
)
def test_patterns_as_brokers_read_them(pattern: str, flags: int, asked: str) -> None:
    assert broker_pattern("public/default", pattern, flags) == asked


class Played:
    """A broker that serves consumers by itself, and of watchers leaves the answers to the test."""

    def __init__(self, peers: Peers) -> None:
        self.peers = peers
        self.listed: list[str] = []
        self.lists = 0
        self.watches: list[pb.CommandWatchTopicList] = []
        self.ended: list[int] = []
        self.pongs = 0
        self.consumer: Consumer[bytes]
        self.peer: Peer

    async def serve(self) -> None:
        """One connection after the other."""
        while True:
            self.peer = await self.peers.next()
            try:
                await self.peer.take_in(**WATCHES)
                while True:
                    await self._take(*await self.peer.next())
            except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                pass
            finally:
                await self.peer.close()

    async def _take(self, base: pb.BaseCommand, _: bytes) -> None:
        say = self.peer.say
        if base.type == Type.LOOKUP:
            connect = pb.CommandLookupTopicResponse.Connect
            asked = base.lookupTopic.request_id
            await say(Type.LOOKUP_RESPONSE, request_id=asked, response=connect, brokerServiceUrl="pulsar://a:6650")
        elif base.type == Type.SUBSCRIBE:
            await say(Type.SUCCESS, request_id=base.subscribe.request_id)
        elif base.type == Type.CLOSE_CONSUMER:
            await say(Type.SUCCESS, request_id=base.close_consumer.request_id)
        elif base.type == Type.GET_TOPICS_OF_NAMESPACE:
            self.lists += 1
            asked = base.getTopicsOfNamespace.request_id
            await say(Type.GET_TOPICS_OF_NAMESPACE_RESPONSE, request_id=asked, topics=self.listed)
        elif base.type == Type.WATCH_TOPIC_LIST:
            self.watches.append(base.watchTopicList)
        elif base.type == Type.WATCH_TOPIC_LIST_CLOSE:
            self.ended.append(base.watchTopicListClose.watcher_id)
        elif base.type == Type.PONG:
            self.pongs += 1
        else:
            assert base.type == Type.FLOW, base

    @property
    def topics(self) -> list[str]:
        return sorted(part.topic.removeprefix(BASE) for part in self.consumer._parts.all)

    async def subscribed(self, *topics: str) -> None:
        await until(lambda: self.topics == list(topics))

    async def watched(self, count: int = 1) -> pb.CommandWatchTopicList:
        await until(lambda: len(self.watches) == count)
        return self.watches[-1]

    async def heard(self) -> None:
        """Everything said until now was taken in."""
        pongs = self.pongs
        await self.peer.say(Type.PING)
        await until(lambda: self.pongs > pongs)

    async def answer(self, watch: pb.CommandWatchTopicList, topics_hash: str, *topics: str) -> None:
        await self.peer.say(
            Type.WATCH_TOPIC_LIST_SUCCESS,
            request_id=watch.request_id,
            watcher_id=watch.watcher_id,
            topics_hash=topics_hash,
            topic=[BASE + topic for topic in topics],
        )

    async def update(self, watch: pb.CommandWatchTopicList, topics_hash: str, **changed: Any) -> None:
        await self.peer.say(Type.WATCH_TOPIC_UPDATE, watcher_id=watch.watcher_id, topics_hash=topics_hash, **changed)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def playing(pattern: str = "x.*", **options: Any) -> AsyncIterator[Played]:
    """Nothing matches at first."""
    peers = Peers(starting_backoff_interval=0.001)
    played = Played(peers)
    async with anyio.create_task_group() as tasks, open_client("pulsar://a", peers.settings) as client:
        tasks.start_soon(played.serve)
        async with client.subscribe(re.compile(pattern), "s", **options) as played.consumer:
            yield played
        await played.heard()
        tasks.cancel_scope.cancel()
    peers.close()


@on_both
async def test_what_is_told() -> None:
    async with playing() as played:
        watch = await played.watched()
        assert (watch.namespace, watch.topics_pattern) == ("public/default", "public/default/x.*")
        assert not watch.HasField("topics_hash")
        await played.answer(watch, "1", "x1", "y")
        await played.subscribed("x1")
        await played.update(watch, "2", new_topics=[BASE + "x2", "", "/", "http://x/y/x3", "persistent://o/d/x4"])
        await played.subscribed("x1", "x2")
        await played.update(watch, "3", new_topics=[BASE + "x3-partition-0"], deleted_topics=[BASE + "x1"])
        await played.subscribed("x2", "x3-partition-0")
        await played.update(watch, "4", deleted_topics=[BASE + "nonesuch"])
        await played.peer.say(Type.WATCH_TOPIC_UPDATE, watcher_id=99, new_topics=[BASE + "x9"], topics_hash="5")
        await played.heard()
        assert played.topics == ["x2", "x3-partition-0"]
        assert played.lists == 1


@on_both
async def test_watching_ends_with_the_consumer() -> None:
    async with playing() as played:
        watch = await played.watched()
        await played.answer(watch, "1")
        await played.heard()
        await played.consumer.aclose()
        await until(lambda: played.ended == [watch.watcher_id])


@on_both
async def test_after_a_reconnect_the_broker_is_told_what_is_known() -> None:
    async with playing() as played:
        watch = await played.watched()
        await played.answer(watch, "1", "x1")
        await played.update(watch, "2", new_topics=[BASE + "x2"])
        await played.subscribed("x1", "x2")
        await played.peer.close()
        watch = await played.watched(2)
        assert watch.topics_hash == "2"
        await played.answer(watch, "2")  # nothing changed
        await played.heard()
        assert played.topics == ["x1", "x2"]
        await played.peer.close()
        await played.answer(await played.watched(3), "3", "x2", "x3")
        await played.subscribed("x2", "x3")


@on_both
async def test_brokers_that_refuse_are_asked() -> None:
    async with playing(pattern_auto_discovery_period=0.01) as played:
        watch = await played.watched()
        await played.peer.say(Type.ERROR, request_id=watch.request_id, error=pb.NotAllowedError, message="disabled")
        played.listed = [BASE + "x1"]
        await played.subscribed("x1")
        assert len(played.watches) == 1


@on_both
async def test_endless_news_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 1024
    monkeypatch.setattr("pulsarium.client.consumer.discovery.MOST_TOPICS", most)
    async with playing() as played:
        watch = await played.watched()
        await played.answer(watch, "1")
        discovery = played.consumer._parts._discovery
        assert isinstance(discovery, Matching)
        for start in range(0, 2 * most, 128):
            await played.update(watch, "2", new_topics=[f"{BASE}x{n}" for n in range(start, start + 128)])
        await played.heard()
        assert 0 < len(discovery._known) <= most
