"""Hears from a broker which topics of a namespace come and go (PIP-145)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol

import anyio

from pulsarium.client.connection.brokers import Brokers
from pulsarium.client.connection.connection import Connection
from pulsarium.client.errors import TRANSIENT, PulsarError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of

_SUPPORTED = "supports_topic_watchers"
_LONGEST = 50  # subscriptionPatternMaxLength, unless a broker is told another
_COMMON = re.compile(r"(?:[\w/:-]|\.[*+]?)*", re.ASCII)  # what re, RE2 and Java read alike


class Listener(Protocol):
    """Is told of persistent topics; may get more than it asked for. None of these may wait."""

    def on_all(self, topics: Iterable[str]) -> None:
        """These are there, and no others."""
        ...

    def on_change(self, new: Iterable[str], deleted: Iterable[str]) -> None:
        """What changed since."""
        ...


class TopicWatch:
    """One watcher, at whatever broker there is."""

    def __init__(self, brokers: Brokers, namespace: str, pattern: str, flags: int, listener: Listener) -> None:
        """`pattern` is one of Python's, for local names, and `flags` what it was compiled with."""
        self._brokers = brokers
        self._namespace = namespace
        self._pattern = broker_pattern(namespace, pattern, flags)
        self._listener = listener
        self._id = brokers.next_watcher_id()
        self._hash: str | None = None  # of what the listener knows
        self._lost = anyio.Event()

    async def run(self) -> None:
        """Watch until it is cancelled; return if brokers do not offer that."""
        backoff = self._brokers.new_backoff()
        while True:
            try:
                connection = await self._brokers.connect_to_any()
                if _SUPPORTED not in connection.feature_flags:
                    return
                await self._watch(connection)
                backoff.reset()
            except TRANSIENT:
                pass
            except PulsarError:  # it does not want to: enableBrokerTopicListWatcher, or an HTTP service URL
                return
            await anyio.sleep(backoff.next())

    def on_success(self, success: pb.CommandWatchTopicListSuccess) -> None:
        known, self._hash = self._hash, text_of(success.topics_hash)
        if self._hash != known:
            self._listener.on_all(map(text_of, success.topic))

    def on_update(self, update: pb.CommandWatchTopicUpdate) -> None:
        self._hash = text_of(update.topics_hash)
        self._listener.on_change(map(text_of, update.new_topics), map(text_of, update.deleted_topics))

    def on_lost(self, error: PulsarError) -> None:
        self._lost.set()

    async def _watch(self, connection: Connection) -> None:
        """Until the connection is lost."""
        self._lost = anyio.Event()
        watch = pb.CommandWatchTopicList(
            request_id=connection.next_request_id(),
            watcher_id=self._id,
            namespace=self._namespace,
            topics_pattern=self._pattern,
            topics_hash=self._hash,
        )
        connection.attach_watcher(self._id, self)
        try:
            await connection.request(pb.BaseCommand(type=pb.BaseCommand.WATCH_TOPIC_LIST, watchTopicList=watch))
            await self._lost.wait()
        finally:
            connection.detach_watcher(self._id)
            if not connection.is_lost:
                close = pb.CommandWatchTopicListClose(request_id=connection.next_request_id(), watcher_id=self._id)
                connection.send_nowait(
                    pb.BaseCommand(type=pb.BaseCommand.WATCH_TOPIC_LIST_CLOSE, watchTopicListClose=close)
                )


def broker_pattern(namespace: str, pattern: str, flags: int) -> str:
    """What brokers match that at least: this pattern where it means the same to them, else anything."""
    text = f"{namespace}/{pattern}"
    plain = _COMMON.fullmatch(pattern) and flags in (0, re.UNICODE.value) and len(text) <= _LONGEST
    return text if plain else ".*"
