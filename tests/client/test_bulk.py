from __future__ import annotations

from unittest import mock

import pytest

from pulsarium.client import MessageId, bulk
from pulsarium.client.bulk import BYTES, EntryReader, messages_of
from pulsarium.client.consumer.receiver import Receiver
from pulsarium.client.errors import InvalidMessage
from tests.client.both import run_on
from tests.client.in_process import in_process

TOPIC = "persistent://public/default/bulk"


def test_an_entry_reader_gives_whole_entries_from_an_entry_on() -> None:
    async def test() -> None:
        async with in_process() as inside, inside.client() as client:
            sent = [b"%d" % number for number in range(30)]
            async with client.create_producer(TOPIC, batching_max_messages=10) as producer:
                receipts = [producer.send_nowait(each) for each in sent]
                await producer.flush()
                start = await receipts[15].wait()
            found: list[bytes] = []
            async with EntryReader(client, TOPIC, start, receiver_queue_size=5) as reader:
                while len(found) < 20:
                    await reader.arrival()
                    found += [one.data() for entry in reader.take_all() for one in messages_of(entry, BYTES)]
                assert not await reader.has_more()
            assert found == sent[10:]

    run_on("trio", test, jump=True)


def test_an_entry_reader_with_much_that_waits_asks_for_no_more() -> None:
    async def test() -> None:
        async with in_process() as inside, inside.client() as client:
            async with client.create_producer(TOPIC, batching_enabled=False) as producer:
                for _ in range(12):
                    await producer.send(b"x" * 100)
            reader = EntryReader(client, TOPIC, MessageId.earliest, receiver_queue_size=2)
            with mock.patch.object(bulk, "READ_AHEAD", 400), mock.patch.object(Receiver, "widen"):
                async with reader:
                    taken = 0
                    while taken < 12:
                        await reader.arrival()
                        found = len(reader.take_all())
                        assert found <= 6  # READ_AHEAD, and the permits that the broker has
                        taken += found

    run_on("trio", test, jump=True)


def test_a_chunk_has_no_messages_of_its_own() -> None:
    async def test() -> None:
        async with in_process() as inside, inside.client() as client:
            async with client.create_producer(
                TOPIC, batching_enabled=False, chunking_enabled=True, chunk_max_message_size=100
            ) as producer:
                await producer.send(b"x" * 150)
            async with EntryReader(client, TOPIC, MessageId.earliest, receiver_queue_size=5) as reader:
                await reader.arrival()
                with pytest.raises(InvalidMessage, match="one chunk"):
                    messages_of(reader.take_all()[0], BYTES)

    run_on("trio", test, jump=True)
