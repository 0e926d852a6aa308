"""`pulsarium compact`: a data folder whose broker is stopped."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import trio
from click.testing import CliRunner, Result

from pulsarium.broker.config import ServeOptions
from pulsarium.broker.model.compaction import latest
from pulsarium.broker.model.compaction.compactor import TwoPhaseCompactor
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.server import open_core
from pulsarium.cli.compact import WatchedEngine, entries_to_read, run
from pulsarium.cli.main import cli
from pulsarium.proto.topic_name import TopicName
from tests.broker.model.compaction.topics import Single, compacted_entries, messages_in, publish, single, topic_of
from tests.broker.wire import TOPIC


def compact(folder: Path, *arguments: str) -> Result:
    command = ["compact", "--data", str(folder / "data"), *(arguments or [TOPIC])]
    return CliRunner().invoke(cli, command, prog_name="pulsarium", catch_exceptions=False)


def with_broker(folder: Path, entries: list[bytes]) -> list[Single]:
    """Publish to TOPIC, and return the messages that compaction left."""

    async def play() -> list[Single]:
        async with open_core(ServeOptions(data=folder / "data")) as broker:
            compacted = topic_of(broker).compaction.compacted
            loaded = trio.Event()
            if compacted.horizon is not None and compacted.read(Position(-1, -1), 1, loaded.set) is None:
                await loaded.wait()
            left = [(key, value) for _, _, key, value in messages_in(compacted_entries(topic_of(broker)))]
            if entries:
                publish(broker, *entries)
            return left

    return trio.run(play)


def test_pulsarium_compact_compacts_a_topic_once(tmp_path: Path) -> None:
    entries = [single("a", b"1"), single("b", b"1"), single("a", b"2"), single(None, b"x")]
    assert with_broker(tmp_path, entries) == []
    done = compact(tmp_path)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{TOPIC}: 2 entries kept, 2 messages removed in ")
    assert with_broker(tmp_path, []) == [("b", b"1"), ("a", b"2")]
    again = compact(tmp_path)
    assert (again.exit_code, again.stdout) == (0, f"{TOPIC}: no new messages, 2 entries kept\n")


def test_broker_conf_keys(tmp_path: Path) -> None:
    with_broker(tmp_path, [single(None, b"x")])
    assert compact(tmp_path, TOPIC, "--set", "topicCompactionRetainNullKey=true").exit_code == 0
    assert with_broker(tmp_path, []) == [(None, b"x")]


def test_a_partitioned_topic_is_its_partitions(tmp_path: Path) -> None:
    name = TopicName.parse("parted")

    async def play() -> None:
        async with open_core(ServeOptions(data=tmp_path / "data")) as broker:
            broker.topics.create_partitions(name, 2)

    trio.run(play)
    done = compact(tmp_path, "parted")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [f"{name.partition(index)}: no new messages, 0 entries kept" for index in (0, 1)]


def test_a_failure_leaves_it_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_broker(tmp_path, [single("a", b"1")])
    compact(tmp_path)
    with_broker(tmp_path, [single("a", b"2")])

    def broken(*arguments: Any, **others: Any) -> Any:
        raise ValueError("broken")

    with monkeypatch.context() as patched:
        patched.setattr(latest.LatestMessages, "decide", broken)
        failed = compact(tmp_path)
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert f"pulsarium: {TOPIC}: broken; the topic is unchanged\n" in failed.stderr
    assert with_broker(tmp_path, []) == [("a", b"1")]
    assert compact(tmp_path).exit_code == 0
    assert with_broker(tmp_path, []) == [("a", b"2")]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_compaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    with_broker(tmp_path, [single("a", b"1")])
    closed = []

    def endless(*arguments: Any, **others: Any) -> Iterator[bool]:
        os.kill(os.getpid(), number)
        try:
            while True:
                yield True
        finally:
            closed.append("by its engine")

    with monkeypatch.context() as patched:
        patched.setattr(TwoPhaseCompactor, "compact", endless)
        ended = compact(tmp_path)
    assert (ended.exit_code, ended.stdout) == (1, "")
    assert ended.stderr == "pulsarium: interrupted: the current topic is unchanged; run the command again\n"
    assert closed == ["by its engine"]
    assert compact(tmp_path).exit_code == 0
    assert with_broker(tmp_path, []) == [("a", b"1")]


def test_a_folder_that_a_broker_has(tmp_path: Path) -> None:
    async def play() -> Result:
        async with open_core(ServeOptions(data=tmp_path / "data")):
            return await trio.to_thread.run_sync(compact, tmp_path)

    refused = trio.run(play)
    assert refused.exit_code == 1
    assert "is in use by another pulsarium (pid " in refused.stderr
    assert refused.stderr.endswith("; let the running broker compact: pulsarium admin topics compact TOPIC\n")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nothing"], 1, "topic persistent://public/default/nothing does not exist in this data folder"),
        (["non-persistent://public/default/x"], 2, "non-persistent://public/default/x: only persistent topics can be"),
        (["a/b"], 2, "Invalid short topic name 'a/b'"),
        (["x", "--engine", "none"], 2, "compaction engine none: no such engine is installed"),
        (["x", "--format", "no.where"], 2, "compaction engine spark: format must be pulsar, values or module:object"),
        (["x", "--option", "a"], 2, "--option a: write KEY=VALUE"),
        (["x", "--set", "a"], 2, "--set"),
    ],
)
def test_compact_refuses_what_cannot_be(tmp_path: Path, arguments: list[str], code: int, said: str) -> None:
    if "--format" in arguments:
        pytest.importorskip("pyspark")
    with_broker(tmp_path, [])
    refused = compact(tmp_path, *arguments)
    assert (refused.exit_code, refused.stdout) == (code, "")
    assert refused.stderr.startswith(f"pulsarium: {said}")


def test_a_folder_without_a_broker(tmp_path: Path) -> None:
    refused = compact(tmp_path)
    assert refused.exit_code == 1
    said = "the folder holds no data of a broker; name the folder of serve --data"
    assert refused.stderr == f"pulsarium: --data {tmp_path / 'data'}: {said}\n"
    assert not (tmp_path / "data").exists()


def test_the_help_of_compact_teaches() -> None:
    shown = CliRunner().invoke(cli, ["compact", "--help"], prog_name="pulsarium").stdout
    assert "pulsarium compact orders --data ./data --master spark://host:7077 --work-dir /mnt/shared" in shown
    assert "Exit code 0 is success, 1 a failure, 2 a wrong command line." in " ".join(shown.split())


async def test_progress_counts_both_reads_of_a_topic(autojump_clock: object) -> None:
    """Compaction reads a topic twice. Here, an external job replaces the second read."""

    class Elsewhere(TwoPhaseCompactor):
        finished = 0.5

    async with open_core(ServeOptions()) as broker:
        topic = topic_of(broker)
        publish(broker, *(single("a", b"1") for _ in range(10)))
        assert entries_to_read(topic) == 10
        watched = WatchedEngine(TwoPhaseCompactor(), entries_to_read(topic))
        assert watched.finished == 0
        reader = watched.create_raw_reader(topic)
        assert reader.last == topic.ledger.last_confirmed
        assert len(reader.read(lambda: None) or ()) == 10
        assert watched.finished == 0.5
        reader.rewind()
        reader.read(lambda: None)
        assert watched.finished == 1
        assert WatchedEngine(Elsewhere(), 10).finished == 0.25


def test_a_bar_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_broker(tmp_path, [single("a", b"1")])
    shown = StringIO()
    monkeypatch.setattr(shown, "isatty", lambda: True)
    name = TopicName.parse(TOPIC)
    options = ServeOptions(data=tmp_path / "data", compaction_engine="two-phase")
    monkeypatch.setattr("sys.stderr", shown)
    assert run(options, [name])
    assert name.local_name in shown.getvalue()
    assert "100%" in shown.getvalue()
