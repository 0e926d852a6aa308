"""Wireshark reads the frames of all recordings of real brokers, with the dissector that Pulsarium generates."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pulsarium.capture.as_json import entry_of
from pulsarium.capture.file import CaptureRecord, Header
from pulsarium.capture.lint.checker import Walk
from pulsarium.capture.lint.frames import Frame
from pulsarium.capture.pcap.dissector import dissector
from pulsarium.capture.pcap.exporter import Exporter
from tests.capture.lint.transcripts import FOLDER, complete, records
from tests.docs.blocks import ROOT, TESTED, blocks, commands
from tests.foreign.toolchains import in_ci

RECORDED = [*complete(), *sorted((FOLDER / "pulsar-5").glob("*.jsonl"))]


def frames_of(path: Path) -> list[Frame]:
    walk = Walk()
    return [frame for record in records(path) if (frame := walk.feed(record)[1].frame) is not None]


def sound(path: Path) -> bool:
    """Return whether a recording has no frame that is broken on purpose."""
    return not any(each.broken or "broken" in (entry_of(each) or {}) for each in frames_of(path))


SOUND = [path for path in RECORDED if sound(path)]


def together(paths: list[Path]) -> Iterator[CaptureRecord]:
    """Yield the records of many recordings, each with connections of its own."""
    offset = 0
    for path in paths:
        some = list(records(path))
        yield from (replace(each, connection=offset + each.connection) for each in some)
        offset += 1 + max((each.connection for each in some), default=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the dissector, and the packets of all recordings and of the sound ones."""
    if shutil.which("tshark") is None:
        reason = 'tshark is needed (Debian: tshark): run "scripts/setup --foreign"'
        if in_ci():
            pytest.fail(reason)
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("packets")
    for name, paths in (("all", RECORDED), ("sound", SOUND)):
        with (folder / f"{name}.pcapng").open("wb") as file:
            exporter = Exporter(file.write, Header(0))
            for number, record in enumerate(together(paths), 1):
                exporter.feed(number, record)
    (folder / "pulsar.lua").write_text(dissector())
    return folder


def tshark(folder: Path, name: str, *arguments: str) -> str:
    line = ["tshark", "-X", "lua_script:pulsar.lua", "-r", f"{name}.pcapng", *arguments]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, "Lua" in done.stderr) == (0, False), done.stderr
    return done.stdout


def test_no_recorded_frame_is_malformed(folder: Path) -> None:
    assert len(SOUND) > 100
    assert tshark(folder, "all", "-Y", "_ws.malformed || _ws.lua.error") == ""
    assert tshark(folder, "sound", "-Y", "pulsar.odd || pulsar.undecoded") == ""


def test_wireshark_reads_the_commands_that_pulsarium_reads(folder: Path) -> None:
    told = tshark(folder, "sound", "-Y", "pulsar", "-T", "fields", "-E", "aggregator=;", "-e", "pulsar.command")
    names = [name for line in told.splitlines() for name in line.split(";")]
    assert names == [each.name for path in SOUND for each in frames_of(path)]


def test_wireshark_reads_metadata_and_messages(folder: Path) -> None:
    fields = ("pulsar.command", "pulsar.MessageMetadata.producer_name", "pulsar.SingleMessageMetadata.payload_size")
    line = ["-Y", "pulsar.SingleMessageMetadata.payload_size", "-T", "fields"]
    told = tshark(folder, "sound", *line, *(each for field in fields for each in ("-e", field)))
    assert told
    assert all(all(line.split("\t")) for line in told.splitlines())


def test_wireshark_recognizes_brokers_on_other_ports(folder: Path) -> None:
    told = tshark(folder, "sound", "-o", "pulsar.port:1", "-Y", 'pulsar.command == "CONNECTED"')
    assert len(told.splitlines()) > 100


def test_the_filters_of_the_docs_are_understood(folder: Path) -> None:
    page = blocks(ROOT / "docs" / "wire.md")
    shown = "".join(each.text for each in page if each.marker == TESTED)
    lines = [shlex.split(line) for line in commands(shown) if line.startswith("tshark ")]
    assert [line[:5] for line in lines] == 2 * [["tshark", "-X", "lua_script:pulsar.lua", "-r", "run.pcapng"]]
    by_command, by_topic = (tshark(folder, "sound", *line[5:]) for line in lines)
    assert "SEND" in by_command
    assert by_topic == ""
