"""Deduplication: the receipts and errors that producers get."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from pulsarium.broker.config import PIP, PULSAR_4_2, Profile
from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.commands.deduplicated import DUPLICATE, NAME, ON, ask, send
from tests.broker.held import HeldStorage
from tests.broker.wire import TOPIC, Bed, Earliest, Type, Wire, batch_of, frame_of, plain, position_of, serving

pytestmark = pytest.mark.req("B-27")


@pytest.fixture
async def bed(autojump_clock: object) -> AsyncIterator[Bed]:
    async with serving(ON) as bed:
        yield bed


@pytest.fixture
async def p(bed: Bed) -> Wire:
    """Return a connection with a producer 0, named p."""
    wire = await bed.connect()
    await wire.producer(producer_name="p")
    return wire


# duplicates


async def test_a_stored_duplicate_gets_a_receipt_without_a_position(p: Wire) -> None:
    positions = [await ask(p, number) for number in (0, 1, 1, 0, 5, 4)]  # a gap in the sequence ids is allowed
    assert [position.entry_id for position in positions] == [0, 1, -1, -1, 2, -1]
    assert positions[2] == DUPLICATE
    await p.subscribe(initialPosition=Earliest)
    await p.flow()
    assert await p.payloads(3) == [b"0", b"1", b"5"]
    await p.quiet()


async def test_a_message_that_a_replicator_marks_is_no_duplicate_and_does_not_count(p: Wire) -> None:
    """Pulsar 4.2.4 stored these messages."""
    asked: list[tuple[int, bool]] = [(1, False), (1, True), (0, True), (9, True), (5, False), (1, False)]
    positions = [await ask(p, number, marker=marker) for number, marker in asked]
    assert [position.entry_id for position in positions] == [0, 1, 2, 3, 4, -1]


async def test_a_batch_counts_from_its_lowest_to_its_highest_id(p: Wire) -> None:
    def batch(first: int, last: int) -> dict[str, Any]:
        return {"entry": batch_of(b"a", b"b", sequence_id=first, highest_sequence_id=last), "highest_sequence_id": last}

    assert (await ask(p, 6, **batch(6, 8))).entry_id == 0
    await send(p, 6, **batch(6, 8))
    receipt = await p.expect(Type.SEND_RECEIPT)
    assert (position_of(receipt.message_id), receipt.highest_sequence_id) == (DUPLICATE, 8)
    assert await ask(p, 8, **batch(8, 10)) == DUPLICATE  # the whole batch, although 9 and 10 are new
    assert (await ask(p, 9, **batch(9, 10))).entry_id == 1


async def test_a_duplicate_cannot_be_told_while_the_first_message_is_being_stored(p: Wire) -> None:
    frames = [frame_of(Type.SEND, plain(b"x"), producer_id=0, sequence_id=number) for number in (20, 20, 21)]
    await p.write(b"".join(frames))
    error = await p.expect(Type.SEND_ERROR)  # before the receipt of the first one
    assert (error.sequence_id, error.error) == (20, pb.PersistenceError)
    assert error.message == f"[{TOPIC}][p]Cannot determine whether the message is a duplicate at this time"
    assert len(await p.receipts(2)) == 2
    assert await ask(p, 20) == DUPLICATE


def chunk(number: int) -> dict[str, Any]:
    """Return the fields of the SEND of a chunk of message 3."""
    entry = plain(b"x", sequence_id=3, uuid="u", chunk_id=number, num_chunks_from_msg=2)
    return {"entry": entry, "is_chunk": True}


@pytest.mark.req("B-28")
async def test_of_a_message_in_chunks_the_last_one_counts(p: Wire) -> None:
    assert [(await ask(p, 3, **chunk(number))).entry_id for number in (0, 0, 1, 1, 0)] == [0, 1, 2, -1, 3]


async def test_sequence_ids_are_signed_as_in_pulsar(p: Wire) -> None:
    assert [(await ask(p, number)).entry_id for number in (6, 2**63, 2**63 - 1, 7)] == [0, -1, 1, -1]


async def test_each_name_is_on_its_own(bed: Bed, p: Wire) -> None:
    await p.producer(producer_name="other", producer_id=1)
    await ask(p, 5)
    assert (await ask(p, 0, producer_id=1)).entry_id == 1


async def test_a_duplicate_counts_as_received(bed: Bed, p: Wire) -> None:
    for number in (0, 0):
        await ask(p, number)
    assert bed.topic().messages_in == 2


async def test_without_it_everything_is_stored(autojump_clock: object) -> None:
    async with serving() as bed:
        wire = await bed.connect()
        await wire.producer(producer_name="p")
        assert [(await ask(wire, 7)).entry_id for _ in range(3)] == [0, 1, 2]
        await wire.ask(Type.CLOSE_PRODUCER, producer_id=0)
        assert (await wire.producer(producer_name="p")).last_sequence_id == -1
        assert bed.topic().deduplication is None


# producers that reopen


async def test_a_producer_that_comes_back_hears_how_far_it_was(bed: Bed, p: Wire) -> None:
    await ask(p, 21)
    assert (await p.producer(producer_name="x")).last_sequence_id == -1  # a repeated request
    await p.ask(Type.CLOSE_PRODUCER, producer_id=0)
    assert (await p.producer(producer_name="p")).last_sequence_id == 21
    bed.broker.topics.unload(NAME)
    await p.expect(Type.CLOSE_PRODUCER)
    assert (await p.producer(producer_name="p")).last_sequence_id == 21
    assert await ask(p, 21) == DUPLICATE
    assert (await ask(p, 22)).entry_id == 0


@pytest.mark.req("B-28")
@pytest.mark.parametrize("how", ["unload", "restart"])
@pytest.mark.parametrize(("profile", "stored"), [(PIP, True), (PULSAR_4_2, False)])
async def test_a_chunked_message_goes_on_in_a_topic_that_is_loaded_again_but_in_pulsar_4_2(
    autojump_clock: object, how: str, profile: Profile, stored: bool
) -> None:
    async def last(bed: Bed) -> Position:
        wire = await bed.connect()
        await wire.producer(producer_name="p")
        return await ask(wire, 3, **chunk(1))

    store = HeldStorage()
    async with serving(ON, profile=profile, storage=store) as bed:
        wire = await bed.connect()
        await wire.producer(producer_name="p")
        await ask(wire, 3, **chunk(0))
        if how == "unload":
            bed.broker.topics.unload(NAME)
            assert (await last(bed) != DUPLICATE) is stored
    if how == "restart":
        async with serving(ON, profile=profile, storage=store) as bed:
            assert (await last(bed) != DUPLICATE) is stored


async def test_a_producer_that_waited_for_exclusive_access_learns_the_last_sequence_id(bed: Bed, p: Wire) -> None:
    await ask(p, 3)
    other = await bed.connect()
    await other.producer(producer_name="q", producer_access_mode=pb.WaitForExclusive)
    success = await p.request(Type.PRODUCER, producer_name="p", topic=TOPIC, producer_id=1, producer_access_mode=2)
    assert (success.producer_success.producer_ready, success.producer_success.last_sequence_id) == (False, 3)
    await p.ask(Type.CLOSE_PRODUCER, producer_id=0)
    await other.expect(Type.PRODUCER_SUCCESS)
    await other.aclose()
    assert (await p.expect(Type.PRODUCER_SUCCESS)).last_sequence_id == 3


async def test_deduplication_knows_messages_in_flight_at_an_unload(autojump_clock: object) -> None:
    store = HeldStorage()
    async with serving(ON, storage=store) as bed:
        wire = await bed.connect()
        await wire.producer(producer_name="p")
        store.holding = True
        await send(wire, 4)
        await wire.quiet()
        bed.broker.topics.unload(NAME)
        await wire.expect(Type.CLOSE_PRODUCER)
        await wire.write(wire.numbered(Type.PRODUCER, topic=TOPIC, producer_id=0, producer_name="p"))
        await wire.quiet()
        store.release()
        await wire.receipts(1)
        assert (await wire.expect(Type.PRODUCER_SUCCESS)).last_sequence_id == 4
        assert await ask(wire, 4) == DUPLICATE


async def test_a_message_that_could_not_be_stored_may_be_sent_again(autojump_clock: object) -> None:
    store = HeldStorage()
    async with serving(ON, storage=store) as bed:
        wire = await bed.connect()
        await wire.producer(producer_name="p")
        await ask(wire, 0)
        store.holding = True
        await send(wire, 1)
        await wire.quiet()
        store.fail()
        store.release()
        await wire.expect(Type.SEND_ERROR)
        await wire.expect(Type.CLOSE_PRODUCER)
        assert (await wire.producer(producer_name="p")).last_sequence_id == 0
        assert await ask(wire, 1) != DUPLICATE


async def test_messages_behind_a_failed_commit_fail_too(autojump_clock: object) -> None:
    """The client learns that both messages failed before the topic is in use again."""
    store = HeldStorage()
    async with serving(ON, storage=store) as bed:
        wire = await bed.connect()
        await wire.producer(producer_name="p")
        store.holding = True
        for number in (0, 1):
            await send(wire, number)
            await wire.quiet()
        store.fail()
        assert [(await wire.expect(Type.SEND_ERROR)).sequence_id for _ in range(2)] == [0, 1]
        await wire.expect(Type.CLOSE_PRODUCER)
        await wire.write(wire.numbered(Type.PRODUCER, topic=TOPIC, producer_id=0, producer_name="p"))
        await wire.quiet()
        store.release()
        assert (await wire.expect(Type.PRODUCER_SUCCESS)).last_sequence_id == -1
        assert [(await ask(wire, number)).entry_id for number in (0, 1)] == [0, 1]
