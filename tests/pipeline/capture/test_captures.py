"""Tables, Parquet files and differences of captures on Spark. A folder is written whole or stays as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pulsarium.pipeline.capture import Captures, NoCaptures, differences, output
from pulsarium.pipeline.capture.captures import found, names
from pulsarium.pipeline.capture.rows import FRAMES
from tests.capture.captures import small, with_a_fault, write
from tests.capture.lint.talk import TOPIC, Talk

from . import captured
from .captured import picked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WHO = ("Pulsar-Test", "1.2.3", 21)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("captures")
    write(path / "small.pulscap", [small()])
    write(path / "faulty.pulscap", with_a_fault("permits-exceeded"))
    return path


@pytest.fixture(scope="module")
def run(spark: SparkSession, folder: Path) -> Iterator[Captures]:
    with Captures(spark, [folder]) as captures:
        yield captures


def test_the_frames_of_captures_are_a_table(run: Captures) -> None:
    columns = ("capture", "connection", "number", "command")
    read = {row for path in run.paths for row in picked(FRAMES, list(captured.frames(path)), " ".join(columns))}
    assert {tuple(row) for row in run.frames.select(*columns).collect()} == read
    assert {name for name, *_ in read} == {"faulty", "small"}


def test_violations_in_captures_are_a_table(run: Captures) -> None:
    assert [tuple(row)[:6] for row in run.broken_rules().collect()] == [
        ("broker", "permits-exceeded", "Pulsar-Test", "1.2.3", 1, "MESSAGE to consumer 1, which has 0 permits"),
        ("client", "broken-frame", "Pulsar-Test", "1.2.3", 1, "the frame has only 5 bytes"),
    ]


def test_the_matrix_counts_commands_of_each_client_by_outcome(run: Captures) -> None:
    assert [tuple(row) for row in run.matrix.collect()] == [
        (*WHO, command, outcome, count)
        for command, outcome, count in [
            ("(unreadable)", "broken", 1),
            ("ACK", "sent", 1),
            ("CLOSE_CONSUMER", "ok", 1),
            ("CLOSE_PRODUCER", "ok", 1),
            ("CONNECT", "ok", 3),
            ("FLOW", "sent", 3),
            ("LOOKUP", "no answer", 1),
            ("LOOKUP", "ok", 1),
            ("PONG", "sent", 1),
            ("PRODUCER", "ok", 2),
            ("SEND", "ChecksumError", 1),
            ("SEND", "ok", 3),
            ("SUBSCRIBE", "ok", 2),
        ]
    ]


def test_latencies_are_counted_for_commands_with_an_answer(run: Captures) -> None:
    found = {row.command: tuple(row)[3:] for row in run.latencies.collect()}
    assert found["SEND"] == (4, 1000.0, 1000.0, 1000.0, 1000.0)
    assert "FLOW" not in found


def slower(milliseconds: int) -> Talk:
    talk = small()
    talk.client("SEEK", consumer_id=1, request_id=7)
    talk.now += (milliseconds - 1) * 1_000_000
    talk.broker("SUCCESS", request_id=7)
    return talk


def test_differences_of_captures_are_a_table(spark: SparkSession, tmp_path: Path) -> None:
    before = slower(10)
    after = slower(30)
    after.client("PARTITIONED_METADATA", topic=TOPIC, request_id=8)
    after.broker("PARTITIONED_METADATA_RESPONSE", request_id=8)
    paths = [write(tmp_path / f"{name}.pulscap", [talk]) for name, talk in (("a", before), ("b", after))]
    with Captures(spark, paths[:1]) as first, Captures(spark, paths[1:]) as second:
        assert [tuple(row) for row in differences(first, second).collect()] == [
            ("count", "Pulsar-Test", "PARTITIONED_METADATA", "ok", None, 1.0, "new"),
            ("p50", "Pulsar-Test", "SEEK", "", 10_000.0, 30_000.0, "slower"),
            ("p99", "Pulsar-Test", "SEEK", "", 10_000.0, 30_000.0, "slower"),
        ]


def test_a_folder_is_written(run: Captures, spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "report"
    target.mkdir()
    (target / "matrix.svg").write_text("of yesterday")
    (target / "mine.txt").write_text("not theirs")
    (target / "differences.parquet").mkdir()  # an earlier run with --against left this folder
    told: list[str] = []
    output.write(run, target, tell=told.append)
    assert sorted(path.name for path in target.iterdir()) == sorted([*told, "mine.txt"])
    assert (target / "matrix.svg").read_text().startswith("<?xml")
    assert (target / "mine.txt").read_text() == "not theirs"
    assert spark.read.parquet(str(target / "frames.parquet")).count() == run.frames.count()


def test_a_folder_stays_as_it_was_when_something_fails(tmp_path: Path) -> None:
    (tmp_path / "matrix.parquet").mkdir()
    (tmp_path / "matrix.parquet" / "part").write_text("of yesterday")
    with pytest.raises(FileNotFoundError), output.beside(tmp_path) as new:
        (new / "absent" / "matrix.parquet").mkdir()
    assert [path.name for path in tmp_path.iterdir()] == ["matrix.parquet"]
    assert (tmp_path / "matrix.parquet" / "part").read_text() == "of yesterday"
    with output.beside(tmp_path) as new:
        (new / "matrix.parquet").mkdir()
    assert [path.name for path in tmp_path.rglob("*")] == ["matrix.parquet"]


def test_captures_are_found_by_folder_pattern_and_name(folder: Path) -> None:
    both = [str(folder / name) for name in ("faulty.pulscap", "small.pulscap")]
    assert found([folder]) == found([f"{folder}/*.pulscap"]) == found([*both, folder]) == both


def test_a_file_that_is_no_capture_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.pulscap").write_text("hello")
    for source, why in (
        (tmp_path / "absent", "no capture at"),
        (tmp_path / "*.cap", "no capture at"),
        (tmp_path / "text.pulscap", "is not a Pulsarium capture"),
    ):
        with pytest.raises(NoCaptures, match=why):
            found([source])
    with pytest.raises(NoCaptures, match="no captures were given"):
        found([])


def test_a_failed_move_restores_all_old_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "b").write_text("old")
    real = Path.rename

    def rename(self: Path, place: Path) -> Path:
        if self.read_text() == "new" and place == tmp_path / "b":
            raise OSError("no")
        return real(self, place)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(OSError, match="no"), output.beside(tmp_path) as new:
        _ = [(new / name).write_text("new") for name in ("a", "b", "c")]
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "old", "b": "old"}


@pytest.mark.parametrize("after", range(1, 6))
def test_ctrl_c_between_two_moves_moves_all_back(after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = {"a": "old", "b": "old", "gone": "old"}
    for name, text in old.items():
        (tmp_path / name).write_text(text)
    real, moved = Path.rename, []

    def rename(self: Path, place: Path) -> Path:
        moved.append(real(self, place))
        if len(moved) == after:
            raise KeyboardInterrupt
        return moved[-1]

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(KeyboardInterrupt), output.beside(tmp_path, ["gone"]) as new:
        _ = [(new / name).write_text("new") for name in ("a", "b")]
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == old


def test_an_old_file_of_the_results_goes_with_the_next_run(tmp_path: Path) -> None:
    for name in ("differences.parquet", "mine.txt"):
        (tmp_path / name).write_text("old")
    with output.beside(tmp_path, ["differences.parquet", "absent"]) as new:
        (new / "matrix.svg").write_text("new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["matrix.svg", "mine.txt"]


def test_captures_of_one_name_are_told_apart() -> None:
    assert names(["/c/a/broker.pulscap", "/c/b/broker.pulscap"]) == ["a/broker", "b/broker"]
    assert names(["/c/a.pulscap", "/c/b/c.pulscap", "/c/d"]) == ["a", "b/c", "d"]
    assert names(["/c/run.pulscap"]) == ["run"]
