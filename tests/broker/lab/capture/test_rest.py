"""REST calls of /lab/captures."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pulsarium.broker.lab.lab import Lab
from pulsarium.broker.web.lab.capture import FIRST, PACKETS
from pulsarium.capture.file import CaptureReader, CaptureRecord, EventKind
from pulsarium.capture.pcap.blocks import Packet, PacketReader
from pulsarium.capture.pcap.importer import Importer
from tests.broker.web.admin.rest import Answer, Rest, rest_of
from tests.broker.wire import Bed, plain

ROOT = "/lab/captures"


@pytest.fixture
async def rest(bed: Bed, tmp_path: Path) -> Rest:
    lab_of(bed).folder = tmp_path
    return rest_of(bed)


def lab_of(bed: Bed) -> Lab:
    return bed.broker.cluster.attached(Lab)


def packets_of(answer: Answer) -> list[Packet]:
    assert (answer.status, answer.headers["content-type"]) == (200, PACKETS)
    return list(PacketReader().feed(answer.body))


async def start(rest: Rest, **asked: Any) -> str:
    answer = await rest.call("POST", ROOT, asked)
    assert answer.status == 200, answer
    return f"{ROOT}/{answer.json['id']}"


async def lines(rest: Rest, url: str) -> list[dict[str, Any]]:
    answer = await rest.call("GET", url)
    assert answer.status == 200, answer
    return [json.loads(line) for line in answer.body.splitlines()]


async def records(rest: Rest, url: str) -> tuple[int, list[CaptureRecord]]:
    answer = await rest.call("GET", url)
    assert answer.status == 200, answer
    return int(answer.headers[FIRST.lower()]), list(CaptureReader().feed(answer.body))


async def test_a_capture_in_memory_is_followed(bed: Bed, rest: Rest) -> None:
    capture = await start(rest)
    wire = await bed.connect()
    await wire.producer()
    told = await lines(rest, f"{capture}/frames")
    assert [(each["number"], each.get("command", each["kind"]), each["sender"]) for each in told] == [
        (1, "opened", "client"),
        (2, "CONNECT", "client"),
        (3, "CONNECTED", "broker"),
        (4, "PRODUCER", "client"),
        (5, "PRODUCER_SUCCESS", "broker"),
    ]
    assert told[3]["topic"] == told[4]["topic"] == "persistent://public/default/t"
    assert told[3]["fields"]["producer_id"] == 0
    assert told[4]["latency_us"] > 0
    assert await lines(rest, f"{capture}/frames?after=5") == []
    await wire.publish(plain(b"hello", partition_key="k"))
    [sent, receipt] = await lines(rest, f"{capture}/frames?after=5&full=true")
    assert (sent["number"], sent["command"], sent["entry"]["payload"]) == (6, "SEND", "hello")
    assert (sent["entry"]["metadata"]["partition_key"], sent["entry"]["messages"]) == ("k", 1)
    assert sent["entry"]["checksum"] is True
    assert receipt["fields"]["message_id"]["entryId"] == 0
    first, kept = await records(rest, f"{capture}/records?after=5")
    assert (first, len(kept)) == (6, 2)
    shown = await rest.get(capture)
    assert (shown["running"], shown["frames"], shown["records"], shown["path"]) == (True, 6, 7, None)
    assert (await rest.call("POST", f"{capture}/stop")).json["running"] is False
    assert await rest.get(ROOT) == [shown | {"running": False}]
    assert len(await lines(rest, f"{capture}/frames")) == 7
    await rest.done("DELETE", capture)
    assert await rest.get(ROOT) == []


async def test_a_capture_is_downloaded_as_packets(bed: Bed, rest: Rest) -> None:
    capture = await start(rest)
    assert packets_of(await rest.call("GET", f"{capture}/packets")) == []
    wire = await bed.connect()
    await wire.producer()
    await wire.publish(plain(b"hello"))
    packets = packets_of(await rest.call("GET", f"{capture}/packets"))
    imported = bytearray()
    importer = Importer(imported.extend, packets[0].ns)
    for packet in packets:
        importer.feed(packet)
    _, kept = await records(rest, f"{capture}/records")
    frames = [each.data for each in CaptureReader().feed(bytes(imported)) if each.kind is EventKind.FRAME]
    assert frames == [each.data for each in kept if each.kind is EventKind.FRAME]


async def test_packets_of_a_lost_file_are_refused(rest: Rest, tmp_path: Path) -> None:
    capture = await start(rest, path="run.pulscap")
    (tmp_path / "run.pulscap").unlink()
    assert (await rest.refused("GET", f"{capture}/packets"))[0] == 410


async def test_a_capture_in_a_file_is_downloaded(bed: Bed, rest: Rest, tmp_path: Path) -> None:
    path = tmp_path / "run.pulscap"
    capture = await start(rest, path="run.pulscap", keepEntry=20)
    await bed.connect()
    first, kept = await records(rest, f"{capture}/records")
    assert (first, len(kept)) == (1, 3)
    await rest.done("DELETE", ROOT)
    assert list(CaptureReader().feed(path.read_bytes())) == kept


@pytest.mark.parametrize(
    ("asked", "status", "words"),
    [
        ({"path": "passwd"}, 400, "ends with .pulscap"),
        ({"path": 7}, 400, "ends with .pulscap"),
        ({"path": "a\x00.pulscap"}, 400, "ends with .pulscap"),
        ({"path": "/run.pulscap"}, 400, "relative to the folder of --lab-dir"),
        ({"path": "nowhere/at/all.pulscap"}, 400, "No such file"),
        ({"keepEntry": -1}, 400, "keepEntry"),
        ({"keepEntry": True}, 400, "keepEntry"),
        ({"file": "x"}, 400, "path and keepEntry"),
    ],
)
async def test_a_capture_that_cannot_start_is_refused(
    rest: Rest, asked: dict[str, Any], status: int, words: str
) -> None:
    answer = await rest.call("POST", ROOT, asked)
    assert answer.status == status
    assert words in answer.reason
    assert await rest.get(ROOT) == []


async def test_no_file_is_written_by_a_broker_without_a_folder_for_them(bed: Bed, tmp_path: Path) -> None:
    for path in ("run.pulscap", str(tmp_path / "run.pulscap")):
        status, reason = await rest_of(bed).refused("POST", ROOT, {"path": path})
        assert status == 403
        assert "pulsarium serve --lab-dir DIR" in reason
        assert "pulsarium capture start, without a file" in reason
    assert not os.listdir(tmp_path)


async def test_nothing_leads_out_of_the_folder(bed: Bed, rest: Rest, tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    lab_of(bed).folder = inside
    (inside / "folder").symlink_to(outside)
    (inside / "file.pulscap").symlink_to(outside / "file.pulscap")
    (inside / "circle.pulscap").symlink_to("circle.pulscap")
    for path in (
        str(outside / "run.pulscap"),
        str(inside / "run.pulscap"),
        "../outside/run.pulscap",
        "folder/../../outside/run.pulscap",
        "folder/run.pulscap",
        "file.pulscap",
        "circle.pulscap",
    ):
        assert (await rest.refused("POST", ROOT, {"path": path}))[0] == 400, path
    assert not os.listdir(outside)


async def test_a_link_that_stays_in_the_folder_is_followed(rest: Rest, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "latest").symlink_to("runs")
    await start(rest, path="latest/run.pulscap")
    assert (tmp_path / "runs" / "run.pulscap").exists()


async def test_a_capture_that_is_not_there_is_not_found(rest: Rest, tmp_path: Path) -> None:
    for path in ("7", "x", "7/frames", "9999999999999999"):
        assert (await rest.refused("GET", f"{ROOT}/{path}"))[0] == 404
    capture = await start(rest, path="run.pulscap")
    assert (await rest.refused("GET", f"{capture}/frames?after=-1"))[0] == 400
    assert (await rest.refused("POST", ROOT, {"path": "run.pulscap"}))[0] == 409
    (tmp_path / "run.pulscap").unlink()
    assert (await rest.refused("GET", f"{capture}/records"))[0] == 410
