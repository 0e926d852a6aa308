"""REST calls of /lab/reset, snapshot, restore and seed, of /lab/process and /lab/why, and of /lab/namespaces."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from pulsarium.broker.config import Config
from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.masks import Mask
from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.web.http import request
from tests.broker.web.admin.rest import rest_of
from tests.broker.wire import TOPIC, Bed, Type, plain, serving


@pytest.fixture
async def here() -> AsyncIterator[Bed]:
    async with serving(Config(maxMessageSize=100_000)) as bed:
        yield bed


def topics(bed: Bed) -> list[str]:
    return bed.broker.topics.names("public/default")


async def test_a_snapshot_is_restored_over_rest(here: Bed) -> None:
    rest = rest_of(here)
    wire = await here.connect()
    await wire.producer()
    await wire.publish(*[plain(b"x" * 90_000)] * 10)
    answer = await rest.call("POST", "/lab/snapshot")
    assert answer.status == 200
    assert len(answer.body) > 900_000  # more than the limit of all other bodies
    assert (await rest.call("POST", "/lab/reset")).status == 204
    assert topics(here) == []
    assert (await rest.call("POST", "/lab/restore", body=answer.body)).status == 204
    assert topics(here) == [TOPIC]


async def test_snapshots_come_and_go_piece_by_piece_and_leave_no_file_behind(
    here: Bed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(request, "PIECE", 1000)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rest = rest_of(here)
    await rest.call("PUT", "/admin/v2/persistent/public/default/t")
    answer = await rest.call("POST", "/lab/snapshot")
    assert answer.headers["content-length"] == str(len(answer.body))
    pieces = [answer.body[start : start + 700] for start in range(0, len(answer.body), 700)]
    await rest.call("POST", "/lab/reset")
    assert (await rest.call("POST", "/lab/restore", body=pieces)).status == 204
    assert topics(here) == [TOPIC]
    assert (await rest.call("POST", "/lab/restore", body=pieces[:1])).status == 400
    assert os.listdir(tmp_path) == []


async def test_a_disk_that_takes_no_body(here: Bed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(path: Path, mode: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(trio, "open_file", full)
    answer = await rest_of(here).call("POST", "/lab/restore", body=b"a snapshot")
    assert answer.status == 507
    assert answer.reason == (
        f"the body could not be written to {tmp_path}: No space left on device; make room there, or start the broker "
        "with another folder in TMPDIR"
    )


async def test_the_lab_is_reset_unless_told_otherwise(here: Bed) -> None:
    rest, lab = rest_of(here), here.broker.cluster.attached(Lab)
    lab.masks.add(Mask(max_protocol_version=3))
    await rest.call("POST", "/lab/reset?lab=false")
    assert len(lab.masks.worn) == 1
    await rest.call("POST", "/lab/reset")
    assert lab.masks.worn == []


async def test_a_file_that_is_no_snapshot_is_refused(here: Bed) -> None:
    for body in (b"", b"hello", b"SQLite format 3\x00" + bytes(2000)):
        answer = await rest_of(here).call("POST", "/lab/restore", body=body)
        assert answer.status == 400
        assert "the body is not a snapshot" in answer.json["reason"]


async def test_a_seed_creates_topics_and_a_broken_one_is_refused(here: Bed) -> None:
    rest = rest_of(here)
    answer = await rest.call("POST", "/lab/seed", body=b'[[topics]]\nname = "t"\nmessages = ["a", "b"]\n')
    assert answer.json == {"tenants": 0, "namespaces": 0, "topics": 1, "subscriptions": 0, "messages": 2}
    assert topics(here) == [TOPIC]
    answer = await rest.call("POST", "/lab/seed", body=b"[[topics]]\nname = 3\n")
    assert (answer.status, answer.json) == (400, {"reason": "topics[0].name: a text"})
    assert (await rest.call("POST", "/lab/seed", body=b"\xff")).status == 400


async def test_a_store_that_does_not_take_it(here: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(here.broker.cluster.storage, "replace", full)
    answer = await rest_of(here).call("POST", "/lab/reset")
    assert (answer.status, answer.json) == (507, {"reason": "nothing was reset: the disk is full"})


async def test_a_namespace_lives_for_the_length_of_a_test() -> None:
    async with serving() as bed:
        rest, namespaces = rest_of(bed), bed.broker.metadata.namespaces
        body = {"name": "orders", "policies": {"message_ttl_in_seconds": 60}}
        made = [(await rest.call("POST", "/lab/namespaces", value=body)).json["name"] for _ in range(2)]
        assert made == ["public/orders", "public/orders-2"]
        assert namespaces["public/orders"]["message_ttl_in_seconds"] == 60
        wire = await bed.connect()
        await wire.producer(topic="persistent://public/orders/t")
        for name in made:
            await rest.call("DELETE", f"/lab/namespaces/{name}")
        assert [name in namespaces for name in made] == [True, False]  # a client still uses the first one
        await wire.ask(Type.CLOSE_PRODUCER, producer_id=0)
        await rest.call("DELETE", "/lab/namespaces/public/orders")
        assert made[0] not in namespaces


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": 1},
        {"name": "a", "colour": 1},
        {"name": "a", "policies": {"colour": 1}},
        {"name": "public/default"},
        {"name": "a/b/c"},
        {"name": "/"},
    ],
)
async def test_a_wrong_namespace_is_refused(body: Any) -> None:
    async with serving() as bed:
        assert (await rest_of(bed).call("POST", "/lab/namespaces", value=body)).status == 400


async def test_closed_connections_leave_no_session(bed: Bed) -> None:
    rest = rest_of(bed)
    await wait_all_tasks_blocked()  # tasks of the start may end late
    before = await rest.get("/lab/process")
    assert before["sessions"] == 0
    wire = await bed.connect()
    more = await rest.get("/lab/process?census=true")
    assert more["sessions"] == 1
    assert more["tasks"] > before["tasks"]
    assert more["objects"]["pulsarium.broker.session.session.Session"] >= 1
    await wire.aclose()
    await wait_all_tasks_blocked()
    after = await rest.get("/lab/process")
    assert (after["sessions"], after["tasks"]) == (0, before["tasks"])


async def test_the_process_is_named_with_its_data_folder(bed: Bed, tmp_path: Path) -> None:
    rest = rest_of(bed)
    process = await rest.get("/lab/process")
    assert (process["pid"], process["upSinceMs"], process["data"]) == (os.getpid(), bed.broker.up_since_ms, None)
    async with serving(data=tmp_path) as other:
        assert (await rest_of(other).get("/lab/process"))["data"] == str(tmp_path)


async def test_the_reason_is_told_over_rest() -> None:
    async with serving() as bed:
        rest, wire = rest_of(bed), await bed.connect()
        await wire.producer()
        await wire.subscribe(consumer_name="c")
        (position,) = await wire.publish(plain(b"0"))
        found = await rest.get(f"/lab/why?topic=t&subscription=sub&messageId={position}")
        assert (found["reason"], found["text"]) == ("no-permits", "c has no permits left: its client sent no FLOW")
        assert (found["details"]["topic"], found["details"]["messageId"]) == (TOPIC, str(position))
        unasked = await rest.get("/lab/why?topic=t&subscription=sub")
        assert unasked == found | {"details": found["details"] | {"backlog": 1}}
        missing = await rest.refused("GET", "/lab/why?topic=t&subscription=other")
        assert missing == (404, f"{TOPIC} has no subscription other; there are: sub")
        assert (await rest.refused("GET", "/lab/why?topic=t&subscription=sub&messageId=1"))[0] == 400
        assert (await rest.get("/lab/why?topic=t&producer="))["reason"] == "can-be-created"
        assert (await rest.refused("GET", "/lab/why?topic=t&producer=p&subscription=sub"))[0] == 400
        for query in ("", "?topic=t", "?topic=t&subscription=sub&message=1"):
            assert (await rest.refused("GET", f"/lab/why{query}"))[0] == 400
