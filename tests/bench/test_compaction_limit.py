"""The filler of compaction-limit."""

from __future__ import annotations

import pytest

from bench.compaction_limit import BATCH, batches
from pulsarium.proto import batch
from pulsarium.proto.entry import checksum_matches, parse_metadata, payload_of
from pulsarium.proto.framing import FrameDecoder


@pytest.mark.parametrize("value_size", [1, ord("%"), 200])  # sizes stand as a byte in the template
def test_each_message_of_the_filler_has_a_key_of_its_own(value_size: int) -> None:
    keys, decoder = BATCH + 5, FrameDecoder()
    entries = [entry for each in batches(keys, value_size) for _, entry in decoder.feed(each)]
    assert all(checksum_matches(each) for each in entries)
    found = [
        message
        for each in entries
        for message in batch.unpack(payload_of(each), parse_metadata(each).num_messages_in_batch)
    ]
    assert len({single.partition_key for single, _ in found}) == len(found) == keys
    assert {len(value) for _, value in found} == {value_size}
