"""`pulsarium capture`: files as lines, JSON and Parquet, what two differ in, captures of a broker of this process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import trio
import trio.testing
from click.testing import CliRunner, Result

from pulsarium.broker.lab import Lab
from pulsarium.capture.file import CaptureReader
from pulsarium.capture.pcap.dissector import dissector
from pulsarium.cli.admin.asked import AdminRun
from pulsarium.cli.lab.broker import LabOf
from pulsarium.cli.lab.capture import file as capture_files
from pulsarium.cli.lab.capture.file import capture_file, records_now, records_of
from pulsarium.cli.main import cli
from pulsarium.cli.refusal import CommandRefusal
from tests.broker.wire import plain
from tests.capture.captures import small, write
from tests.capture.lint.talk import Talk
from tests.cli.admin.live import live
from yardsticks.servers import ending


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["capture", *arguments], prog_name="pulsarium", catch_exceptions=False)


def shown(*arguments: str) -> list[str]:
    result = run("show", *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout.splitlines()


def other() -> Talk:
    talk = Talk(7)
    talk.greet()
    talk.subscribe()
    talk.deliver(1, messages=3)
    talk.ack(1)
    talk.close(reason="it was told to")
    return talk


@pytest.fixture
def capture(tmp_path: Path) -> str:
    return str(write(tmp_path / "run.pulscap", [small(), other()]))


def test_the_help_of_capture_teaches() -> None:
    text = run("--help").output
    for example in (
        "pulsarium serve --capture run.pulscap",
        "pulsarium capture start",
        "pulsarium capture show --live",
        "pulsarium capture proxy pulsar://localhost:6650 --out real.pulscap",
    ):
        assert example in text
    assert run().output == text


def test_a_capture_is_shown_with_a_line_for_each_frame(capture: str) -> None:
    lines = shown(capture)
    assert lines[0] == "    0.000000 #0   → opened"
    assert lines[1].startswith("    0.001000 #0   → CONNECT                client_version=Pulsar-Test-v1.2.3 protocol_")
    assert lines[2].startswith("    0.002000 #0   ← CONNECTED ")
    assert lines[2].endswith(" +1 ms 17 B")
    [sent] = [line for line in lines if "SEND  " in line and "sequence_id=0" in line]
    assert "producer_id=1 sequence_id=0 persistent://public/default/t [1 message, 7 B] " in sent
    [error] = [line for line in lines if "SEND_ERROR" in line]
    assert "error=ChecksumError message=does not fit" in error
    [broken] = [line for line in lines if " ?   " in line]
    assert "the frame has only 5 bytes" in broken
    [message] = [line for line in lines if "MESSAGE  " in line]
    assert "#7   ← MESSAGE                consumer_id=1 message_id=1:1 " in message
    assert "[3 messages, " in message
    assert lines[-1].endswith("#7   → closed by the client reason=it was told to")


@pytest.mark.parametrize(
    ("chosen", "count"),
    [
        (["--command", "send"], 2),
        (["--command", "SEND*"], 4),
        (["--command", "ACK", "--command", "FLOW"], 2),
        (["--connection", "7"], 9),
        (["--topic", "t", "--sender", "broker"], 5),
        (["--topic", "persistent://*/t", "--sender", "broker"], 5),
        (["--topic", "other"], 0),
    ],
)
def test_options_select_the_frames_that_are_shown(capture: str, chosen: list[str], count: int) -> None:
    assert len(shown(capture, *chosen)) == count


def test_a_frame_is_shown_in_full_with_its_entry(capture: str) -> None:
    text = "\n".join(shown(capture, "--command", "SEND", "--full"))
    assert "\n                 entry:\n" in text
    assert "\n                     producer_name: p\n" in text
    assert "\n                   payload: payload\n" in text


def test_a_capture_is_shown_as_json(capture: str) -> None:
    lines = [json.loads(line) for line in shown(capture, "--json", "--full")]
    assert [each["number"] for each in lines] == list(range(1, len(lines) + 1))
    [sent] = [each for each in lines if each.get("command") == "SEND" and each["fields"]["sequence_id"] == 0]
    assert sent["entry"]["payload"] == "payload"
    assert sent["entry"]["metadata"]["publish_time"] == 1_700_000_000_000
    exported = run("export", capture, "--jsonl")
    assert [json.loads(line) for line in exported.stdout.splitlines()] == lines


def test_a_capture_is_exported_as_parquet_tables(capture: str, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    result = run("export", capture, "--parquet", str(tmp_path / "tables"))
    assert result.exit_code == 0
    tables = {path.name: pq.read_table(path).to_pylist() for path in (tmp_path / "tables").iterdir()}
    assert sorted(tables) == ["exchanges.parquet", "frames.parquet", "violations.parquet"]
    assert [
        f"{tmp_path}/tables/{name}: {len(tables[name])} rows" for name in ("frames.parquet", "exchanges.parquet")
    ] == (result.stdout.splitlines()[:2])
    assert [each["command"] for each in tables["frames.parquet"] if each["connection"] == 7][:2] == [
        "CONNECT",
        "CONNECTED",
    ]


def test_captures_that_differ_in_times_and_versions_only_are_equal(tmp_path: Path) -> None:
    """Times, ids of connections and the versions of the client do not count."""
    old, new = small(), Talk(9)
    new.now = 5_000_000_000
    new.client("CONNECT", client_version="Pulsar-Test-v9.0", protocol_version=21)
    new.records += [replace(each, connection=9) for each in small().records[2:]]
    paths = [str(write(tmp_path / f"{name}.pulscap", [talk])) for name, talk in (("old", old), ("new", new))]
    result = run("diff", *paths)
    assert (result.exit_code, result.stdout) == (0, "no difference\n")


def test_the_command_shows_differences_of_captures(tmp_path: Path) -> None:
    old, new = other(), other()
    new.records = new.records[:-1]
    new.ack(1, cumulative=True)
    lonely = Talk(3)
    lonely.client("CONNECT", client_version="Another-v1.0", protocol_version=21)
    old_path, new_path = write(tmp_path / "old.pulscap", [old]), write(tmp_path / "new.pulscap", [new, lonely])
    result = run("diff", str(old_path), str(new_path))
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "connection 7 (Pulsar-Test 1.2.3) | connection 7 (Pulsar-Test 1.2.3)",
        "    client FLOW consumer_id=<1> messagePermits=10",
        "    client ACK consumer_id=<1> ack_type=Individual message_id=[{ledgerId=<ledgerId 1> entryId=1}]",
        "  + client ACK consumer_id=<1> ack_type=Cumulative message_id=[{ledgerId=<ledgerId 1> entryId=1}]",
        "only in the second: connection 3 (Another 1.0)",
        "  + client CONNECT protocol_version=21 -> no answer",
        "2 differences",
    ]
    assert run("diff", str(old_path), str(new_path), "--ignore", "ack", "--ignore", "connect").exit_code == 1
    assert run("diff", str(old_path), str(old_path)).exit_code == 0


def test_a_file_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_files, "_POLL_SECONDS", 0)
    whole = write(tmp_path / "whole.pulscap", [small()]).read_bytes()
    path = tmp_path / "run.pulscap"
    path.write_bytes(whole[:300])
    expected = list(CaptureReader().feed(whole))
    begun = len(list(CaptureReader().feed(whole[:300])))
    with closing(records_of(path, follow=True)) as records:  # type: ignore[type-var]
        assert [record for _, record in islice(records, begun)] == expected[:begun]
        path.write_bytes(whole)
        assert list(islice(records, len(expected) - begun)) == list(enumerate(expected, 1))[begun:]
        path.write_bytes(whole[:8])
        with pytest.raises(CommandRefusal, match="another capture has replaced the file"):
            next(records)
    path.write_bytes(whole)
    with closing(records_of(path, follow=True)) as records:  # type: ignore[type-var]
        assert len(list(islice(records, len(expected)))) == len(expected)
        path.rename(tmp_path / "earlier.pulscap")
        path.write_bytes(whole + whole)
        with pytest.raises(CommandRefusal, match="another capture has replaced the file"):
            next(records)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show"], "pass a FILE, or --live"),
        (["show", "{file}", "--live"], "pass a FILE, or --live"),
        (["show", "{folder}/absent"], "No such file"),
        (["show", "{text}"], "not a Pulsarium capture"),
        (["show", "{empty}"], "not a Pulsarium capture"),
        (["export", "{file}"], "--parquet DIR, --jsonl or --pcapng"),
        (["diff", "{file}", "{text}"], "not a Pulsarium capture"),
        (["proxy"], "pass the URL of one broker"),
        (["proxy", "http://h:1"], "pulsar://HOST:PORT or pulsar+ssl://HOST:PORT is wanted"),
        (["proxy", "pulsar://h:1", "--out", "{folder}/no/x"], "is not a directory"),
        (["--proxy", "http://h:1"], "pulsar://HOST:PORT or"),
        (["--port", "1", "list"], "pass options behind list"),
    ],
)
def test_capture_refuses_what_cannot_be(capture: str, tmp_path: Path, arguments: list[str], words: str) -> None:
    (tmp_path / "text").write_text("no capture at all")
    (tmp_path / "empty").write_bytes(b"")
    known = {"file": capture, "folder": tmp_path, "text": tmp_path / "text", "empty": tmp_path / "empty"}
    result = run(*[each.format(**known) for each in arguments])
    assert result.exit_code in (1, 2)
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_damaged_file_is_shown_up_to_the_damage(capture: str) -> None:
    count = len(shown(capture)) - 1
    data = bytearray(Path(capture).read_bytes())
    data[-10] ^= 1
    Path(capture).write_bytes(data)
    result = run("show", capture)
    assert (result.exit_code, len(result.stdout.splitlines())) == (1, count)
    assert f"cannot read beyond record {count}: a record is damaged" in result.stderr


def test_a_folder_gets_a_file_of_each_run(tmp_path: Path) -> None:
    found = capture_file(str(tmp_path), "--out")
    assert (found.parent, found.suffix) == (tmp_path, ".pulscap")
    with pytest.raises(CommandRefusal, match=r"--out: .*/absent is not a directory"):
        capture_file(f"{tmp_path}/absent/", "--out")


def test_names_do_not_steer_the_terminal(tmp_path: Path) -> None:
    talk = Talk(7)
    talk.client("CONNECT", client_version="\x1b[2J")
    talk.client("PRODUCER", topic="t", producer_id=1, request_id=1, initial_subscription_name="\x1b[2J")
    paths = [str(write(tmp_path / name, [each])) for name, each in (("old", small()), ("new", talk))]
    text = CliRunner().invoke(cli, ["capture", "diff", *paths], color=True).stdout
    assert "(\\x1b[2J)" in text
    assert "initial_subscription_name=\\x1b[2J" in text
    assert "\x1b[2J" not in text


async def test_captures_of_a_running_broker(tmp_path: Path) -> None:
    async with live() as here:
        lab = here.bed.broker.cluster.attached(Lab)
        lab.folder = tmp_path

        async def said(*arguments: str) -> Result:
            return await trio.to_thread.run_sync(partial(run, *arguments, "--admin-url", here.url))

        assert (await said("list")).stdout == "No captures. Add one: pulsarium capture start\n"
        assert "no captures run" in (await said("stop")).stderr
        path = tmp_path / "run.pulscap"
        assert "running          0 frames  since 20" in (await said("start", "run.pulscap")).stdout
        assert (await said("start", "--keep-entry", "20")).exit_code == 0
        wire = await here.bed.connect()
        await wire.producer()
        await wire.publish(plain(b"hello"))
        listed = (await said("list")).stdout.splitlines()
        assert [line.split()[:3] for line in listed] == [["1", "running", "6"], ["2", "running", "6"]]
        assert listed[0].endswith(f"  {path}")
        assert "2 captures run" in (await said("stop")).stderr
        out = tmp_path / "memory.pulscap"
        assert (await said("stop", "2", "--out", str(out))).exit_code == 0
        assert [each["running"] for each in json.loads((await said("list", "--json")).stdout)] == [True, False]
        assert (await said("stop")).exit_code == 0
        in_file, in_memory = (list(CaptureReader().feed(each.read_bytes())) for each in (path, out))
        assert len(in_file) == len(in_memory) == 7
        assert [each.cut for each in in_memory] == [False] * 5 + [True, False]
        assert "No such file" in (await said("start", "only/on/its/machine/run.pulscap")).stderr
        failed = await said("start", "run.txt")
        assert (failed.exit_code, "end the name with .pulscap" in failed.stderr) == (2, True)


async def test_a_capture_is_started_in_a_folder_of_the_broker(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    async with live() as here:
        start = partial(run, "start", "runs/", "--admin-url", here.url)
        refused = await trio.to_thread.run_sync(start)
        assert (refused.exit_code, "pulsarium serve --lab-dir DIR" in refused.stderr) == (1, True)
        lab = here.bed.broker.cluster.attached(Lab)
        lab.folder = tmp_path
        assert (await trio.to_thread.run_sync(start)).exit_code == 0
        [path] = (tmp_path / "runs").iterdir()
        assert path.suffix == ".pulscap"


async def test_records_are_shown_as_they_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_files, "_POLL_SECONDS", 0.001)
    async with live() as here:
        lab = LabOf(AdminRun(admin_url=here.url))
        records = records_now(lab)
        captures = here.bed.broker.cluster.attached(Lab)
        async with trio.open_nursery() as nursery:
            found: list[str] = []

            async def watch() -> None:
                for _ in range(3):
                    number, record = await trio.to_thread.run_sync(next, records)
                    found.append(f"{number} {record.kind.name} {record.sender.value}")

            nursery.start_soon(watch)
            while not captures.captures.running:
                await trio.testing.wait_all_tasks_blocked(0.001)
            await trio.to_thread.run_sync(partial(lab.call, "GET", "captures"))  # the watcher polls by now
            await here.bed.connect()
        assert found == ["1 OPENED client", "2 FRAME client", "3 FRAME broker"]
        await trio.to_thread.run_sync(records.close)  # type: ignore[attr-defined]
        assert captures.captures.all == []


@pytest.mark.parametrize("words", [["proxy"], ["--proxy"]])
def test_the_proxy_runs_until_a_signal(tmp_path: Path, words: list[str]) -> None:
    command = [
        sys.executable,
        "-P",
        "-m",
        "pulsarium",
        "capture",
        *words,
        "pulsar://localhost:1",
        "--out",
        "run.pulscap",
    ]
    with ending(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path)) as process:
        assert process.stdout is not None
        ready = process.stdout.readline().split()
        assert ready[:2] == ["pulsarium", "proxy"]
        assert ready[2].startswith("pulsar://127.0.0.1:")
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == f"0 frames in {tmp_path}/run.pulscap\n"
    assert process.returncode == 0
    assert list(CaptureReader().feed((tmp_path / "run.pulscap").read_bytes())) == []


def test_a_capture_goes_to_packets_and_back(tmp_path: Path) -> None:
    capture = str(write(tmp_path / "talk.pulscap", [other()]))
    packets, back = tmp_path / "run.pcapng", tmp_path / "back.pulscap"
    said = run("export", capture, "--pcapng", str(packets))
    assert (said.exit_code, said.stdout) == (0, f"{packets}: {len(list(records_of(Path(capture)))) + 2} packets\n")
    imported = run("import", str(packets), "--out", str(back))
    assert imported.exit_code == 0
    assert imported.stdout.endswith(f" frames of 1 connections in {back}\n")
    assert run("diff", capture, str(back)).stdout == "no difference\n"


def test_packets_that_cannot_be_read_are_refused(capture: str, tmp_path: Path) -> None:
    said = run("import", capture, "--out", str(tmp_path / "x.pulscap"))
    assert (said.exit_code, said.stderr) == (1, f"pulsarium: {capture}: the file is neither pcapng nor pcap\n")
    assert not (tmp_path / "x.pulscap").exists()
    assert run("import", str(tmp_path / "absent")).exit_code == 1


def test_an_incomplete_last_packet_is_told(capture: str, tmp_path: Path) -> None:
    packets = tmp_path / "run.pcapng"
    run("export", capture, "--pcapng", str(packets))
    packets.write_bytes(packets.read_bytes()[:-10])
    said = run("import", str(packets), "--out", str(tmp_path / "x.pulscap"))
    assert said.exit_code == 0
    assert "the last packet is incomplete" in said.stderr


def test_the_dissector_is_printed() -> None:
    assert run("dissector").stdout == dissector()
