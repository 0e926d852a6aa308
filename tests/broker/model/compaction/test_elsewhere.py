"""Compaction engines that work in a thread: the broker's loop goes on meanwhile, and the engine always cleans up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event, Thread

import pytest
import trio
import trio.lowlevel

from pulsarium.broker.model.compaction.compactor import TwoPhaseCompactor, Writer
from pulsarium.broker.model.compaction.raw import RawReader, each
from tests.broker.held import HeldStorage
from tests.broker.model.compaction.topics import NAME, broker_on, compact, publish, single, status_of, topic_of, view


class Elsewhere(TwoPhaseCompactor):
    """An engine that works in a thread until `go` is set, and then keeps all messages."""

    def __init__(self) -> None:
        self.go = Event()
        self.began, self.left, self.threads = 0, 0, list[Thread]()
        self.trouble: Exception | None = None

    def _work(self, ready: Callable[[], None]) -> None:
        self.go.wait()
        ready()

    def compact(
        self, reader: RawReader, writer: Writer, ready: Callable[[], None], *, retain_null_key: bool
    ) -> Iterator[bool]:
        self.began += 1
        work = Thread(target=self._work, args=(ready,))
        self.threads.append(work)
        work.start()
        try:
            while not self.go.is_set():
                yield True
            for message in each(reader, ready):
                if message is not None:
                    writer.write(*message)
                yield message is None
        finally:
            self.left += 1
            if self.trouble is not None:
                raise self.trouble


@pytest.fixture
def engine() -> Iterator[Elsewhere]:
    made = Elsewhere()
    yield made
    made.go.set()
    for thread in made.threads:
        thread.join()


async def test_an_engine_in_a_thread_goes_on_when_it_says_so(engine: Elsewhere) -> None:
    async with broker_on() as broker:
        topic = topic_of(broker)
        topic.compaction.compactor = engine
        publish(broker, single("a", b"1"), single("a", b"2"))
        topic.compaction.trigger()
        while not engine.began:
            await trio.lowlevel.checkpoint()
        assert status_of(topic) == "RUNNING"
        engine.go.set()
        while status_of(topic) == "RUNNING":
            await trio.lowlevel.checkpoint()
        assert view(topic) == [("a", b"1"), ("a", b"2")]
        assert engine.left == 1


@pytest.mark.parametrize("how", ["unload", "delete", "stop", "trouble"])
async def test_an_engine_in_a_thread_ends_when_nobody_waits_any_more(engine: Elsewhere, how: str) -> None:
    storage = HeldStorage()
    async with broker_on(storage) as broker:
        topic = topic_of(broker)
        topic.compaction.compactor = engine
        publish(broker, single("a", b"1"))
        topic.compaction.trigger()
        while not engine.began:
            await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        if how == "delete":
            broker.topics.delete(NAME, force=True)
        elif how != "stop":
            engine.trouble = OSError("at the end") if how == "trouble" else None
            broker.topics.unload(NAME)
        assert engine.left == (how != "stop")
    assert engine.left == 1
    engine.go.set()  # the thread calls `ready` of a broker that has stopped
    if how != "delete":
        async with broker_on(storage) as broker:
            topic = topic_of(broker)
            assert topic.compaction.compacted.horizon is None
            await compact(topic)
            assert view(topic) == [("a", b"1")]
