"""/lab/reset, snapshot, restore, seed."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.lab.masks import Mask
from pulsarium.broker.storage.errors import StorageError
from tests.broker.admin.rest import rest_of
from tests.broker.wire import TOPIC, Bed, plain, serving


@pytest.fixture
async def here() -> AsyncIterator[Bed]:
    async with serving(Config(maxMessageSize=100_000)) as bed:
        yield bed


def topics(bed: Bed) -> list[str]:
    return bed.broker.topics.names("public/default")


async def test_there_and_back(here: Bed) -> None:
    rest = rest_of(here)
    wire = await here.connect()
    await wire.producer()
    await wire.publish(*[plain(b"x" * 90_000)] * 10)
    answer = await rest.call("POST", "/lab/snapshot")
    assert answer.status == 200
    assert len(answer.body) > 900_000  # more than any other body may have
    assert (await rest.call("POST", "/lab/reset")).status == 204
    assert topics(here) == []
    assert (await rest.call("POST", "/lab/restore", body=answer.body)).status == 204
    assert topics(here) == [TOPIC]


async def test_the_lab_is_reset_unless_told_otherwise(here: Bed) -> None:
    rest, lab = rest_of(here), here.broker.cluster.lab
    assert lab is not None
    lab.masks.add(Mask(max_protocol_version=3))
    await rest.call("POST", "/lab/reset?lab=false")
    assert len(lab.masks.worn) == 1
    await rest.call("POST", "/lab/reset")
    assert lab.masks.worn == []


async def test_what_is_no_snapshot(here: Bed) -> None:
    for body in (b"", b"hello", b"SQLite format 3\x00" + bytes(2000)):
        answer = await rest_of(here).call("POST", "/lab/restore", body=body)
        assert answer.status == 400
        assert "the body is not a snapshot" in answer.json["reason"]


async def test_a_seed(here: Bed) -> None:
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
