"""Numbers of messages, on a broker that takes each only once (PIP-6), and across restarts of the application."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from trio.testing import MockClock

from pulsarium.broker.config import Config
from pulsarium.client import BatchingType, Client, InitialPosition, MessageId, errors
from pulsarium.client.producer.receipt import Receipt
from pulsarium.proto import batch
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.hostile.clocks import on_both
from tests.client.in_process import in_process
from tests.client.peer import Type
from tests.client.producer.test_producer import answer_producer, producing

DEDUPLICATING = Config(brokerDeduplicationEnabled=True)
NOBODY_REMEMBERS = MessageId(-1, -1)
PLAIN: dict[str, Any] = {"batching_enabled": False}
BATCHED: dict[str, Any] = {"batching_max_publish_delay": 1}


async def stored(client: Client) -> list[bytes]:
    found = []
    async with client.subscribe("t", "s", initial_position=InitialPosition.Earliest) as consumer:
        with anyio.move_on_after(1):
            while True:
                found.append((await consumer.receive()).data())
    return found


@pytest.mark.parametrize("options", [PLAIN, BATCHED], ids=["plain", "batched"])
async def test_an_application_that_starts_again(autojump_clock: MockClock, options: dict[str, Any]) -> None:
    """It goes on where it left off, and what it repeats is there once."""
    async with in_process(DEDUPLICATING) as inside:
        for start in range(0, 30, 10):
            async with (
                inside.client() as client,
                client.create_producer("t", producer_name="p", **options) as producer,
            ):
                assert producer.last_sequence_id() == start - 1
                again = [producer.send_nowait(b"again", sequence_id=n) for n in range(max(start - 3, 0), start)]
                for n in range(start, start + 10):
                    producer.send_nowait(b"%d" % n)
                await producer.flush()
                for receipt in again:
                    assert await receipt.wait() == NOBODY_REMEMBERS
                assert producer.last_sequence_id() == start + 9
        async with inside.client() as client:
            assert await stored(client) == [b"%d" % n for n in range(30)]


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("options", [PLAIN, BATCHED], ids=["plain", "batched"])
async def test_numbers_of_ones_own(autojump_clock: MockClock, options: dict[str, Any], at_once: bool) -> None:
    """One that is not higher than all before is no news, and takes none with it that is.

    At once, the broker cannot tell what is news, and has everything sent again.
    """
    async with in_process(DEDUPLICATING) as inside, inside.client() as client:
        numbers = [10, 20, 20, 15, 30, 30, 40, 5]
        async with client.create_producer("t", initial_sequence_id=8, **options) as producer:
            receipts = []
            for index, number in enumerate(numbers):
                receipts.append(producer.send_nowait(b"%d-%d" % (index, number), sequence_id=number))
                if not at_once:
                    await producer.flush()
            receipts.append(producer.send_nowait(b"own"))  # 9: the one behind the initial one
            ids = [await receipt.wait() for receipt in receipts]
            known = [one.entry != NOBODY_REMEMBERS.entry for one in ids]
            assert at_once or known == [True, True, False, False, True, False, True, False, False]
            assert producer.last_sequence_id() == 40
        assert await stored(client) == [b"0-10", b"1-20", b"4-30", b"6-40"]


async def test_batches_by_key_are_no_duplicates_of_each_other(autojump_clock: MockClock) -> None:
    async with in_process(DEDUPLICATING) as inside, inside.client() as client:
        options = {"batching_type": BatchingType.KeyBased, "batching_max_publish_delay": 1000}
        async with client.create_producer("t", **options) as producer:  # type: ignore[arg-type]
            receipts = [producer.send_nowait(b"%d" % n, partition_key=key) for n, key in enumerate("abbaac")]
            await producer.flush()
            ids = [await receipt.wait() for receipt in receipts]
            assert producer.last_sequence_id() == 5
        assert await stored(client) == [b"1", b"2", b"0", b"3", b"4", b"5"]
        assert sorted(ids) == [ids[n] for n in (1, 2, 0, 3, 4, 5)]
        assert len({one.entry for one in ids}) == 3


async def test_a_duplicate_is_known_before_what_was_sent_earlier(autojump_clock: MockClock) -> None:
    """`flush` waits for both."""
    async with (
        in_process(DEDUPLICATING) as inside,
        inside.client() as client,
        client.create_producer("t", **PLAIN) as producer,
    ):
        await producer.send(b"0")
        receipts = [producer.send_nowait(b"1"), producer.send_nowait(b"again", sequence_id=0)]
        await producer.flush()
        assert all(receipt.is_done() for receipt in receipts)
        assert await receipts[1].wait() == NOBODY_REMEMBERS
        assert (await receipts[0].wait()).entry_id == 1
        assert producer.last_sequence_id() == 1


@on_both
async def test_a_receipt_for_a_duplicate_finds_its_message() -> None:
    async with producing(batching_enabled=False) as stage:
        receipts = [stage.producer.send_nowait(b"", sequence_id=number) for number in (5, 3, 6)]
        await stage.payloads(3)
        nowhere = {"ledgerId": 2**64 - 1, "entryId": 2**64 - 1}
        for _ in range(2):  # the second is nobody's
            await stage.peer.say(Type.SEND_RECEIPT, producer_id=0, sequence_id=3, message_id=nowhere)
        assert await receipts[1].wait() == NOBODY_REMEMBERS
        assert not receipts[0].is_done()
        await stage.receipt(5, 1)
        await stage.receipt(6, 2)
        assert [(await receipt.wait()).entry_id for receipt in receipts] == [1, -1, 2]


async def test_chunks_of_a_duplicate(autojump_clock: MockClock) -> None:
    """All but the last are stored again, and only the last one's receipt, which comes first, tells."""
    options = {"batching_enabled": False, "chunking_enabled": True, "chunk_max_message_size": 2}
    async with (
        in_process(DEDUPLICATING) as inside,
        inside.client() as client,
        client.create_producer("t", **options) as producer,  # type: ignore[arg-type]
    ):
        for number in range(2):
            first = await producer.send(b"12345", sequence_id=number)
            assert first.first_chunk is not None
            assert await producer.send(b"12345", sequence_id=number) == NOBODY_REMEMBERS
            assert producer.last_sequence_id() == number


