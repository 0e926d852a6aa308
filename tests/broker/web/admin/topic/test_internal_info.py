"""Internal info: topics as the metadata store holds them."""

from __future__ import annotations

import re
from typing import Any

from pulsarium.broker.config import Config
from pulsarium.broker.config.keys import APPEND_INDEX
from tests.broker.held import HeldStorage
from tests.broker.web.admin.rest import TOPICS, Rest, rest_of
from tests.broker.wire import Bed, Earliest, Shared, Wire, plain, serving

T = f"{TOPICS}/t"
INFO = f"{T}/internal-info"
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d*[1-9])?Z")


def without_times(info: dict[str, Any]) -> dict[str, Any]:
    for name in ("creationDate", "modificationDate"):
        assert INSTANT.fullmatch(info.pop(name))
    return info


async def test_internal_info_of_a_topic_at_work(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    await wire.subscribe(name="s", type=Shared, initialPosition=Earliest)
    await wire.subscribe(name="a", type=Shared, initialPosition=Earliest, consumer_id=1)
    positions = await wire.publish(*[plain(b"x")] * 6)
    ledger = positions[0].ledger_id
    await wire.ack(positions[1])
    info = without_times(await rest.get(INFO))
    assert list(info) == ["version", "ledgers", "cursors"]
    (current,) = info["ledgers"]
    assert (info["version"], list(current)) == (1, ["ledgerId", "timestamp", "isOffloaded"])
    assert list(info["cursors"]) == ["a", "s"]
    unused, used = map(without_times, info["cursors"].values())
    before = {"ledgerId": ledger, "entryId": -1}
    assert unused == {"version": 0, "cursorsLedgerId": -1, "markDelete": before}
    assert used["cursorsLedgerId"] >= 0
    assert used | {"cursorsLedgerId": 0} == {"version": 1, "cursorsLedgerId": 0, "markDelete": before}


async def test_internal_info_shows_closed_ledgers_and_cursors(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    await wire.subscribe(name="s", type=Shared, initialPosition=Earliest)
    positions = await wire.publish(*[plain(b"x")] * 6)
    ledger = positions[0].ledger_id
    for number in (0, 2, 3, 5):
        await wire.ack(positions[number])
    await rest.done("PUT", f"{T}/unload")
    info = await rest.get(INFO)
    closed, current = info["ledgers"]
    assert list(closed) == ["ledgerId", "entries", "size", "timestamp", "isOffloaded"]
    assert (closed["ledgerId"], closed["entries"], closed["size"]) == (ledger, 6, 6 * len(plain(b"x")))
    assert current["ledgerId"] > ledger
    cursor = info["cursors"]["s"]
    assert (cursor["cursorsLedgerId"], cursor["markDelete"]) == (-1, {"ledgerId": ledger, "entryId": 0})
    ranges = [
        tuple((side["ledgerId"], side["entryId"]) for side in (each["from"], each["to"]))
        for each in cursor["individualDeletedMessages"]
    ]
    assert ranges == [((ledger, 1), (ledger, 3)), ((ledger, 4), (ledger, 5))]


async def test_internal_info_shows_properties_and_the_terminated_position(bed: Bed) -> None:
    async with serving(Config(brokerEntryMetadataInterceptors=(APPEND_INDEX,))) as made:
        rest, wire = rest_of(made), await made.connect()
        await wire.producer()
        await rest.done("PUT", f"{T}/properties", {"k": "v", "a": "b"})
        ((ledger, _),) = await wire.publish(plain(b"x"))
        await rest.call("POST", f"{T}/terminate")
        info = await rest.get(INFO)
        assert list(info["properties"].items()) == [("a", "b"), ("index", "-1"), ("k", "v")]
        assert info["terminatedPosition"] == {"ledgerId": ledger, "entryId": 0}
        assert info["version"] == 3


async def test_internal_info_after_a_restart(bed: Bed) -> None:
    store = HeldStorage()
    async with serving(storage=store) as made:
        wire = await made.connect()
        await wire.producer()
        await wire.subscribe(name="s", type=Shared, initialPosition=Earliest)
        (position, *_) = await wire.publish(plain(b"x"), plain(b"y"))
        await wire.ack(position)
    async with serving(storage=store) as made:
        info = await rest_of(made).get(INFO)
        assert [each.get("entries") for each in info["ledgers"]] == [2, None]
        assert info["cursors"]["s"]["markDelete"] == {"ledgerId": position.ledger_id, "entryId": 0}


async def test_internal_info_of_each_partition(rest: Rest, wire: Wire) -> None:
    await rest.done("PUT", f"{TOPICS}/parts/partitions", 2)
    info = await rest.get(f"{TOPICS}/parts/internal-info")
    names = [f"persistent://public/default/parts-partition-{number}" for number in range(2)]
    assert (info["version"], list(info["partitions"])) == (0, names)
    one = await rest.get(f"{TOPICS}/parts-partition-0/internal-info")
    assert info["partitions"][names[0]]["ledgers"][0]["ledgerId"] == one["ledgers"][0]["ledgerId"]
