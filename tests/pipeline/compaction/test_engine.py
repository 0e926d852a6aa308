"""The engine in a broker, with a job that a test plays: what it leaves, and that nothing else is left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.lowlevel

from pulsarium.broker.broker import Broker
from pulsarium.broker.config import Config, ConfigError, ServeOptions
from pulsarium.broker.model.compaction.service import make_engine
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.server import open_core
from pulsarium.pipeline.compaction import child
from pulsarium.pipeline.compaction.engine import SparkCompactor
from pulsarium.pipeline.spark import NoJava
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.model.compaction.test_compaction import publish, single, topic_of, view
from tests.broker.model.compaction.topics import keyed_batch
from tests.broker.model.stores import append
from tests.pipeline.compaction import played_job
from tests.pipeline.compaction.listed import at_positions, spool

ROOT = Path(__file__).parents[3]
PATIENCE = 50.0


class Stage:
    """Where the engine works, and how its job is to go."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.work_dir, self.pids = folder / "work", folder / "pids"
        self.work_dir.mkdir()
        self.pids.mkdir()
        self._monkeypatch = monkeypatch
        monkeypatch.setattr(child, "MODULE", played_job.__name__)
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        monkeypatch.setenv(played_job.PIDS, str(self.pids))
        self.goes("well")

    def goes(self, how: str) -> None:
        self._monkeypatch.setenv(played_job.HOW, how)

    @asynccontextmanager
    async def broker(self, **config: object) -> AsyncIterator[Broker]:
        options = (("work-dir", str(self.work_dir)), ("chunk-bytes", "1"), ("master", "local[1]"))
        run = ServeOptions(
            config=Config(**config),  # type: ignore[arg-type]
            compaction_engine="spark",
            compaction_options=options,
        )
        async with open_core(run) as broker:
            yield broker

    async def begun(self) -> int:
        """The pid of the job, once it runs."""
        with trio.fail_after(PATIENCE):
            while not any(self.pids.iterdir()):  # noqa: ASYNC110  # another process
                await trio.sleep(0.01)
        (pid,) = self.pids.iterdir()
        pid.unlink()
        return int(pid.name)

    @property
    def is_clean(self) -> bool:
        return list(self.work_dir.iterdir()) == []


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(tmp_path, monkeypatch)


async def ended(topic: PersistentTopic) -> tuple[str, str]:
    with trio.fail_after(PATIENCE):
        while topic.compaction.status == "RUNNING":  # noqa: ASYNC110  # as over REST
            await trio.sleep(0.01)
    return topic.compaction.status, topic.compaction.error


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_it_compacts(stage: Stage) -> None:
    async with stage.broker(topicCompactionRetainNullKey=True) as broker:
        topic = topic_of(broker)
        batch = keyed_batch(("a", b"2"), ("b", b"2"), ("c", b""), compression=pb.ZSTD)
        publish(broker, single("a", b"1"), single(None, b"x"), single("c", b"1"), batch)
        topic.compaction.trigger()
        assert await ended(topic) == ("SUCCESS", "")
        assert view(topic) == [(None, b"x"), ("a", b"2"), ("b", b"2")]
        assert topic.compaction.last_run.removed == 2
        publish(broker, single("b", b""))
        topic.compaction.trigger()
        assert await ended(topic) == ("SUCCESS", "")
        assert view(topic) == [(None, b"x"), ("a", b"2")]
        assert stage.is_clean


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("crash", "the Spark job ended with 3: out of everything"),
        ("raise", "the Spark job failed: the topic does not fit"),
    ],
)
async def test_a_job_that_fails_leaves_everything_as_it_was(stage: Stage, how: str, error: str) -> None:
    async with stage.broker() as broker:
        topic = topic_of(broker)
        publish(broker, single("a", b"1"))
        topic.compaction.trigger()
        assert await ended(topic) == ("SUCCESS", "")
        before, cursor = topic.compaction.compacted, topic.log.compaction.cursor
        assert cursor is not None
        mark, properties = cursor.mark_delete, dict(cursor.properties)
        publish(broker, single("a", b"2"))
        stage.goes(how)
        topic.compaction.trigger()
        assert await ended(topic) == ("ERROR", error)
        assert topic.compaction.compacted is before
        assert (cursor.mark_delete, cursor.properties) == (mark, properties)
        assert view(topic) == [("a", b"1")]
        assert stage.is_clean
        stage.goes("well")
        topic.compaction.trigger()
        assert await ended(topic) == ("SUCCESS", "")
        assert view(topic) == [("a", b"2")]