@on_both
async def test_how_batches_by_key_look() -> None:
    async with producing(batching_type=BatchingType.KeyBased, batching_max_messages=5) as stage:
        receipts = [stage.producer.send_nowait(b"%d" % n, partition_key=key) for n, key in enumerate("abbaa")]
        found = [await stage.sent() for _ in range(2)]
        for (send, metadata, payload), key, numbers in zip(found, "ba", ([1, 2], [0, 3, 4]), strict=True):
            assert (send.sequence_id, send.highest_sequence_id, send.num_messages) == (numbers[-1], 0, len(numbers))
            assert (metadata.sequence_id, metadata.highest_sequence_id) == (numbers[-1], 0)
            assert metadata.partition_key == key
            singles = [single for single, _ in batch.unpack(payload, len(numbers))]
            assert [(one.sequence_id, one.partition_key) for one in singles] == [(n, key) for n in numbers]
        await stage.receipt(2, 0)
        await stage.receipt(4, 1)
        assert [(await receipt.wait()).entry_id for receipt in receipts] == [1, 0, 0, 1, 1]


@on_both
async def test_a_duplicate_has_a_batch_of_its_own() -> None:
    async with producing(batching_max_publish_delay=1000) as stage:
        for number in (10, 11, 10, 12, 13):
            stage.producer.send_nowait(b"", sequence_id=number)
        found = [(await stage.sent())[0] for _ in range(2)]
        assert [(send.sequence_id, send.highest_sequence_id) for send in found] == [(10, 11), (10, 0)]


@on_both
async def test_a_refused_batch_is_named_by_its_highest_number() -> None:
    async with producing(batching_max_messages=3) as stage:
        receipts = [stage.producer.send_nowait(b"") for _ in range(3)]
        await stage.sent()
        await stage.refuse(2, pb.NotAllowedError)
        for receipt in receipts:
            with pytest.raises(errors.NotAllowedError):
                await receipt.wait()


@on_both
async def test_what_may_pass_is_sent_again() -> None:
    """On a new connection, as Java clients do: the broker cannot tell yet whether it has the message."""
    async with producing(batching_enabled=False) as stage:
        receipts: list[Receipt] = [stage.producer.send_nowait(b"%d" % n) for n in range(2)]
        await stage.payloads(2)
        await stage.refuse(0, pb.PersistenceError)
        old, stage.peer = stage.peer, await stage.peers.next()
        await stage.peer.take_in()
        await stage.peer.lead_here_again()
        await answer_producer(stage.peer)
        assert await stage.payloads(2) == [b"0", b"1"]
        await stage.peer.say(  # it has it
            Type.SEND_RECEIPT,
            producer_id=0,
            sequence_id=0,
            message_id={"ledgerId": 2**64 - 1, "entryId": 2**64 - 1},
        )
        await stage.receipt(1, 4)
        assert [await receipt.wait() for receipt in receipts] == [NOBODY_REMEMBERS, MessageId(9, 4)]
        await old.close()
