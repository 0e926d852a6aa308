"""Entries as they are stored, against our broker in this process."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from trio.testing import MockClock

from pulsarium.broker.config import Config
from pulsarium.client.message_id import MessageId
from pulsarium.proto import entry as entries
from tests.broker.wire import batch_of, plain
from tests.client.in_process import in_process

SECRET: dict[str, Any] = {"encryption_keys": [{"key": "k", "value": b"v"}], "encryption_param": b"n" * 12}
ENTRIES = [
    plain(b"1", partition_key="k"),
    batch_of(b"2", b"3", b"4"),
    plain(b"?", compression=1, uncompressed_size=9),  # not LZ4
    batch_of(b"5", b"6", **SECRET),
    plain(b"half", uuid="u", num_chunks_from_msg=2, total_chunk_msg_size=8, chunk_id=1),
    plain(b"none", checksum=False),
]


@pytest.mark.parametrize("receiver_queue_size", [1, 1000])
@pytest.mark.parametrize("exposing", [False, True])
async def test_entries_come_as_they_are(autojump_clock: MockClock, exposing: bool, receiver_queue_size: int) -> None:
    interceptor = "org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor"
    config = Config(brokerEntryMetadataInterceptors=(interceptor,), exposingBrokerEntryMetadataToClientEnabled=exposing)
    async with in_process(config) as inside, inside.client() as client:
        wire = await inside.wire()
        positions = await wire.publish(*ENTRIES)
        reader = client.create_raw_reader("t", MessageId.earliest, receiver_queue_size=receiver_queue_size)
        async with reader:
            with anyio.fail_after(5):
                found = []
                while await reader.has_message_available():
                    found.append(await reader.read_next())
        assert [one.headers_and_payload for one in found] == ENTRIES
        assert [one.message_id for one in found] == [MessageId(*position) for position in positions]
        assert [one.data() for one in found] == [entries.payload_of(entry) for entry in ENTRIES]
        assert [one.metadata for one in found] == [entries.parse_metadata(entry) for entry in ENTRIES]
        stamps = [None if one.broker_metadata is None else one.broker_metadata.index for one in found]
        assert stamps == (list(range(6)) if exposing else [None] * 6)


async def test_a_raw_reader_starts_reconnects_and_seeks_at_entries(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        wire = await inside.wire()
        positions = await wire.publish(*ENTRIES)
        where = MessageId(*positions[1], batch_index=1)
        async with client.create_raw_reader("t", where, start_message_id_inclusive=True) as reader:
            assert (await anext(reader)).headers_and_payload == ENTRIES[1]
            await inside.cut()
            assert (await reader.read_next()).headers_and_payload == ENTRIES[2]
            await reader.seek(MessageId(*positions[3]))
            assert (await reader.read_next()).headers_and_payload == ENTRIES[3]
            assert (await reader.get_last_message_ids())[0].entry == positions[5]
            assert reader.topic() == "persistent://public/default/t"
