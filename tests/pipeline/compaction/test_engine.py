"""The Spark engine in a broker, with a substitute for the job. No process and no file outlives a compaction."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.lowlevel

from pulsarium.broker.cluster import Broker
from pulsarium.broker.config import Config, ConfigError, ServeOptions
from pulsarium.broker.model.compaction.compaction import make_engine
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.server import open_core
from pulsarium.pipeline.compaction import engine
from pulsarium.pipeline.compaction.chunks import work_folder
from pulsarium.pipeline.compaction.engine import SparkCompactor, written
from pulsarium.pipeline.spark import NoJava
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.model.compaction.topics import keyed_batch, publish, single, topic_of, view
from tests.broker.model.stores import append
from tests.pipeline.compaction import played_job
from tests.pipeline.compaction.listed import Kept, Listed, at_positions, spool, without_spark
from yardsticks.servers import ending

ROOT = Path(__file__).parents[3]
PATIENCE = 50.0


class Stage:
    """The work folder of an engine, and the way in which its job ends."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.work_dir, self.pids = folder / "work", folder / "pids"
        self.work_dir.mkdir()
        self.pids.mkdir()
        self._monkeypatch = monkeypatch
        monkeypatch.setattr(engine, "MODULE", played_job.__name__)
        monkeypatch.setattr(engine, "KILLED", PATIENCE)  # a busy machine may end a killed process late
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
        """Wait until the job runs, and return its process id."""
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


async def test_the_engine_compacts_a_topic(stage: Stage) -> None:
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
        ("crash", "the Spark job ended with exit code 3 and no result: out of everything"),
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
        assert await ended(topic) == ("ERROR", "the Spark job ended with exit code -9 and no result: no output")
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
    """The second job waits until the first job has ended."""
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


def test_a_waiting_job_has_no_folder_yet(tmp_path: Path) -> None:
    """Topics that are due at once are compacted in turn, so that only one topic is on disk."""
    engine = SparkCompactor(work_dir=str(tmp_path))
    called: list[int] = []
    entries, threads = at_positions([single("a", b"1")] * 9, 0), set(threading.enumerate())
    runs = [
        engine.compact(Listed(entries), Kept(), partial(called.append, number), retain_null_key=False)
        for number in range(4)
    ]
    assert [next(run) for run in runs] == [False, True, True, True]
    assert len(list(tmp_path.iterdir())) == 1
    assert set(threading.enumerate()) <= threads
    runs[2].close()
    assert called == []
    runs[0].close()
    assert called == [1]
    assert [next(runs[1]), next(runs[3])] == [False, True]
    runs[1].close()
    assert called == [1, 3]
    assert next(runs[3]) is False
    runs[3].close()
    assert list(tmp_path.iterdir()) == []


def test_the_next_compaction_deletes_the_folder_of_a_killed_broker(tmp_path: Path) -> None:
    lives = tmp_path / "pulsarium-compaction-lives"
    script = (
        "import os, pathlib, sys; from pulsarium.pipeline.compaction.chunks import work_folder\n"
        "with work_folder(pathlib.Path(sys.argv[1])) as folder: (folder / 'spark').mkdir(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-P", "-c", script, str(tmp_path)], check=True)
    (left,) = tmp_path.iterdir()
    assert {each.name for each in left.iterdir()} == {"lock", "spark"}
    (tmp_path / "somebody-else").mkdir()
    lives.mkdir()  # a folder without a lock may be in use, and is kept
    with work_folder(tmp_path) as other:
        run = SparkCompactor(work_dir=str(tmp_path)).compact(
            Listed(at_positions([single("a", b"1")], 0)), Kept(), lambda: None, retain_null_key=False
        )
        next(run)
        assert not left.exists()
        assert other.exists()
        assert next(run) is False
        run.close()
        assert set(tmp_path.iterdir()) == {other, tmp_path / "somebody-else", lives}
        assert other.stat().st_mode & 0o777 == 0o700


def test_a_chunk_goes_once_it_is_written(tmp_path: Path) -> None:
    work = spool(tmp_path, at_positions([single("a", b"1"), single("b", b"1")], 0), 1)
    without_spark(work)
    kept = Kept()
    for _ in written(work, kept):
        if len(kept.entries) == 2:
            break
    assert sorted(each.name[-8:] for each in tmp_path.iterdir()) == ["01.arrow"] * 3


@pytest.mark.skipif(sys.platform != "linux", reason="prctl")
def test_a_group_is_waited_for_until_its_orphans_are_reaped() -> None:
    """A broker that is process 1 of a container adopts orphans, and no other process reaps them."""
    libc, set_child_subreaper = ctypes.CDLL(None), 36
    script = "import subprocess, sys; print(subprocess.Popen(['sleep', '600']).pid, flush=True); sys.stdin.read()"
    assert libc.prctl(set_child_subreaper, 1, 0, 0, 0) == 0
    try:
        command = [sys.executable, "-P", "-c", script]
        piped = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        with ending(piped) as process:
            assert process.stdout is not None
            orphan = int(process.stdout.readline())
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(PATIENCE)
            engine.wait_for_group(process.pid, time.monotonic() + PATIENCE)
        assert not lives(orphan)
    finally:
        libc.prctl(set_child_subreaper, 0, 0, 0, 0)


def test_the_job_ends_with_the_broker(stage: Stage) -> None:
    """The job notices the end of the broker by its standard input, even when the broker was killed."""
    stage.goes("hang")
    work = spool(stage.work_dir, at_positions([single("a", b"1")], 0), 1)
    work.save()
    command = [sys.executable, "-P", "-m", engine.MODULE, work.folder]
    with ending(subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)) as job:
        trio.run(stage.begun)
        assert job.stdin is not None
        job.stdin.close()
        assert job.wait(PATIENCE) == -signal.SIGKILL
    assert not stage.work_dir.exists()


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        (
            ("mastr", "x"),
            "unknown option: mastr; the options are master, work-dir, format, chunk-bytes, and Spark's own spark.*",
        ),
        (("work-dir", "/no/where"), "work-dir: /no/where is not a folder"),
        (("format", "no.where"), "format must be pulsar, values or module:object, not no.where: No module named 'no'"),
        (("chunk-bytes", "0"), "chunk-bytes must be a number of at least 1, not 0"),
    ],
)
def test_the_engine_refuses_options_that_cannot_be(option: tuple[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=f"^compaction engine spark: {reason}"):
        make_engine("spark", [option])


def test_the_engine_says_that_java_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NoJava):
        SparkCompactor()
    with pytest.raises(ConfigError, match=r"^compaction engine spark: Spark needs Java 17 or later \(Debian: "):
        make_engine("spark")
