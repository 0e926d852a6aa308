"""Choose the partition of each row of a record batch."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pulsarium.client import HashingScheme
from pulsarium.client.bulk import hash_of
from pulsarium.pipeline.columns.ragged import Numbers, size_of

MOST_BYTES = 256  # of a key whose hash is computed by columns


def partitions_of(keys: pa.Array | None, rows: Numbers, partitions: int, scheme: HashingScheme) -> Numbers:
    """Return the partition of each row: that of its key as other clients choose it, or else one after another.

    `rows` are the numbers of the rows in their Spark partition, so that each attempt chooses the same partitions.
    """
    in_turn = rows % partitions
    if keys is None or partitions == 1:
        return np.asarray(in_turn)
    encoded = keys.dictionary_encode()
    by_key = hashes(encoded.dictionary, scheme) % partitions
    if not len(by_key):  # all keys are null
        return np.asarray(in_turn)
    chosen = by_key[encoded.indices.fill_null(0).to_numpy()]
    return np.where(keys.is_null().to_numpy(zero_copy_only=False), in_turn, chosen)


def hashes(keys: pa.Array, scheme: HashingScheme) -> npt.NDArray[np.int64]:
    """Return the hash of each key, the same as `hash_of` returns. The keys are UTF-8, of type large_binary."""
    if scheme is not HashingScheme.JavaStringHash:
        return _one_by_one(keys, scheme)
    sizes = size_of(keys)
    simple = np.asarray(pc.string_is_ascii(keys.cast(pa.large_string())).to_numpy(zero_copy_only=False))
    simple &= sizes <= MOST_BYTES
    made = np.zeros(len(keys), np.int64)
    made[simple] = _java_hashes(keys.filter(pa.array(simple)), sizes[simple])
    made[~simple] = _one_by_one(keys.filter(pa.array(~simple)), scheme)
    return made


def _one_by_one(keys: pa.Array, scheme: HashingScheme) -> npt.NDArray[np.int64]:
    return np.array([hash_of(each.decode(), scheme) for each in keys.to_pylist()], np.int64)


def _java_hashes(keys: pa.Array, sizes: Numbers) -> npt.NDArray[np.int64]:
    """Return Java's `String.hashCode` of ASCII keys, in which a byte is a UTF-16 unit."""
    offsets = np.frombuffer(keys.buffers()[1], np.int64)[keys.offset :][: len(keys)]
    data = np.frombuffer(keys.buffers()[2] or b"", np.uint8)
    longest_first = np.argsort(-sizes, kind="stable")
    starts, left = offsets[longest_first], sizes[longest_first]
    made = np.zeros(len(keys), np.uint32)
    for place in range(int(sizes.max(initial=0))):
        count = int(np.searchsorted(-left, -place))  # so many keys are longer
        made[:count] = made[:count] * np.uint32(31) + data[starts[:count] + place]
    found = np.empty(len(keys), np.int64)
    found[longest_first] = made & np.uint32(0x7FFFFFFF)
    return found
