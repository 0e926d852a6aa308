"""Batches that are packed by columns equal batches that are packed message by message."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import BinaryType, MapType, StringType, StructType, TimestampType

from pulsarium.client import HashingScheme
from pulsarium.client.bulk import hash_of
from pulsarium.client.producer.draft import draft
from pulsarium.pipeline.columns.columns import Columns
from pulsarium.pipeline.sink.once import sequence_ids
from pulsarium.pipeline.sink.packing import Packed, cuts, packed
from pulsarium.pipeline.sink.routing import hashes, partitions_of
from pulsarium.proto import batch

SCHEMA = (
    StructType()
    .add("value", BinaryType())
    .add("__key", BinaryType())
    .add("__eventTime", TimestampType())
    .add("__messageProperties", MapType(StringType(), StringType()))
)
ARROW = pa.schema(
    [
        ("value", pa.binary()),
        ("__key", pa.binary()),
        ("__eventTime", pa.timestamp("us", "UTC")),
        ("__messageProperties", pa.map_(pa.string(), pa.string())),
    ]
)
ROWS = st.fixed_dictionaries(
    {
        "value": st.none() | st.binary(max_size=300),
        "__key": st.none() | st.text().map(str.encode) | st.binary(),
        "__eventTime": st.none() | st.integers(-(2**50), 2**50),
        "__messageProperties": st.none() | st.lists(st.tuples(st.text(), st.text()), max_size=2),
    }
)


@given(st.lists(ROWS, min_size=1, max_size=8), st.integers(0, 2**31 - 1), st.integers(0, 2**32 - 9), st.data())
def test_a_batch_has_the_bytes_of_its_messages(
    rows: list[dict[str, Any]], batch_id: int, row: int, data: st.DataObject
) -> None:
    found = Columns.of(None).for_writing(SCHEMA).messages(pa.RecordBatch.from_pylist(rows, schema=ARROW))
    numbers = sequence_ids(batch_id, row, len(rows))
    members = np.array(sorted(data.draw(st.sets(st.integers(0, len(rows) - 1), min_size=1))))
    made = Packed(found, packed(found, numbers), members, numbers).batch(0, len(members))
    drafts = []
    for member in members:
        options = found.options(int(member), int(numbers[member]))
        drafts.append(draft(rows[member]["value"], **options))
    assert made.payload == batch.pack([(each.metadata, each.content) for each in drafts])
    assert (made.count, made.size) == (len(members), sum(len(each.content) for each in drafts))
    assert (made.sequence_id, made.highest_sequence_id) == (drafts[0].sequence_id, drafts[-1].sequence_id)
    assert made.first.partition_key == drafts[0].metadata.partition_key
    assert made.first.HasField("partition_key") == drafts[0].metadata.HasField("partition_key")
    assert made.first.partition_key_b64_encoded == drafts[0].metadata.partition_key_b64_encoded


@pytest.mark.parametrize("scheme", list(HashingScheme))
@given(keys=st.lists(st.none() | st.text() | st.text("abc", max_size=300), min_size=1))
def test_a_key_chooses_the_partition_that_other_clients_choose(scheme: HashingScheme, keys: list[str | None]) -> None:
    column = pa.array([None if each is None else each.encode() for each in keys], pa.large_binary())
    texts = [each for each in keys if each is not None]
    assert hashes(column.drop_null(), scheme).tolist() == [hash_of(each, scheme) for each in texts]
    rows = np.arange(5, 5 + len(keys))
    expected = [row % 3 if key is None else hash_of(key, scheme) % 3 for row, key in zip(rows, keys, strict=True)]
    assert partitions_of(column, rows, 3, scheme).tolist() == expected


@given(st.lists(st.integers(0, 20)), st.integers(1, 5), st.integers(1, 30))
def test_batches_stay_within_their_limits_and_are_no_smaller_than_they_must_be(
    sizes: list[int], most_messages: int, most_bytes: int
) -> None:
    found = list(cuts(np.array(sizes, np.int64), most_messages, most_bytes))
    assert [row for start, stop in found for row in range(start, stop)] == list(range(len(sizes)))
    for start, stop in found:
        assert stop - start == 1 or sum(sizes[start:stop]) <= most_bytes
        assert stop - start <= most_messages
        assert stop - start == most_messages or stop == len(sizes) or sum(sizes[start : stop + 1]) > most_bytes
