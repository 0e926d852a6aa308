"""Compaction of chunks as Spark's workers do, without Spark. The bytes equal those of the broker's own engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pulsarium.broker.model.ledger.position import Position
from pulsarium.pipeline.compaction import chunks
from pulsarium.pipeline.compaction.chunks import IN, CompactionTask, Spool, format_of, positioned, read, write
from pulsarium.pipeline.compaction.opening import KeysOf
from pulsarium.proto import compacted_values
from tests.broker.model.compaction.sent import Sent, sent
from tests.broker.model.compaction.topics import keyed_batch
from tests.broker.wire import plain
from tests.pipeline.compaction.listed import Entries, at_positions, by_the_broker, out, rounds_of, spool, without_spark

VALUE = Sent((("a", b"1"),))
NULL = Sent((("a", b""),))
BATCH = Sent((("a", b"1"), (None, b"2"), ("a", b""), ("b", b"3")), is_batch=True)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(sent, max_size=8), min_size=1, max_size=3),
    st.booleans(),
    st.integers(1, 9),
    st.sampled_from(["pulsar", "values"]),
)
@example([[VALUE, NULL, NULL, VALUE, VALUE, NULL]], False, 1, "pulsar")
@example([[BATCH, BATCH], [NULL]], True, 1, "values")
def test_parts_are_compacted_as_the_broker_does(
    rounds: Sequence[Sequence[Sent]], retain_null_key: bool, chunk_entries: int, shape: str
) -> None:
    def compact(entries: Entries) -> Entries:
        wanted = by_the_broker(entries, retain_null_key=retain_null_key, shape=shape)
        with TemporaryDirectory() as folder:
            work = spool(Path(folder), entries, chunk_entries, retain_null_key=retain_null_key, format=shape)
            assert without_spark(work) == wanted.removed
            assert out(work) == wanted.entries
            assert work.finished == 1.0
        return wanted.entries

    rounds_of([[each.entry for each in entries] for entries in rounds], compact)


def test_places_are_in_the_order_of_messages() -> None:
    found = [
        chunks.entry_place(chunk, entry) | chunks.message_bits(index, has_value)
        for chunk in (0, 1, chunks.MOST_CHUNKS - 1)
        for entry in (0, 1, chunks.MOST_ENTRIES - 1)
        for index in (-1, 0, 1, chunks.INDEX_MASK - 1)
        for has_value in (False, True)
    ]
    assert found == sorted(set(found))
    assert found[-1] == 2**63 - 1


@pytest.mark.parametrize("chunk", [-1, chunks.MOST_CHUNKS])
def test_too_many_chunks(chunk: int) -> None:
    with pytest.raises(OverflowError, match=f"^chunk {chunk}: a topic has at most 262144 chunks"):
        chunks.entry_place(chunk, 0)


def test_too_many_entries() -> None:
    with pytest.raises(OverflowError, match=r"^entry 524288 of chunk 3: a chunk has at most 524288 entries"):
        chunks.entry_place(3, chunks.MOST_ENTRIES)


@pytest.mark.parametrize("index", [-2, chunks.INDEX_MASK])
def test_too_large_a_batch(index: int) -> None:
    with pytest.raises(OverflowError, match=f"^message {index} of a batch"):
        chunks.message_bits(index, True)


def test_a_spool_of_too_many_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "MOST_CHUNKS", 2)
    spool = Spool(tmp_path, chunk_entries=1)
    spool.add(at_positions([b"1", b"2", b"3"], 0))
    with pytest.raises(OverflowError, match="does not fit into 2 chunks"):
        spool.close()
    spool.close_file()


def test_chunks_by_size(tmp_path: Path) -> None:
    entries = at_positions([b"x" * 600_000] * 5, 0)
    spool = Spool(tmp_path, chunk_bytes=1_000_000)
    for each in entries:
        spool.add([each])
    spool.close()
    work = CompactionTask(str(tmp_path), spool.chunks)
    found = [[row for batch in read(work.path(IN, chunk)) for row in positioned(batch)] for chunk in range(work.chunks)]
    assert [len(each) for each in found] == [2, 2, 1]
    assert [(Position(*where), entry) for each in found for where, entry in each] == entries


def test_equal_keys_only_are_one() -> None:
    """Keys are compared as whole bytes, without a hash and without Unicode normalization."""
    found = KeysOf(0, retain_null_key=False)
    keys = ["\u00e9", "e\u0301", "", " ", "\u0000", "a", "A"]
    for number, key in enumerate(keys):
        found.learn(number, plain(b"v", partition_key=key))
    assert [key.decode() for key in found.last] == keys


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    def broken() -> object:
        yield chunks.entries_batch([(Position(0, 0), b"x")])
        raise ValueError("in the middle")

    with pytest.raises(ValueError, match="in the middle"):
        write(tmp_path / "f", chunks.ENTRIES, broken())  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_work_goes_through_a_file(tmp_path: Path) -> None:
    work = CompactionTask(str(tmp_path), 3, True, "values", "local[2]", (("spark.driver.memory", "2g"),))
    work.save()
    assert CompactionTask.load(str(tmp_path)) == work
    assert work.finished == 0


def test_a_format_is_found_by_its_name_or_module() -> None:
    assert format_of("pulsar") is None
    assert format_of("values") is format_of("pulsarium.proto.compacted_values") is compacted_values
    with pytest.raises(ValueError, match=r"^format must be pulsar, values or module:object, not nowhere: No module"):
        format_of("nowhere")
    with pytest.raises(ValueError, match="lacks to_values or to_batch"):
        format_of("json:loads")


@pytest.mark.req("S429-19")
def test_a_format_writes_no_single_metadata(tmp_path: Path) -> None:
    entries = at_positions([keyed_batch(("k", b"1"), ("k", b"2"))], 0)
    work = spool(tmp_path, entries, 5, format="values")
    without_spark(work)
    ((_, entry),) = out(work)
    assert entry.endswith(b'[["Mg==", {"partition_key": "k"}]]')
