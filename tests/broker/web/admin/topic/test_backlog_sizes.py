"""Sizes, estimates and analysis of backlogs over REST."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import PIP, PULSAR_4_2, Config, Profile
from pulsarium.broker.model.ledger.position import Position
from tests.broker.held import HeldStorage
from tests.broker.web.admin.rest import TOPICS, Rest, rest_of
from tests.broker.wire import Bed, Earliest, Shared, Wire, batch_of, plain, serving

T = f"{TOPICS}/t"
ANALYZE = f"{T}/subscription/s/analyzeBacklog"
PROFILES = pytest.mark.parametrize("profile", [PIP, PULSAR_4_2], ids=lambda profile: profile.name)
SIZE = len(plain(b"x"))


async def published(wire: Wire, *entries: bytes) -> list[Position]:
    await wire.producer()
    return await wire.publish(*entries or [plain(b"x")] * 4)


def at(ledger: Any, entry: Any) -> dict[str, Any]:
    return {"ledgerId": ledger, "entryId": entry, "partitionIndex": -1}


# size


async def size(rest: Rest, body: Any) -> int:
    answer = await rest.call("PUT", f"{T}/backlogSize", body)
    assert answer.status == 200, answer
    found: int = answer.json
    return found


async def test_a_backlog_size_is_the_bytes_behind_a_message(rest: Rest, wire: Wire) -> None:
    ((ledger, _), *_) = await published(wire)
    for entry, left in ((-1, 4), (0, 3), (2, 1), (3, 0), (99, 0), (-5, 4)):
        assert await size(rest, at(ledger, entry)) == left * SIZE
    assert await size(rest, at(-1, -1)) == await size(rest, at(-2, 5)) == 4 * SIZE
    assert await size(rest, at(ledger + 1000, 0)) == 0
    assert await size(rest, {**at(str(ledger), "1"), "batchIndex": 1, "other": [1]}) == 2 * SIZE
    assert await size(rest, at(ledger + 0.5, None)) == 3 * SIZE


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ([], "Cannot deserialize value of type `org.apache.pulsar.client.impl.MessageIdImpl` from Array value"),
        ("x", "Cannot construct instance of `org.apache.pulsar.client.impl.MessageIdImpl` (although at least one"),
        ({"ledgerId": "a"}, 'Cannot deserialize value of type `long` from String "a": not a valid `long` value'),
        (
            {"ledgerId": True},
            "Cannot deserialize value of type `long` from Boolean value (token `JsonToken.VALUE_TRUE`",
        ),
        ({"ledgerId": 2**63}, f"Numeric value ({2**63}) out of range of long"),
        ({"ledgerId": 1e300}, "Numeric value (1e+300) out of range of long"),
    ],
)
async def test_a_backlog_size_wants_a_message_id(rest: Rest, wire: Wire, body: Any, text: str) -> None:
    await published(wire)
    answer = await rest.call("PUT", f"{T}/backlogSize", body)
    assert (answer.status, answer.headers["content-type"]) == (400, "text/plain")
    assert answer.body.decode().startswith(text)


@PROFILES
async def test_a_backlog_size_without_a_message_id_is_refused(bed: Bed, profile: Profile) -> None:
    async with serving(profile=profile) as made:
        rest, wire = rest_of(made), await made.connect()
        await published(wire)
        answers = [await rest.refused("PUT", f"{T}/backlogSize"), await rest.refused("PUT", f"{T}/backlogSize", None)]
        for status, text in answers:
            if profile is PIP:
                assert (status, text) == (400, "A message id is needed")
            else:
                assert (status, '"messageId" is null' in text) == (500, True)


# the estimate


async def test_the_backlog_of_a_topic_is_estimated(rest: Rest, wire: Wire) -> None:
    positions = await published(wire)
    await wire.subscribe(name="all", type=Shared, initialPosition=Earliest)
    await wire.subscribe(name="some", type=Shared, initialPosition=Earliest, consumer_id=1)
    await wire.ack(positions[0], consumer_id=1)
    found = await rest.get(f"{T}/backlog")
    assert list(found) == [
        *("topicName", "brokerName", "storageSize", "totalMessages", "messageBacklog"),
        *("dataLedgerDetails", "cursorDetails", "statGeneratedAt"),
    ]
    some = found["cursorDetails"].pop("some")
    assert found | {"statGeneratedAt": 0} == {
        "topicName": "public/default/persistent/t",
        "brokerName": "localhost",
        "storageSize": 4 * SIZE,
        "totalMessages": 4,
        "messageBacklog": 7,
        "dataLedgerDetails": [],
        "cursorDetails": {"all": {"cursorBacklog": 4, "cursorLedgerId": -1}},
        "statGeneratedAt": 0,
    }
    assert (some["cursorBacklog"], some["cursorLedgerId"] >= 0) == (3, True)


# analysis


async def analyzed(rest: Rest, body: Any = None, url: str = ANALYZE) -> Any:
    answer = await rest.call("POST", url, body) if body is not None else await rest.call("POST", url)
    assert answer.status == 200, answer
    return answer.json


async def test_analysis_looks_at_each_entry(rest: Rest, wire: Wire) -> None:
    marker = plain(b"", marker_type=21)
    entries = (plain(b"a"), batch_of(*[b"b"] * 3), marker, plain(b"c"), batch_of(*[b"d"] * 2))
    positions = await published(wire, *entries)
    await wire.subscribe(name="s", type=Shared, initialPosition=Earliest)
    await wire.ack(positions[3])
    ledger = positions[0].ledger_id
    assert await analyzed(rest) == {
        "entries": 3,
        "messages": 6,
        "markerMessages": 1,
        "filterRejectedEntries": 0,
        "filterAcceptedEntries": 3,
        "filterRescheduledEntries": 0,
        "filterRejectedMessages": 0,
        "filterAcceptedMessages": 6,
        "filterRescheduledMessages": 0,
        "aborted": False,
        "firstMessageId": f"{ledger}:0",
        "lastMessageId": f"{ledger}:4",
    }


async def test_analysis_begins_at_a_position(rest: Rest, wire: Wire) -> None:
    positions = await published(wire)
    ledger = positions[0].ledger_id
    await wire.subscribe(name="s", type=Shared, initialPosition=Earliest)
    await wire.ack(positions[0])
    await wire.ack(positions[2])
    for body, count in (
        (None, 2),
        (at(ledger, 2), 1),
        (at(ledger, 3), 1),
        (at(ledger, 4), 0),
        (at(ledger + 1000, 0), 0),
        (at(ledger, 0), 3),  # Pulsar counts the acknowledged entry at the given position
        ("earliest", 3),
        ("latest", 0),
    ):
        found = await analyzed(rest, body)
        assert (found["entries"], "firstMessageId" in found) == (count, count > 0), body
    for wrong in ([1], "wrong"):
        assert (await rest.call("POST", ANALYZE, wrong)).status == 400


async def test_analysis_goes_over_ledgers_and_reads_from_disk(bed: Bed) -> None:
    async with serving(Config(managedLedgerCacheSizeMB=0), storage=HeldStorage()) as made:
        rest, wire = rest_of(made), await made.connect()
        await rest.done("PUT", f"{T}/subscription/s")
        for _ in range(3):
            await published(wire, *[plain(b"x")] * 150)
            await rest.done("PUT", f"{T}/unload")
            await wire.next()
        made.broker.cluster.cache.trim()
        assert (await analyzed(rest))["messages"] == 450


@pytest.mark.parametrize(("limit", "aborted"), [(3, True), (4, False), (5, False)])
async def test_analysis_stops_after_so_many_entries(bed: Bed, limit: int, aborted: bool) -> None:
    async with serving(Config(subscriptionBacklogScanMaxEntries=limit)) as made:
        rest, wire = rest_of(made), await made.connect()
        await published(wire)
        await wire.subscribe(name="s", initialPosition=Earliest)
        found = await analyzed(rest)
        assert (found["entries"], found["aborted"]) == (min(limit, 4), aborted)


async def test_analysis_stops_after_so_long(bed: Bed) -> None:
    store = HeldStorage()
    config = Config(managedLedgerCacheSizeMB=0, subscriptionBacklogScanMaxTimeMs=500)
    async with serving(config, storage=store) as made:
        rest, wire = rest_of(made), await made.connect()
        await published(wire)
        await wire.subscribe(name="s", initialPosition=Earliest)
        made.broker.cluster.cache.trim()
        store.holding_reads = True
        found = await analyzed(rest)
        assert (found["entries"], found["aborted"]) == (0, True)