async def test_a_job_that_is_killed(stage: Stage) -> None:
    async with stage.broker() as broker:
        topic = topic_of(broker)
        publish(broker, single("a", b"1"))
        stage.goes("hang")
        topic.compaction.trigger()
        os.kill(await stage.begun(), signal.SIGKILL)
        assert await ended(topic) == ("ERROR", "the Spark job ended with -9: it said nothing")
        assert stage.is_clean
        stage.goes("well")
        topic.compaction.trigger()
        assert await ended(topic) == ("SUCCESS", "")
        assert view(topic) == [("a", b"1")]


@pytest.mark.parametrize("how", ["unload", "stop", "cancelled"])
async def test_nothing_runs_on_when_nobody_waits(stage: Stage, how: str) -> None:
    stage.goes("hang")
    with trio.CancelScope() as scope:
        async with stage.broker() as broker:
            publish(broker, single("a", b"1"))
            topic_of(broker).compaction.trigger()
            pid = await stage.begun()
            if how == "unload":
                broker.topics.unload(topic_of(broker).name)
                assert not lives(pid)
                assert stage.is_clean
            if how == "cancelled":
                scope.cancel()
                await trio.lowlevel.checkpoint()
    assert not lives(pid)
    assert stage.is_clean


async def test_one_job_at_a_time(stage: Stage) -> None:
    """The second one waits for the first one's end."""
    stage.goes("hang")
    async with stage.broker() as broker:
        first = topic_of(broker)
        publish(broker, single("a", b"1"))
        other = broker.topics.create(first.name.partition(0))
        assert isinstance(other, PersistentTopic)
        append(other.ledger, broker.cluster, single("a", b"1"))
        first.compaction.trigger()
        pid = await stage.begun()
        stage.goes("well")
        other.compaction.trigger()
        for _ in range(30):
            await trio.sleep(0.01)
        assert other.compaction.status == "RUNNING"
        assert list(stage.pids.iterdir()) == []
        os.kill(pid, signal.SIGKILL)
        assert await ended(other) == ("SUCCESS", "")
        assert first.compaction.status == "ERROR"


def test_it_ends_with_the_broker(stage: Stage) -> None:
    """However that ends: what the job knows of it is its standard input."""
    stage.goes("hang")
    work = spool(stage.work_dir, at_positions([single("a", b"1")], 0), 1)
    work.save()
    command = [sys.executable, "-P", "-m", child.MODULE, work.folder]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as job:
        trio.run(stage.begun)
        assert job.stdin is not None
        job.stdin.close()
        assert job.wait(PATIENCE) == -signal.SIGKILL
    assert not stage.work_dir.exists()


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        (("mastr", "x"), "no such option: mastr; there are master, work-dir, format, chunk-bytes, and spark.*"),
        (("work-dir", "/no/where"), "work-dir: /no/where is no folder"),
        (("format", "no.where"), "format is pulsar, values or module:object, not no.where: No module named 'no'"),
        (("chunk-bytes", "0"), "chunk-bytes is a number from 1 on, not 0"),
    ],
)
def test_options_that_cannot_be(option: tuple[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=f"^--compaction-engine: spark: {reason}"):
        make_engine("spark", [option])


def test_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NoJava):
        SparkCompactor()
    with pytest.raises(ConfigError, match=r"^--compaction-engine: spark: Spark needs Java 17 or later \(Debian: "):
        make_engine("spark")
