"""/lab/captures over HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pulsarium.broker.lab.rest.capture import FIRST
from pulsarium.proto.capture import CaptureReader, Record
from tests.broker.admin.rest import Rest, rest_of
from tests.broker.wire import Bed, plain

ROOT = "/lab/captures"


@pytest.fixture
async def rest(bed: Bed) -> Rest:
    return rest_of(bed)


async def start(rest: Rest, **asked: Any) -> str:
    answer = await rest.call("POST", ROOT, asked)
    assert answer.status == 200, answer
    return f"{ROOT}/{answer.json['id']}"


async def lines(rest: Rest, url: str) -> list[dict[str, Any]]:
    answer = await rest.call("GET", url)
    assert answer.status == 200, answer
    return [json.loads(line) for line in answer.body.splitlines()]


async def records(rest: Rest, url: str) -> tuple[int, list[Record]]:
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


async def test_a_capture_in_a_file_is_downloaded(bed: Bed, rest: Rest, tmp_path: Path) -> None:
    path = tmp_path / "run.pulscap"
    capture = await start(rest, path=str(path), keepEntry=20)
    await bed.connect()
    first, kept = await records(rest, f"{capture}/records")
    assert (first, len(kept)) == (1, 3)
    await rest.done("DELETE", ROOT)
    assert list(CaptureReader().feed(path.read_bytes())) == kept


@pytest.mark.parametrize(
    ("asked", "status", "words"),
    [
        ({"path": "run.pulscap"}, 400, "absolute"),
        ({"path": "/etc/passwd"}, 400, "ends with .pulscap"),
        ({"path": 7}, 400, "absolute"),
        ({"path": "/nowhere/at/all.pulscap"}, 400, "No such file"),
        ({"keepEntry": -1}, 400, "keepEntry"),
        ({"keepEntry": True}, 400, "keepEntry"),
        ({"file": "x"}, 400, "path and keepEntry"),
    ],
)
async def test_what_cannot_be_started(rest: Rest, asked: dict[str, Any], status: int, words: str) -> None:
    answer = await rest.call("POST", ROOT, asked)
    assert answer.status == status
    assert words in answer.reason
    assert await rest.get(ROOT) == []


async def test_what_is_not_there(rest: Rest, tmp_path: Path) -> None:
    for path in ("7", "x", "7/frames", "9999999999999999"):
        assert (await rest.refused("GET", f"{ROOT}/{path}"))[0] == 404
    capture = await start(rest, path=str(tmp_path / "run.pulscap"))
    assert (await rest.refused("GET", f"{capture}/frames?after=-1"))[0] == 400
    assert (await rest.refused("POST", ROOT, {"path": str(tmp_path / "run.pulscap")}))[0] == 409
    (tmp_path / "run.pulscap").unlink()
    assert (await rest.refused("GET", f"{capture}/records"))[0] == 410
