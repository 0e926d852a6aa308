"""Where a message stands in what is compacted, as one number of 63 bits: what is later is greater.

    chunk (18) | entry in it (19) | index in its batch + 1 (25), 0 for none | has a value (1)

Spark takes the greatest place of each key: one comparison of integers, and whether the key stays is in the result.
"""

from __future__ import annotations

CHUNK_BITS, ENTRY_BITS, INDEX_BITS = 18, 19, 25
MOST_CHUNKS, MOST_ENTRIES = 1 << CHUNK_BITS, 1 << ENTRY_BITS
HAS_VALUE = 1
INDEX_SHIFT = 1
ENTRY_SHIFT = INDEX_SHIFT + INDEX_BITS
CHUNK_SHIFT = ENTRY_SHIFT + ENTRY_BITS
INDEX_MASK, ENTRY_MASK = (1 << INDEX_BITS) - 1, MOST_ENTRIES - 1


def entry_place(chunk: int, entry: int) -> int:
    """The place of an entry as a whole. OverflowError where it does not fit."""
    if not 0 <= chunk < MOST_CHUNKS:
        raise OverflowError(f"chunk {chunk}: a topic is compacted in at most {MOST_CHUNKS} chunks; make them larger")
    if not 0 <= entry < MOST_ENTRIES:
        raise OverflowError(f"entry {entry} of chunk {chunk}: a chunk has at most {MOST_ENTRIES} entries")
    return chunk << CHUNK_SHIFT | entry << ENTRY_SHIFT


def message_bits(batch_index: int, has_value: bool) -> int:
    """What a message adds to the place of its entry; -1 is the index of one that is no part of a batch."""
    if not -1 <= batch_index < INDEX_MASK:
        raise OverflowError(f"message {batch_index} of a batch: compaction numbers at most {INDEX_MASK} in one")
    return batch_index + 1 << INDEX_SHIFT | has_value
