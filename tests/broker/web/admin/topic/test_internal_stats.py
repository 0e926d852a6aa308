"""Internal stats of topics: ledgers and cursors."""

from __future__ import annotations

import pytest

from pulsarium.broker.config import Config
from tests.broker.web.admin.rest import NON_PERSISTENT, TOPICS, Rest, rest_of
from tests.broker.web.admin.topic.shown import kinds, recorded
from tests.broker.wire import TOPIC, Bed, Earliest, Shared, Wire, plain, serving

URL = f"{TOPICS}/t/internalStats"
_FIELDS = """
entriesAddedCounter numberOfEntries totalSize currentLedgerEntries currentLedgerSize lastLedgerCreatedTimestamp
waitingCursorsCount pendingAddEntriesCount lastConfirmedEntry state ledgers cursors properties schemaLedgers
compactedLedger
"""
FIELDS = _FIELDS.split()


async def test_internal_stats_of_a_topic_at_work(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    await wire.subscribe(name="s", type=Shared, initialPosition=Earliest)
    positions = await wire.publish(*[plain(b"x")] * 6)
    ledger = positions[0].ledger_id
    await wire.flow()
    await wire.messages(6)
    await wire.ack(positions[1])
    await wire.ack(positions[3])
    stats = await rest.get(URL)
    assert list(stats) == FIELDS
    assert stats["entriesAddedCounter"] == stats["numberOfEntries"] == stats["currentLedgerEntries"] == 6
    assert stats["totalSize"] == stats["currentLedgerSize"] == 6 * len(plain(b"x"))
    assert (stats["lastConfirmedEntry"], stats["state"]) == (f"{ledger}:5", "LedgerOpened")
    assert (stats["waitingCursorsCount"], stats["pendingAddEntriesCount"]) == (1, 0)
    open_ledger = {"ledgerId": ledger, "entries": 0, "size": 0, "offloaded": False, "underReplicated": False}
    assert stats["ledgers"] == [open_ledger]
    cursor = stats["cursors"]["s"]
    assert kinds(cursor) == kinds(recorded("073")["s"])
    assert cursor["markDeletePosition"] == f"{ledger}:-1"
    assert cursor["readPosition"] == f"{ledger}:6"
    assert cursor["individuallyDeletedMessages"] == f"[({ledger}:0..{ledger}:1],({ledger}:2..{ledger}:3]]"
    assert cursor["totalNonContiguousDeletedMessagesRange"] == 2
    assert cursor["numberOfEntriesSinceFirstNotAckedMessage"] == 7
    assert cursor["messagesConsumedCounter"] == 2
    assert (cursor["state"], cursor["active"], cursor["waitingReadOp"]) == ("Open", True, True)


async def test_internal_stats_show_ledger_metadata_as_bookkeeper_has_it() -> None:
    async with serving(Config(managedLedgerMaxEntriesPerLedger=1, managedLedgerMinLedgerRolloverTimeMinutes=0)) as bed:
        rest = rest_of(bed)
        wire = await bed.connect()
        await wire.producer()
        await wire.publish(plain(b"x"))
        await wire.publish(plain(b"y"))
        full, *_, current = (await rest.get(f"{URL}?metadata=true"))["ledgers"]
    assert "metadata" in current
    length = len(plain(b"x"))
    assert f" state=CLOSED, length={length}, lastEntryId=0, digestType=" in full["metadata"]
    assert " state=OPEN, digestType=" in current["metadata"]
    name = "cHVibGljL2RlZmF1bHQvcGVyc2lzdGVudC90"  # public/default/persistent/t
    assert f"pulsar/managed-ledger=base64:{name}, " in current["metadata"]


async def test_a_cursor_that_nothing_was_acknowledged_on(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t/subscription/s")
    cursor = (await rest.get(URL))["cursors"]["s"]
    assert (cursor["state"], cursor["cursorLedger"], cursor["cursorLedgerLastEntry"]) == ("NoLedger", -1, -1)
    assert (cursor["active"], cursor["waitingReadOp"]) == (False, False)
    assert cursor["numberOfEntriesSinceFirstNotAckedMessage"] == 1


@pytest.mark.req("S423-67")
@pytest.mark.parametrize(("ranges", "ledger"), [(3, False), (4, True)])
@pytest.mark.serving(Config(managedLedgerMaxUnackedRangesToPersistInMetadataStore=3))
async def test_a_cursor_with_too_many_ranges_stays_in_its_ledger(bed: Bed, ranges: int, ledger: bool) -> None:
    rest, wire = rest_of(bed), await bed.connect()
    await wire.producer()
    await wire.subscribe(name="s", type=Shared)
    positions = await wire.publish(*[plain(b"x")] * 10)
    await wire.ack(*positions[1 : 2 * ranges : 2])
    opened = (await rest.get(URL))["cursors"]["s"]
    assert (opened["state"], opened["cursorLedgerLastEntry"]) == ("Open", 1)
    await rest.done("PUT", f"{TOPICS}/t/unload")
    cursor = (await rest.get(URL))["cursors"]["s"]
    assert cursor["state"] == "NoLedger"
    assert cursor["cursorLedger"] == (opened["cursorLedger"] if ledger else -1)
    assert cursor["totalNonContiguousDeletedMessagesRange"] == ranges
    assert cursor["individuallyDeletedMessages"] == opened["individuallyDeletedMessages"]


async def test_counting_and_reading_begin_anew_with_a_topic_that_is_loaded_again(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    await wire.subscribe(initialPosition=Earliest)
    await wire.flow()
    positions = await wire.publish(*[plain(b"x")] * 3)
    await wire.messages(3)
    await wire.ack(positions[0])
    before = await rest.get(URL)
    assert (before["entriesAddedCounter"], before["cursors"]["sub"]["messagesConsumedCounter"]) == (3, 1)
    await rest.done("PUT", f"{TOPICS}/t/unload")
    after = await rest.get(URL)
    assert (after["entriesAddedCounter"], after["cursors"]["sub"]["messagesConsumedCounter"]) == (0, -2)
    assert after["cursors"]["sub"]["readPosition"] == str(positions[1])


async def test_closed_ledgers_show_what_they_hold() -> None:
    config = Config(managedLedgerMaxEntriesPerLedger=2, managedLedgerMinLedgerRolloverTimeMinutes=0)
    async with serving(config) as bed:
        rest, wire = rest_of(bed), await bed.connect()
        await wire.producer()
        await wire.subscribe(initialPosition=Earliest)
        positions = [(await wire.publish(plain(b"x")))[0] for _ in range(5)]
        stats = await rest.get(URL)
        assert [each["entries"] for each in stats["ledgers"]] == [2, 2, 0]
        assert stats["ledgers"][0]["size"] == 2 * len(plain(b"x"))
        assert (stats["numberOfEntries"], stats["currentLedgerEntries"]) == (5, 1)
        assert stats["lastConfirmedEntry"] == str(positions[4])


async def test_internal_stats_of_a_non_persistent_topic(rest: Rest, wire: Wire) -> None:
    await wire.producer(f"non-{TOPIC}")
    await wire.subscribe(f"non-{TOPIC}")
    await wire.publish(plain(b"x"))
    stats = await rest.get(f"{NON_PERSISTENT}/t/internalStats")
    assert stats["entriesAddedCounter"] == 1
    assert stats["numberOfEntries"] == 0
    assert stats["cursors"]["sub"]["active"] is False
    assert list(stats) == [*FIELDS[:5], "waitingCursorsCount", "pendingAddEntriesCount", "cursors"]


@pytest.mark.parametrize("of", ["internalStats", "internal-info"])
async def test_the_name_of_a_cursor_is_encoded_as_java_does(rest: Rest, wire: Wire, of: str) -> None:
    await wire.subscribe(name="billing eu/1~*")
    assert [*(await rest.get(f"{TOPICS}/t/{of}"))["cursors"]] == ["billing+eu%2F1%7E*"]
