"""Managed ledgers: appending, commits, rollover, positions, trimming and recovery.

Reads of all entries behind a position at once.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.model.ledger.managed_ledger import LedgerFencedError, ManagedLedger, PendingPublish
from pulsarium.broker.model.ledger.position import EARLIEST, LATEST, Position
from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.storage.sqlite import SqliteStorage
from pulsarium.proto.generated import MLDataFormats_pb2 as ml
from tests.broker.held import HeldStorage
from tests.broker.model.stores import NAME, Publisher, append, cluster_of, heard, read_all

MINUTE = 60.0


def entries(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


# commits


async def test_entries_are_visible_when_they_are_committed(
    store: HeldStorage, cluster: Cluster, ledger: ManagedLedger
) -> None:
    cluster.turn.finish()
    store.holding = True
    publisher, confirmed = Publisher(), []
    heard(ledger).on_confirmed = lambda: confirmed.append(ledger.last_confirmed)
    first = ledger.last_confirmed
    append(ledger, cluster, b"a", b"b", publisher=publisher)
    append(ledger, cluster, b"c", publisher=publisher)
    assert (ledger.last_confirmed, ledger.count, publisher.kept) == (first, 0, [])
    assert ledger.read(ledger.next(first), 10, lambda: None) == []
    assert not ledger.is_valid(Position(first.ledger_id, 0))
    store.release(1)
    assert publisher.kept == [Position(first.ledger_id, 0), Position(first.ledger_id, 1)]
    assert confirmed == [Position(first.ledger_id, 1)]
    assert ledger.read(ledger.next(first), 10, lambda: None) == [b"a", b"b"]
    store.release()
    assert [entry for _, entry in read_all(ledger)] == [b"a", b"b", b"c"]
    assert publisher.sequence_ids == [0, 1, 0]
    assert ledger.entries_added == 3


async def test_a_failed_commit_fences_the_ledger(store: HeldStorage, cluster: Cluster, ledger: ManagedLedger) -> None:
    append(ledger, cluster, b"kept")
    store.holding = True
    fenced: list[bool] = []
    heard(ledger).on_fenced = lambda: fenced.append(True)
    lost, behind = Publisher(), Publisher()
    append(ledger, cluster, b"lost", b"lost too", publisher=lost)
    append(ledger, cluster, b"behind", publisher=behind)
    store.fail()
    assert lost.failures == ["commit failed: the disk is full"] * 2
    assert behind.failures == ["commit failed: the disk is full"]  # before the listener is told of the fence
    assert fenced == [True]
    with pytest.raises(LedgerFencedError):
        ledger.append_run([PendingPublish(lost, b"no more")])
    store.release()
    assert fenced == [True]
    assert len(lost.failures + behind.failures) == 3
    assert (behind.kept, behind.lost) == ([], 0)
    assert [entry for _, entry in read_all(ledger)] == [b"kept"]


async def test_lost_entries_never_show(store: HeldStorage, cluster: Cluster, ledger: ManagedLedger) -> None:
    append(ledger, cluster, b"a")
    store.holding = True
    append(ledger, cluster, b"lost", b"lost")
    store.fail()
    store.release()
    assert (ledger.count, ledger.size) == (1, 1)
    failed_in = ledger.last_confirmed.ledger_id
    ledger.reopen()
    append(ledger, cluster, *entries(5))
    assert ledger.last_confirmed.ledger_id != failed_in
    assert [entry for _, entry in read_all(ledger)] == [b"a", *entries(5)]
    assert ledger.count == 6
    assert ledger.count_after(ledger.first_position()) == 6


async def test_a_ledger_deleted_while_a_commit_is_on_its_way(
    store: HeldStorage, cluster: Cluster, ledger: ManagedLedger
) -> None:
    store.holding = True
    publisher = Publisher()
    append(ledger, cluster, b"a", publisher=publisher)
    ledger.delete()
    cluster.turn.finish()
    store.release()
    assert len(publisher.kept) + publisher.lost == 1
    assert store.entries == {}
    assert ledger.path not in store.metadata
    with pytest.raises(LedgerFencedError):
        ledger.append_run([PendingPublish(publisher, b"no more")])


# rollover


async def test_a_full_ledger_is_followed_by_another(
    store: HeldStorage, cluster: Cluster, ledger: ManagedLedger
) -> None:
    for entry in entries(10):
        append(ledger, cluster, entry)
    assert [each.count for each in ledger.ledgers.values()] == [3, 3, 3, 1]
    assert [each.closed for each in ledger.ledgers.values()] == [True, True, True, False]
    assert [entry for _, entry in read_all(ledger)] == entries(10)
    info = ml.ManagedLedgerInfo.FromString(store.metadata[ledger.path])
    assert [(kept.entries, kept.size) for kept in info.ledgerInfo] == [(3, 3), (3, 3), (3, 3), (0, 0)]
    assert all(kept.timestamp for kept in info.ledgerInfo[:3])


async def test_a_ledger_may_be_full_of_bytes() -> None:
    cluster = cluster_of(managedLedgerMaxSizePerLedgerMbytes=1, managedLedgerMinLedgerRolloverTimeMinutes=0)
    ledger = ManagedLedger(NAME, cluster)
    for _ in range(5):
        append(ledger, cluster, bytes(600_000))
    assert [each.count for each in ledger.ledgers.values()] == [2, 2, 1]


async def test_a_young_ledger_is_not_ended(mock_clock: MockClock) -> None:
    cluster = cluster_of(managedLedgerMaxEntriesPerLedger=3, managedLedgerMinLedgerRolloverTimeMinutes=10)
    ledger = ManagedLedger(NAME, cluster)
    for _ in range(5):
        append(ledger, cluster, b"x")
    mock_clock.jump(9.9 * MINUTE)
    append(ledger, cluster, b"x")
    assert [each.count for each in ledger.ledgers.values()] == [6]
    mock_clock.jump(0.2 * MINUTE)
    append(ledger, cluster, b"x")
    assert [each.count for each in ledger.ledgers.values()] == [6, 1]


async def test_an_old_ledger_is_ended(mock_clock: MockClock) -> None:
    cluster = cluster_of(managedLedgerMaxLedgerRolloverTimeMinutes=240)
    ledger = ManagedLedger(NAME, cluster)
    append(ledger, cluster, b"x")
    mock_clock.jump(241 * MINUTE)
    append(ledger, cluster, b"x")
    assert [each.count for each in ledger.ledgers.values()] == [1, 1]


async def test_a_ledger_that_is_rolled_over_while_commits_are_on_their_way(
    store: HeldStorage, cluster: Cluster, ledger: ManagedLedger
) -> None:
    cluster.turn.finish()
    store.holding = True
    publisher = Publisher()
    for entry in entries(8):
        append(ledger, cluster, entry, publisher=publisher)
    assert [each.count for each in ledger.ledgers.values()] == [3, 3, 2]
    assert read_all(ledger) == []
    for visible in range(1, 9):
        store.release(1)
        assert [entry for _, entry in read_all(ledger)] == entries(visible)
        assert ledger.count_after(ledger.first_position()) == visible
    assert [position for position, _ in read_all(ledger)] == publisher.kept


# positions


async def ledger_with_gaps() -> tuple[ManagedLedger, list[Position]]:
    """Return a managed ledger with ledgers of 3, 1, 2 and 0 entries, whose ids have gaps, and the positions."""
    cluster = cluster_of()
    ledger = ManagedLedger(NAME, cluster)
    publisher = Publisher()
    for count in (3, 1, 2):
        append(ledger, cluster, *entries(count), publisher=publisher)
        cluster.next_ledger_id()
        ledger.reopen()
    return ledger, publisher.kept


def inside(test: object) -> None:
    """Run an async test of a property inside trio."""
    trio.run(test)  # type: ignore[arg-type]


anywhere = st.one_of(
    st.builds(Position, st.integers(-1, 9), st.integers(-1, 5)), st.sampled_from([EARLIEST, LATEST, Position(99, 0)])
)


@given(anywhere, anywhere)
def test_positions_are_found_over_all_ledgers(place: Position, until: Position) -> None:
    async def check() -> None:
        ledger, positions = await ledger_with_gaps()
        after = [position for position in positions if position > place]
        last = positions[-1]
        assert ledger.is_valid(place) is (place in positions)
        if after:
            assert ledger.next(place) == after[0]
            assert ledger.clamp(place) == (place if place in positions else after[0])
        else:
            assert ledger.next(place) > last
            assert ledger.clamp(place) == (place if place == last else ledger.next(last))
        if place in positions:
            before = positions[: positions.index(place)]
            assert ledger.previous(place) == (before[-1] if before else Position(place.ledger_id, -1))
            assert ledger.next(ledger.previous(place)) == place
        if place in positions or place == ledger.first_position():
            assert ledger.count_after(place) == len(after)
            if until in positions:
                assert ledger.count_after(place, until) == len([p for p in after if p <= until])

    inside(check)


async def test_a_ledger_knows_its_first_and_last_positions() -> None:
    ledger, positions = await ledger_with_gaps()
    assert ledger.first_position() == Position(positions[0].ledger_id, -1)
    assert ledger.next(ledger.first_position()) == positions[0]
    assert ledger.last_confirmed == positions[-1]
    assert ledger.previous(ledger.next(positions[-1])) == positions[-1]
    assert (ledger.count, ledger.entries_added) == (6, 0)  # entries_added begins at 0 after each `reopen`


async def test_an_empty_ledger_has_no_entries() -> None:
    ledger = ManagedLedger(NAME, cluster_of())
    assert ledger.last_confirmed == ledger.first_position()
    assert ledger.clamp(EARLIEST) == ledger.clamp(LATEST) == ledger.next(ledger.first_position())
    assert ledger.find_last(lambda entry: True) is None
    assert ledger.count == ledger.count_after(ledger.first_position()) == 0


async def test_finding_ends_at_a_first_entry_that_does_not_match(cluster: Cluster, ledger: ManagedLedger) -> None:
    """A search by publish time meets such entries, because publish times need not be in order."""
    append(ledger, cluster, b"3", b"1", b"2")
    assert ledger.find_last(lambda entry: entry < b"2") is None
    assert ledger.find_last(lambda entry: entry < b"4") == ledger.last_confirmed


async def test_reading_ends_with_its_ledger_and_its_limit(cluster: Cluster, ledger: ManagedLedger) -> None:
    for entry in entries(5):
        append(ledger, cluster, entry)
    first = ledger.next(ledger.first_position())
    assert ledger.read(first, 2, lambda: None) == [b"0", b"1"]
    assert ledger.read(first, 99, lambda: None) == [b"0", b"1", b"2"]
    assert ledger.read(ledger.next(Position(first.ledger_id, 2)), 99, lambda: None) == [b"3", b"4"]
    assert ledger.read(ledger.next(ledger.last_confirmed), 99, lambda: None) == []
    assert ledger.read(Position(999, 0), 99, lambda: None) == []


# trimming


async def test_consumed_ledgers_are_let_go(store: HeldStorage, cluster: Cluster, ledger: ManagedLedger) -> None:
    for entry in entries(10):
        append(ledger, cluster, entry)
    ids = list(ledger.ledgers)
    going: list[Position] = []
    ledger.trim(Position(ids[1], 1), going=going.append)  # the second ledger is not fully consumed
    assert list(ledger.ledgers) == ids[1:]
    ledger.trim(Position(ids[2], 2), going=going.append)  # the third ledger is fully consumed
    cluster.turn.finish()
    assert list(ledger.ledgers) == list(store.entries) == ids[3:]
    assert going == [Position(ids[0], 2), Position(ids[2], 2)]
    assert [entry for _, entry in read_all(ledger)] == [b"9"]
    assert ledger.next(EARLIEST) == ledger.clamp(Position(ids[0], 1)) == Position(ids[3], 0)
    ledger.trim(LATEST)
    assert list(ledger.ledgers) == ids[3:]  # the last ledger stays
    info = ml.ManagedLedgerInfo.FromString(store.metadata[ledger.path])
    assert [kept.ledgerId for kept in info.ledgerInfo] == ids[3:]


async def test_a_full_ledger_is_ended_at_once(cluster: Cluster, ledger: ManagedLedger) -> None:
    rolled: list[list[int]] = []
    heard(ledger).on_rolled = lambda: rolled.append([each.count for each in ledger.ledgers.values()])
    append(ledger, cluster, *entries(2))
    assert rolled == []
    append(ledger, cluster, *entries(1))
    assert rolled == [[3, 0]]


async def test_positions_outlive_their_trimmed_entries(
    cluster: Cluster, ledger: ManagedLedger, mock_clock: MockClock
) -> None:
    """A position of a deleted entry points to the next entry, even when all entries are deleted."""
    append(ledger, cluster, *entries(2))
    mock_clock.jump(240 * MINUTE)
    last = ledger.last_confirmed
    rolled: list[bool] = []
    heard(ledger).on_rolled = lambda: rolled.append(True)
    ledger.roll_over_when_old()
    ledger.roll_over_when_old()
    assert rolled == [True]  # an empty ledger is not closed
    ledger.trim(None)
    (current,) = ledger.ledgers
    assert current > last.ledger_id
    assert ledger.last_confirmed == last
    assert not ledger.is_valid(last)
    assert ledger.next(last) == ledger.clamp(EARLIEST) == Position(current, 0)
    assert ledger.count_after(last) == ledger.size == 0
    append(ledger, cluster, b"x")
    assert read_all(ledger) == [(Position(current, 0), b"x")]
    assert ledger.count_after(last) == 1


# recovery


async def test_a_ledger_is_recovered_from_a_data_directory(tmp_path: Path) -> None:
    """The store has real threads, so the test runs on the real clock."""
    written: list[tuple[Position, bytes]] = []
    for generation in range(3):
        storage = SqliteStorage(tmp_path, "os")
        async with trio.open_nursery() as nursery:
            await nursery.start(storage.run)
            cluster = cluster_of(
                storage, managedLedgerMaxEntriesPerLedger=200, managedLedgerMinLedgerRolloverTimeMinutes=0
            )
            ledger = ManagedLedger(NAME, cluster)
            assert read_all(ledger) == written
            assert ledger.count == len(written)
            assert ledger.properties == ({"generation": str(generation - 1)} if generation else {})
            for number in range(10):
                publisher, kept = Publisher(), trio.Event()
                data = [b"%d/%d/%d" % (generation, number, i) + bytes(i * 40) for i in range(60)]
                append(ledger, cluster, *data, publisher=publisher)
                cluster.turn.after_commit(lambda error, kept=kept: kept.set())  # type: ignore[misc]
                await kept.wait()
                written += zip(publisher.kept, data, strict=True)
            assert read_all(ledger) == written
            ledger.set_properties({"generation": str(generation)})
            cluster.turn.finish()
            nursery.cancel_scope.cancel()
    assert len({position.ledger_id for position, _ in written}) >= 9


async def test_a_ledger_with_a_gap_is_not_recovered(store: HeldStorage) -> None:
    cluster = cluster_of(store)
    append(ManagedLedger(NAME, cluster), cluster, *entries(7))
    (ledger_id,) = store.entries
    del store.entries[ledger_id][4]  # damage, because no entry behind a failed commit is stored
    with pytest.raises(StorageError, match=f"ledger {ledger_id}: entry 4 is not stored, but entry 5 is"):
        ManagedLedger(NAME, cluster_of(store))


async def test_every_load_begins_a_new_ledger(store: HeldStorage) -> None:
    ids: list[int] = []
    for _ in range(4):
        cluster = cluster_of(store)
        ledger = ManagedLedger(NAME, cluster)
        assert list(ledger.ledgers)[:-1] == ids
        append(ledger, cluster, b"x")
        ids.append(ledger.last_confirmed.ledger_id)
    assert ids == sorted(set(ids))


SMALL = {"managedLedgerMaxEntriesPerLedger": 5, "managedLedgerMinLedgerRolloverTimeMinutes": 0}


@pytest.mark.parametrize("recovered", [False, True], ids=["in-memory", "on-disk"])
async def test_the_entries_behind_each_position(recovered: bool) -> None:
    store = HeldStorage()
    cluster = cluster_of(store, **SMALL)
    ledger = ManagedLedger(NAME, cluster)
    for number in range(13):
        append(ledger, cluster, b"%d" % number)
    if recovered:
        cluster = cluster_of(store, **SMALL)
        ledger = ManagedLedger(NAME, cluster)
        append(ledger, cluster, b"13")
    store.holding = True
    append(ledger, cluster, b"not visible")
    entries = read_all(ledger)
    assert len({position.ledger_id for position, _ in entries}) >= 3
    for number, (position, _) in enumerate(entries):
        assert list(ledger.all_after(position)) == [entry for _, entry in entries[number + 1 :]]
    assert list(ledger.all_after(EARLIEST)) == [entry for _, entry in entries]
