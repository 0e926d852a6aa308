"""Failed commits of a managed ledger: entries that are acknowledged to their publishers survive a crash."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.model.ledger.managed_ledger import LedgerFencedError, ManagedLedger, PendingPublish
from pulsarium.broker.model.ledger.position import LATEST, Position
from pulsarium.proto.generated import MLDataFormats_pb2 as ml
from tests.broker.held import HeldStorage
from tests.broker.model.stores import NAME, Publisher, append, cluster_of, heard, read_all


@pytest.fixture
async def store() -> HeldStorage:
    store = HeldStorage()
    store.holding = True
    return store


@pytest.fixture
async def fenced(ledger: ManagedLedger) -> list[bool]:
    """Return a list that grows each time the ledger is fenced."""
    calls: list[bool] = []
    heard(ledger).on_fenced = lambda: calls.append(ledger.fenced)
    return calls


def keep_all(store: HeldStorage, cluster: Cluster) -> None:
    cluster.turn.finish()
    while store.waiting:
        store.release(1)


def after_a_crash(store: HeldStorage) -> list[bytes]:
    return [entry for _, entry in read_all(ManagedLedger(NAME, cluster_of(store.left_behind())))]


def named(store: HeldStorage, ledger: ManagedLedger) -> list[int]:
    """Return the ids of the ledgers in the stored info."""
    info = ml.ManagedLedgerInfo.FromString(store.metadata[ledger.path])
    return [kept.ledgerId for kept in info.ledgerInfo]


# the stored info of the ledger


async def test_a_new_ledger_that_could_not_be_named(
    store: HeldStorage, cluster: Cluster, ledger: ManagedLedger, fenced: list[bool]
) -> None:
    cluster.turn.finish()
    store.fail()
    assert fenced == [True]
    with pytest.raises(LedgerFencedError):
        ledger.append_run([PendingPublish(Publisher(), b"nowhere")])
    ledger.reopen()
    append(ledger, cluster, b"kept")
    keep_all(store, cluster)
    assert named(store, ledger) == list(ledger.ledgers)
    assert len(ledger.ledgers) == 1
    assert after_a_crash(store) == [b"kept"]
    assert fenced == [True]


async def test_a_roll_that_could_not_be_kept_takes_what_was_sent_meanwhile(
    store: HeldStorage, cluster: Cluster, ledger: ManagedLedger, fenced: list[bool]
) -> None:
    append(ledger, cluster, b"0", b"1", b"2")
    store.release(len(store.waiting))
    assert [list(batch.entries) for batch, _ in store.waiting] == [[]]  # a commit of only the info with the next ledger
    behind = Publisher()
    append(ledger, cluster, b"into the new one", publisher=behind)
    told: list[int] = []
    heard(ledger).on_fenced = lambda: told.append(len(behind.failures))
    store.fail()  # only the commit of the info fails
    assert told == [1]  # SEND_ERROR comes before CLOSE_PRODUCER
    store.release(1)
    assert (behind.kept, told) == ([], [1])
    ledger.reopen()
    append(ledger, cluster, b"3")
    keep_all(store, cluster)
    assert named(store, ledger) == list(ledger.ledgers)
    assert after_a_crash(store) == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize(
    "change",
    [
        lambda ledger: ledger.set_properties({"key": "value"}),
        lambda ledger: ledger.terminate(),
        lambda ledger: ledger.trim(LATEST),
    ],
    ids=["properties", "terminated", "trimmed"],
)
async def test_any_change_of_the_info(
    store: HeldStorage,
    cluster: Cluster,
    ledger: ManagedLedger,
    fenced: list[bool],
    change: Callable[[ManagedLedger], None],
) -> None:
    for entry in (b"0", b"1", b"2", b"3"):
        append(ledger, cluster, entry)
    keep_all(store, cluster)
    change(ledger)
    cluster.turn.finish()
    store.fail(len(store.waiting))
    assert fenced == [True]
    assert after_a_crash(store) == [b"0", b"1", b"2", b"3"]
    ledger.reopen()
    append(ledger, cluster, b"4")
    keep_all(store, cluster)
    assert ledger.terminated is None
    assert named(store, ledger) == list(ledger.ledgers)
    assert sorted(store.entries) == sorted(each.id for each in ledger.ledgers.values() if each.count)  # and no others
    assert after_a_crash(store) == [entry for _, entry in read_all(ledger)]


async def test_a_terminated_ledger_stores_its_info_again(
    store: HeldStorage, cluster: Cluster, ledger: ManagedLedger, fenced: list[bool]
) -> None:
    append(ledger, cluster, b"0")
    last = ledger.terminate()
    keep_all(store, cluster)
    ledger.set_properties({"key": "value"})
    cluster.turn.finish()
    store.fail()
    ledger.reopen()
    keep_all(store, cluster)
    assert (ledger.terminated, fenced) == (last, [True])
    info = ml.ManagedLedgerInfo.FromString(store.metadata[ledger.path])
    assert [text.value for text in info.properties] == ["value"]
    assert info.HasField("terminatedPosition")


async def test_a_disk_that_stays_full(
    store: HeldStorage, cluster: Cluster, ledger: ManagedLedger, fenced: list[bool]
) -> None:
    """The ledger is fenced once for each attempt, and ledgers that were opened in vain do not pile up."""
    append(ledger, cluster, b"kept")
    keep_all(store, cluster)
    ledger.set_properties({"key": "value"})
    for attempt in range(5):
        cluster.turn.finish()
        store.fail(len(store.waiting))
        assert len(fenced) == attempt + 1
        ledger.reopen()
    assert len(ledger.ledgers) == 2
    publisher = Publisher()
    append(ledger, cluster, b"at last", publisher=publisher)
    keep_all(store, cluster)
    assert publisher.kept == [Position(max(ledger.ledgers), 0)]
    assert after_a_crash(store) == [b"kept", b"at last"]


# deleted ledgers


@pytest.mark.parametrize("with_entries", [False, True])
async def test_a_deleted_ledger_is_not_fenced(
    store: HeldStorage, cluster: Cluster, ledger: ManagedLedger, fenced: list[bool], with_entries: bool
) -> None:
    keep_all(store, cluster)
    publisher = Publisher()
    ledger.set_properties({"key": "value"})
    if with_entries:
        append(ledger, cluster, b"x", publisher=publisher)
    cluster.turn.finish()
    ledger.delete()
    cluster.turn.finish()
    store.fail(len(store.waiting))
    assert fenced == []  # a new ledger of this name may be in use
    assert len(publisher.failures) == with_entries


# random histories

VERBS = ["append", "append", "append", "burst", "keep", "keep", "fail", "properties", "roll", "finish"]


@given(st.lists(st.tuples(st.sampled_from(VERBS), st.integers(1, 4)), max_size=40))
def test_acknowledged_publishes_are_there_after_a_crash(program: list[tuple[str, int]]) -> None:
    """A crash at any moment keeps these entries, and no entry that was reported as failed."""

    async def check() -> None:
        store = HeldStorage()
        store.holding = True
        cluster = cluster_of(store, managedLedgerMaxEntriesPerLedger=3, managedLedgerMinLedgerRolloverTimeMinutes=0)
        ledger = ManagedLedger(NAME, cluster)
        publishers: list[tuple[bytes, Publisher]] = []
        for step, (verb, count) in enumerate(program):
            if verb in ("append", "burst"):
                for number in range(count):
                    if ledger.fenced:
                        ledger.reopen()
                    publisher = Publisher()
                    entry = b"%d.%d" % (step, number)
                    publishers.append((entry, publisher))
                    ledger.append_run([PendingPublish(publisher, entry)])
                    if verb == "append":
                        cluster.turn.finish()
            elif verb == "keep":
                store.release(min(count, len(store.waiting)))
            elif verb == "fail" and store.waiting:
                store.fail()
            elif verb == "properties":
                ledger.set_properties({"step": str(step)})
            elif verb == "roll" and not ledger.fenced:
                ledger.reopen()
            elif verb == "finish":
                cluster.turn.finish()
            kept = [entry for entry, publisher in publishers if publisher.kept]
            assert [entry for _, entry in read_all(ledger)] == kept
            assert after_a_crash(store) == kept
        keep_all(store, cluster)
        assert all(len(each.kept) + len(each.failures) == 1 for _, each in publishers)

    trio.run(check)
