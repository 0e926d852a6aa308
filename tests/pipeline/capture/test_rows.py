"""Rows of a capture."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from pulsarium.capture.lint import checker
from pulsarium.pipeline.capture import parquet
from pulsarium.pipeline.capture.rows import EXCHANGES, FRAMES, TABLES, VIOLATIONS, batches, everything
from tests.capture.captures import small, with_a_fault, write
from tests.capture.lint.talk import TOPIC, Talk

from . import captured
from .captured import columns, picked

EXAMPLES = Path(__file__).parents[3] / "examples" / "python"
UP, DOWN = "client->broker", "broker->client"


def test_a_frame_is_a_row(tmp_path: Path) -> None:
    found = list(captured.frames(str(write(tmp_path / "run.pulscap", [small()]))))
    names = "number direction command request_id producer_id sequence_id topic error error_message"
    assert picked(FRAMES, found, names) == [
        (0, UP, "CONNECT", None, None, None, None, None, None),
        (1, DOWN, "CONNECTED", None, None, None, None, None, None),
        (2, UP, "PRODUCER", 100, 1, None, TOPIC, None, None),
        (3, DOWN, "PRODUCER_SUCCESS", 100, None, None, TOPIC, None, None),
        (4, UP, "SEND", None, 1, 0, TOPIC, None, None),
        (5, DOWN, "SEND_RECEIPT", None, 1, 0, TOPIC, None, None),
        (6, UP, "SEND", None, 1, 1, TOPIC, None, None),
        (7, DOWN, "SEND_ERROR", None, 1, 1, TOPIC, "ChecksumError", "does not fit"),
        (8, UP, "LOOKUP", -2, None, None, TOPIC, None, None),
        (9, UP, None, None, None, None, None, None, None),
    ]
    assert set(picked(FRAMES, found, "capture connection client client_version")) == {
        ("run", 0, "Pulsar-Test", "1.2.3")
    }
    assert picked(FRAMES, found, "protocol_version")[0] == (None,)
    assert {*picked(FRAMES, found, "protocol_version")[1:]} == {(21,)}
    assert picked(FRAMES, found, "broken")[-1] == ("the frame has only 5 bytes",)
    assert picked(FRAMES, found, "time monotonic_ns")[4] == (6_000, 6_000_000)


def test_a_request_and_its_answer_are_one_row(tmp_path: Path) -> None:
    found = list(captured.exchanges(str(write(tmp_path / "run.pulscap", [small()]))))
    assert picked(EXCHANGES, found, "number command answer outcome error_message latency_us") == [
        (0, "CONNECT", "CONNECTED", "ok", None, 1000.0),
        (2, "PRODUCER", "PRODUCER_SUCCESS", "ok", None, 1000.0),
        (4, "SEND", "SEND_RECEIPT", "ok", None, 1000.0),
        (6, "SEND", "SEND_ERROR", "ChecksumError", "does not fit", 1000.0),
        (8, "LOOKUP", None, "no answer", None, None),
    ]


def test_a_closed_connection_ends_its_exchanges(tmp_path: Path) -> None:
    talk = small()
    talk.close()
    found = list(captured.exchanges(str(write(tmp_path / "run.pulscap", [talk]))))
    assert picked(EXCHANGES, found, "command outcome")[-1] == ("LOOKUP", "closed")


def test_a_violation_is_a_row(tmp_path: Path) -> None:
    path = write(tmp_path / "run.pulscap", with_a_fault("permits-exceeded"))
    assert picked(VIOLATIONS, list(captured.violations(str(path))), "connection side rule command topic detail") == [
        (2, "broker", "permits-exceeded", "MESSAGE", TOPIC, "MESSAGE to consumer 1, which has 0 permits")
    ]


def test_a_cut_file_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = write(tmp_path / "run.pulscap", [small()])
    whole = len(list(captured.frames(str(path))))
    path.write_bytes(path.read_bytes()[:-1])
    found = list(captured.frames(str(path)))
    assert len(found) == whole - 1
    assert picked(FRAMES, found, "broken")[-1] == (None,)


def test_a_damaged_file_says_so_in_its_last_row(tmp_path: Path) -> None:
    path = write(tmp_path / "run.pulscap", [small()])
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert picked(FRAMES, list(captured.frames(str(path))), "connection broken")[-1] == (
        None,
        "the rest of the file cannot be read: a record is damaged: its checksum does not match",
    )
    found = picked(EXCHANGES, list(captured.exchanges(str(path))), "command outcome")
    assert found[-1] == ("LOOKUP", "no answer")  # open requests get a row, as at the end of a whole file


def test_each_table_fits_its_schema(tmp_path: Path) -> None:
    path = str(write(tmp_path / "run.pulscap", [small(), *with_a_fault("permits-exceeded")]))
    for name, batch in batches(everything(path)):
        assert batch.schema.names == columns(TABLES[name])
        assert batch.num_rows == sum(table == name for table, _ in everything(path))


def test_a_capture_without_frames_has_no_rows(tmp_path: Path) -> None:
    path = str(write(tmp_path / "run.pulscap", [Talk()]))
    assert [list(read(path)) for read in (captured.frames, captured.exchanges, captured.violations)] == [[], [], []]


def test_of_connections_that_were_closed_only_the_last_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checker, "_CLOSED_KEPT", 1)
    talks = [Talk(number) for number in (1, 2, 3, 3)]
    for talk in talks:
        talk.greet()
        talk.close()
    crossing = [Talk(number, opened=False) for number in (1, 3)]
    for talk in crossing:
        talk.broker("PING")
    found = list(captured.frames(str(write(tmp_path / "run.pulscap", [*talks, *crossing]))))
    assert picked(FRAMES, found[-2:], "connection client") == [(1, "unknown"), (3, "Pulsar-Test")]


def test_the_program_of_the_page_counts_outcomes_latencies_and_violations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parquet.write(write(tmp_path / "run.pulscap", [small(), *with_a_fault("permits-exceeded")]), tmp_path / "tables")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / "capture_tables.py"))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["SEND", "ChecksumError", "1"] in [line[-3:] for line in lines]
    assert ["broker", "permits-exceeded", "Pulsar-Test", "1"] in lines
    assert any("99%" in line for line in lines)
