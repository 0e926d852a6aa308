"""Storage of cursors: in the metadata store or in a ledger, and in the formats of Pulsar."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.cluster import LEDGER_COUNTER
from pulsarium.broker.config import Config
from pulsarium.broker.model.cursor.paths import entry_path
from pulsarium.broker.model.cursor.records import (
    BatchAcks,
    CursorFormat,
    CursorProperties,
    CursorState,
    SubscriptionProperties,
    read_cursor_info,
)
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.position_set import PositionSet
from pulsarium.proto.generated import MLDataFormats_pb2 as ml
from tests.broker.model.cursor.kept import Kept

both_forms = pytest.mark.parametrize("long_arrays", [True, False])


@pytest.mark.req("S54-03", "S54-04", "S54-05")
def test_fields_of_records_have_pulsars_numbers() -> None:
    def field(message: Any, name: str) -> tuple[int, bool]:
        found = message.DESCRIPTOR.fields_by_name[name]
        return found.number, found.is_repeated

    assert field(ml.BatchedEntryDeletionIndexInfo, "position") == (1, False)
    assert field(ml.BatchedEntryDeletionIndexInfo, "deleteSet") == (2, True)
    assert field(ml.ManagedCursorInfo, "batchedEntryDeletionIndexInfo") == (7, True)
    assert field(ml.PositionInfo, "batchedEntryDeletionIndexInfo") == (5, True)


@pytest.mark.req("S54-03", "S54-04", "S54-05")
async def test_parts_of_batches_in_both_records() -> None:
    kept = Kept(5)
    kept.cursor.ack_batch(kept.positions[2], [21])
    kept.ack(4)
    position = ml.NestedPositionInfo(ledgerId=kept.positions[2].ledger_id, entryId=2)
    batch = ml.BatchedEntryDeletionIndexInfo(position=position, deleteSet=[21])
    assert kept.record is not None
    assert list(kept.record.batchedEntryDeletionIndexInfo) == [batch]
    kept.restart()
    assert list(kept.info.batchedEntryDeletionIndexInfo) == [batch]
    kept.crash()
    assert kept.cursor.batch_acks.words(kept.positions[2]) == [21]


async def test_a_new_cursor_is_in_the_metadata_store() -> None:
    kept = Kept(3)
    assert kept.info.cursorsLedgerId == -1
    assert kept.record is None
    assert (kept.cursor.ledger_id, kept.cursor.ledger_last_entry, kept.cursor.ledger_open) == (-1, -1, False)


async def test_acknowledgements_go_to_a_ledger_of_its_own() -> None:
    kept = Kept(4)
    kept.ack(1)
    cursor = kept.cursor
    assert (cursor.ledger_last_entry, cursor.ledger_open) == (1, True)  # Pulsar counts these entries the same way
    assert kept.info.cursorsLedgerId == cursor.ledger_id >= 0
    assert not kept.info.individualDeletedMessages
    kept.ack(0)
    assert cursor.ledger_last_entry == 2
    assert kept.record == ml.PositionInfo(ledgerId=kept.positions[1].ledger_id, entryId=1)
    kept.crash()
    assert kept.acked() == [0, 1]
    assert (kept.cursor.ledger_id, kept.cursor.ledger_last_entry) == (cursor.ledger_id, 2)
    assert not kept.cursor.ledger_open
    kept.ack(2)
    assert kept.cursor.ledger_id > cursor.ledger_id  # a new ledger replaces the old one
    kept.cursor.delete()
    kept.cluster.turn.finish()
    assert kept.record is None


async def test_the_metadata_store_keeps_the_position_from_before_the_ledger_was_opened() -> None:
    kept = Kept(4)
    kept.ack(0, 1)
    assert (kept.info.cursorsLedgerId, kept.info.markDeleteEntryId) == (kept.cursor.ledger_id, -1)
    kept.ack(2)
    kept.crash()
    kept.ack(3)
    assert (kept.info.cursorsLedgerId, kept.info.markDeleteEntryId) == (kept.cursor.ledger_id, 2)
    kept.restart()
    assert (kept.info.cursorsLedgerId, kept.info.markDeleteEntryId) == (-1, 3)


@pytest.mark.req("S423-67")
@both_forms
@pytest.mark.parametrize(("acks", "in_metadata"), [(1000, True), (1001, False)])
async def test_many_ranges_do_not_go_to_the_metadata_store(acks: int, in_metadata: bool, long_arrays: bool) -> None:
    kept = Kept(1200, 1200, managedLedgerPersistIndividualAckAsLongArray=long_arrays)
    kept.ack(*range(1, 2 * acks, 2))
    ledger_id = kept.cursor.ledger_id
    kept.restart()
    assert kept.acked() == [*range(1, 2 * acks, 2)]
    if in_metadata:
        assert len(kept.info.individualDeletedMessages) == acks
        assert kept.record is None
        assert (kept.cursor.ledger_id, kept.cursor.ledger_last_entry) == (-1, -1)
    else:
        assert not kept.info.individualDeletedMessages
        assert (kept.cursor.ledger_id, kept.cursor.ledger_last_entry) == (ledger_id, 2)
    kept.ack(0)
    kept.crash()
    assert kept.acked() == [0, *range(1, 2 * acks, 2)]


@pytest.mark.req("S423-63")
@pytest.mark.parametrize("end", [Kept.crash, Kept.restart])
async def test_ranges_above_the_limit_come_again(end: Callable[[Kept], None]) -> None:
    kept = Kept(4, 5, managedLedgerMaxUnackedRangesToPersist=2)
    kept.ack(1, 3, 5, 7)
    assert kept.acked() == [1, 3, 5, 7]
    end(kept)
    assert kept.acked() == [1, 3]
    assert kept.cursor.backlog() == 7
    assert kept.cursor.consumed == -7  # Pulsar's counter becomes negative too


@pytest.mark.req("S423-64", "S54-24")
@pytest.mark.parametrize("end", [Kept.crash, Kept.restart])
async def test_parts_of_batches_above_the_limit_come_again(end: Callable[[Kept], None]) -> None:
    kept = Kept(3, managedLedgerMaxBatchDeletedIndexToPersist=1)
    kept.cursor.ack_batch(kept.positions[2], [28])
    kept.cursor.ack_batch(kept.positions[1], [30])
    kept.save()
    end(kept)
    assert [kept.cursor.batch_acks.words(position) for position in kept.positions] == [[], [30], []]


@pytest.mark.req("S54-06")
async def test_parts_of_batches_are_forgotten_where_they_are_off() -> None:
    kept = Kept(3)
    kept.cursor.ack_batch(kept.positions[1], [30])
    kept.save()
    kept.crash(acknowledgmentAtBatchIndexLevelEnabled=False)
    assert len(kept.cursor.batch_acks) == 0
    assert kept.cursor.backlog() == 3


@pytest.mark.req("S423-68", "S423-69")
@pytest.mark.parametrize(
    ("kind", "threshold", "compressed"),
    [
        ("LZ4", 0, True),
        ("ZLIB", 0, True),
        ("ZSTD", 0, True),
        ("SNAPPY", 0, True),
        ("LZ4", 16_384, False),
        ("NONE", 0, False),
        ("FOO", 0, False),
    ],
)
async def test_the_record_of_a_cursor_is_compressed_above_the_threshold(
    kind: str, threshold: int, compressed: bool
) -> None:
    kept = Kept(60, managedCursorInfoCompressionType=kind, managedCursorInfoCompressionThresholdInBytes=threshold)
    kept.ack(*range(1, 60, 2))
    kept.restart(managedCursorInfoCompressionType="NONE")
    assert kept.store.metadata[kept.cursor.path].startswith(b"\x47\x78") is compressed
    assert kept.acked() == [*range(1, 60, 2)]


@pytest.mark.req("S423-65", "S423-66")
@pytest.mark.parametrize(
    ("as_array", "cache_set", "long_arrays"),
    [(True, True, True), (True, False, False), (False, True, False), (False, False, False)],
)
async def test_long_arrays_need_both_settings(as_array: bool, cache_set: bool, long_arrays: bool) -> None:
    kept = Kept(
        200,
        3,
        managedLedgerPersistIndividualAckAsLongArray=as_array,
        managedLedgerUnackedRangesOpenCacheSetEnabled=cache_set,
    )
    acked = [3, 63, 64, 127, *range(128, 192), 201]
    kept.ack(*acked)
    record = kept.record
    assert record is not None
    first, second = kept.positions[0].ledger_id, kept.positions[-1].ledger_id
    if long_arrays:
        words = [1 << 3 | -(1 << 63), 1 | -(1 << 63), -1]
        assert [(each.key, list(each.values)) for each in record.individualDeletedMessageRanges] == [
            (first, words),
            (second, [2]),
        ]
        assert not record.individualDeletedMessages
    else:
        assert not record.individualDeletedMessageRanges
        assert [
            (
                kept.lowerEndpoint.ledgerId,
                kept.lowerEndpoint.entryId,
                kept.upperEndpoint.ledgerId,
                kept.upperEndpoint.entryId,
            )
            for kept in record.individualDeletedMessages
        ] == [(first, 2, first, 3), (first, 62, first, 64), (first, 126, first, 191), (second, 0, second, 1)]
    kept.crash()
    assert kept.acked() == acked


def first_ranges(positions: Iterable[Position], most: int) -> set[Position]:
    """Return the positions of the first `most` ranges without gaps."""
    runs = [
        [position for _, position in run]
        for _, run in groupby(
            enumerate(sorted(positions)), lambda each: (each[1].ledger_id, each[1].entry_id - each[0])
        )
    ]
    return {position for run in runs[:most] for position in run}


@given(
    st.lists(st.lists(st.integers(0, 23), min_size=1, max_size=4), max_size=12),
    st.integers(0, 4),
    st.booleans(),
    st.booleans(),
)
def test_answered_acks_are_stored_up_to_the_limit(
    turns: list[list[int]], most: int, long_arrays: bool, clean: bool
) -> None:
    async def check() -> None:
        kept = Kept(
            10,
            6,
            8,
            managedLedgerMaxUnackedRangesToPersist=most,
            managedLedgerPersistIndividualAckAsLongArray=long_arrays,
            managedLedgerMaxUnackedRangesToPersistInMetadataStore=2,
        )
        for indexes in turns:
            kept.ack(*indexes)
        mark = kept.cursor.mark_delete
        acked = {kept.positions[index] for index in kept.acked()}
        expected = first_ranges({position for position in acked if position > mark}, most)
        (kept.restart if clean else kept.crash)()
        assert kept.cursor.mark_delete == mark
        assert set(kept.cursor.individual_acks) == expected

    trio.run(check)


class State:
    """A minimal cursor, with only what a record contains."""

    def __init__(self, *acks: Position) -> None:
        self.mark_delete = Position(0, 0)
        self.individual_acks = PositionSet()
        self.batch_acks = BatchAcks()
        self.properties = CursorProperties({"n": -1})
        for position in acks:
            self.individual_acks.add(position)


positions = st.builds(Position, st.integers(1, 3), st.integers(1, 200))


@pytest.mark.req("S423-65")
@given(
    st.lists(positions, max_size=40),
    st.dictionaries(
        positions, st.lists(st.integers(-(2**63), 2**63 - 1).filter(bool), min_size=1, max_size=30), max_size=4
    ),
    st.booleans(),
)
def test_a_record_is_read_as_it_was_written(
    acks: list[Position], batches: dict[Position, list[int]], long_arrays: bool
) -> None:
    form = CursorFormat(Config(managedLedgerPersistIndividualAckAsLongArray=long_arrays))
    state: CursorState = State(*acks)
    for position, words in batches.items():
        state.batch_acks.merge(position, [-1] * len(words))
    form.position_info(state, form.acks_record(state.individual_acks))  # the format caches its result here
    for position, words in batches.items():
        state.batch_acks.merge(position, words)
    position_info = ml.PositionInfo.FromString(form.position_info(state, form.acks_record(state.individual_acks)))
    cursor_info = read_cursor_info(form.cursor_info(state, SubscriptionProperties({"a": "b"}), 1))
    assert {text.name: text.value for text in cursor_info.cursorProperties} == {"a": "b"}
    for info in (position_info, cursor_info):
        again: CursorState = State()
        form.restore(again, info)
        assert again.mark_delete == state.mark_delete
        assert list(again.individual_acks) == list(state.individual_acks)
        assert {each: again.batch_acks.words(each) for each in again.batch_acks} == {
            each: state.batch_acks.words(each) for each in state.batch_acks
        }
        assert again.properties == {"n": -1}


async def test_a_hundred_thousand_individual_acks_make_a_small_record() -> None:
    acks = PositionSet()
    for entry_id in range(1, 200_000, 2):
        acks.add(Position(1, entry_id))
    for long_arrays, most in ((True, 8_000), (False, 300_000)):
        record = CursorFormat(Config(managedLedgerPersistIndividualAckAsLongArray=long_arrays)).acks_record(acks)
        assert len(record.data) < most
        assert record.through == Position(1, 20_000)


async def test_an_ack_behind_the_kept_ones_costs_no_new_record() -> None:
    kept = Kept(20, managedLedgerMaxUnackedRangesToPersist=2)
    kept.ack(1, 3, 7)
    record = kept.cursor._acks_record
    kept.ack(9)
    assert kept.cursor._acks_record is record
    kept.ack(5)
    assert kept.cursor._acks_record is record
    kept.ack(4)  # extends the second range
    assert kept.cursor._acks_record is not record
    kept.crash()
    assert kept.acked() == [1, 3, 4, 5]


async def test_the_id_of_a_ledger_whose_begin_was_not_committed_is_left() -> None:
    """The counter of ledger ids was not committed either, so another cursor would get the same id after a crash."""
    kept = Kept(5)
    kept.store.holding = True
    kept.save()
    kept.ack(1)
    kept.store.release(1)
    kept.store.fail()
    kept.store.holding = False
    assert kept.record is None
    kept.ack(2)
    assert int(kept.store.metadata[LEDGER_COUNTER]) > kept.info.cursorsLedgerId
    kept.crash()
    assert kept.acked() == [1, 2]


async def test_a_record_that_could_not_be_replaced_is_dropped_later() -> None:
    kept = Kept(5)
    kept.ack(1)
    kept.store.holding = True
    kept.ack(2)
    kept.store.fail()
    kept.store.holding = False
    kept.ack(4)
    assert len([path for path in kept.store.metadata if path.startswith("/cursor-ledgers/")]) == 2
    kept.crash()
    kept.cluster.turn.finish()
    assert kept.acked() == [1, 2, 4]
    assert kept.record is not None  # one record is left


async def test_a_lost_ledger_brings_back_where_it_was_begun() -> None:
    kept = Kept(5)
    kept.ack(0)
    kept.restart()
    kept.ack(1)
    del kept.store.metadata[entry_path(kept.cursor.ledger_id, kept.cursor.ledger_last_entry)]
    kept.crash()
    assert kept.acked() == [0]


async def test_properties_of_the_subscription_are_kept_beside_a_ledger() -> None:
    kept = Kept(5)
    kept.ack(1)
    kept.cursor.cursor_properties = SubscriptionProperties({"a": "b"})
    kept.save()
    kept.crash()
    assert kept.cursor.cursor_properties == {"a": "b"}
    assert kept.acked() == [1]


async def test_parts_of_batches_alone_open_no_ledger() -> None:
    kept = Kept(5)
    cursor = kept.cursor
    cursor.ack_batch(kept.positions[1], [28])
    kept.save()
    assert (cursor.ledger_id, cursor.ledger_open) == (-1, False)
    kept.ack(0)
    assert (cursor.ledger_last_entry, cursor.ledger_open) == (1, True)
    cursor.ack_batch(kept.positions[1], [24])
    kept.save()
    assert cursor.ledger_last_entry == 1
    kept.ack(3)
    assert cursor.ledger_last_entry == 2
    kept.crash()
    assert kept.acked() == [0, 3]
    assert kept.cursor.batch_acks.words(kept.positions[1]) == [24]


@pytest.mark.req("S423-67")
async def test_an_unloaded_topic_closes_its_cursors() -> None:
    kept = Kept(10, managedLedgerMaxUnackedRangesToPersistInMetadataStore=2)
    kept.ack(1, 3)
    kept.log.reopen()
    assert (kept.cursor.ledger_id, kept.cursor.ledger_open) == (-1, False)
    kept.ack(5)
    ledger_id = kept.cursor.ledger_id
    kept.log.reopen()
    assert (kept.cursor.ledger_id, kept.cursor.ledger_open) == (ledger_id, False)
    kept.cluster.turn.finish()
    kept.crash()
    assert kept.acked() == [1, 3, 5]


async def test_a_cursor_that_could_not_be_saved_is_saved_later(autojump_clock: trio.testing.MockClock) -> None:
    kept = Kept(5)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(kept.cluster.clock.run)
        kept.store.holding = True
        kept.ack(1)
        kept.store.fail()
        kept.store.holding = False
        assert not kept.is_in_ledger()
        await trio.sleep(2)
        assert kept.is_in_ledger()
        assert kept.store.metadata[LEDGER_COUNTER] == str(kept.cursor.ledger_id + 1).encode()
        nursery.cancel_scope.cancel()
    kept.crash()
    assert kept.acked() == [1]
