"""Producers with exclusive access (PIP-68), and producers that are canceled before they open."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import anyio
import pytest
from trio.testing import MockClock

from pulsarium.client import Client, Producer, ProducerAccessMode, errors
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import frame_of
from tests.client.hostile.clocks import on_both
from tests.client.hostile.played import playing, saying, silence
from tests.client.in_process import in_process
from tests.client.peer import Peer, Type
from tests.client.producer.stage import TOPIC, UNASKED, producing

Mode = ProducerAccessMode


def producer_in(client: Client, mode: ProducerAccessMode, **options: Any) -> Producer:
    return client.create_producer("t", access_mode=mode, **options)


async def test_a_producer_waits_for_its_turn_without_a_limit(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client(operation_timeout=5) as client:
        opened = anyio.Event()

        async def wait() -> None:
            async with producer_in(client, Mode.WaitForExclusive) as producer:
                opened.set()
                assert producer.topic_epoch() == 1
                assert (await producer.send(b"mine")).entry_id == 1

        async with anyio.create_task_group() as tasks:
            async with producer_in(client, Mode.Exclusive) as owner:
                tasks.start_soon(wait)
                await anyio.sleep(3600)
                assert not opened.is_set()
                await owner.send(b"before")
            await opened.wait()


async def test_a_producer_that_stops_waiting_leaves_nothing_behind(autojump_clock: MockClock) -> None:
    """The canceled producer neither blocks the next one nor leaves a task behind."""
    async with in_process() as inside, inside.client() as client:
        async with producer_in(client, Mode.Exclusive):
            with anyio.move_on_after(100) as scope:
                await producer_in(client, Mode.WaitForExclusive).__aenter__()
            assert scope.cancelled_caught
        await anyio.sleep(1)
        async with producer_in(client, Mode.Exclusive) as producer:
            await producer.send(b"1")


@pytest.mark.parametrize("loss", ["unload", "cut"])
async def test_a_waiting_producer_asks_again_after_a_lost_connection(autojump_clock: MockClock, loss: str) -> None:
    """The producer asks again also long after `operation_timeout`, and opens when the owner has left."""
    async with in_process() as inside, inside.client(operation_timeout=5) as client, inside.client() as other:
        opened = anyio.Event()

        async def wait() -> None:
            async with producer_in(client, Mode.WaitForExclusive) as producer:
                opened.set()
                await producer.send(b"mine")

        async with anyio.create_task_group() as tasks:
            async with producer_in(other, Mode.ExclusiveWithFencing) as owner:
                tasks.start_soon(wait)
                await anyio.sleep(100)
                if loss == "cut":
                    await inside.cut()
                else:
                    inside.bed.broker.topics.unload(TopicName.parse(TOPIC))
                    inside.bed.broker.turn.finish()
                await anyio.sleep(0.01)
                with anyio.move_on_after(30), suppress(errors.ProducerFenced):  # if the waiting one has opened
                    await owner.send(b"again")
            await opened.wait()


async def test_a_shared_producer_comes_back_after_an_exclusive_one(autojump_clock: MockClock) -> None:
    """The broker's ProducerBusy closes no producer that was open, as in Java: its messages wait."""
    # Two clients, because the shared producer's SEND ends its connection, and the owner must keep its own.
    async with in_process() as inside, inside.client() as client, producer_in(client, Mode.Shared) as one:
        async with inside.client() as other, producer_in(other, Mode.ExclusiveWithFencing) as owner:
            receipt = one.send_nowait(b"mine")
            await anyio.sleep(1000)
            assert not receipt.is_done()
            assert not one.is_connected()
            await owner.send(b"the owner's")
        assert (await receipt.wait()).entry_id == 1


async def test_a_waiting_producer_is_fenced_too(autojump_clock: MockClock) -> None:
    async with (
        in_process() as inside,
        inside.client() as client,
        inside.client() as other,
        producer_in(client, Mode.Exclusive),
        anyio.create_task_group() as tasks,
    ):

        async def wait() -> None:
            with pytest.raises(errors.ProducerFenced):
                await producer_in(client, Mode.WaitForExclusive).__aenter__()

        tasks.start_soon(wait)
        await anyio.sleep(1)
        async with producer_in(other, Mode.ExclusiveWithFencing):
            await anyio.sleep(1)


async def test_an_owner_comes_back(autojump_clock: MockClock) -> None:
    """The owner keeps its epoch, because no other producer took a new one meanwhile."""
    async with (
        in_process() as inside,
        inside.client() as client,
        producer_in(client, Mode.Exclusive, batching_enabled=False) as owner,
    ):
        for n in range(3):
            await owner.send(b"%d" % n)
            await inside.cut()
        await owner.send(b"last")
        assert owner.topic_epoch() == 0


async def test_all_partitions_for_one(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 3)
        opened: list[int] = []

        async def use(number: int) -> None:
            async with producer_in(client, Mode.WaitForExclusive) as producer:
                opened.append(number)
                for _ in range(3):
                    await producer.send(b"")
                await anyio.sleep(10)
                assert opened[-1] == number
                assert producer.topic_epoch() == len(opened) - 1

        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(use, number)
        assert sorted(opened) == [0, 1, 2]


@on_both
async def test_the_epoch_goes_along() -> None:
    async with producing({"topic_epoch": 7}, access_mode=Mode.Exclusive, batching_enabled=False) as stage:
        assert stage.producer.topic_epoch() == 7
        await stage.peer.say(Type.CLOSE_PRODUCER, producer_id=0, request_id=UNASKED)
        await stage.peer.lead_here_again()
        asked = await stage.peer.expect(Type.PRODUCER)
        assert (asked.producer_access_mode, asked.topic_epoch) == (pb.Exclusive, 7)
        receipt = stage.producer.send_nowait(b"pending")
        await stage.peer.say(Type.ERROR, request_id=asked.request_id, error=pb.ProducerFenced, message="moved")
        with pytest.raises(errors.ProducerFenced, match="moved"):
            await receipt.wait()
        with pytest.raises(errors.ProducerFenced):
            await stage.producer.flush()


@on_both
async def test_the_first_of_two_answers_says_only_to_wait() -> None:
    async with playing() as (played, client), anyio.create_task_group() as tasks:
        opened = anyio.Event()

        async def use() -> None:
            async with producer_in(client, Mode.WaitForExclusive, producer_name="p") as producer:
                assert (producer.topic_epoch(), producer.last_sequence_id()) == (3, 5)
                opened.set()

        played.on[Type.PRODUCER] = saying(Type.PRODUCER_SUCCESS, producer_name="p", producer_ready=False)
        tasks.start_soon(use)
        asked = await played.sent(Type.PRODUCER)
        assert asked.producer_access_mode == pb.WaitForExclusive
        assert not asked.HasField("topic_epoch")
        await anyio.sleep(10)  # longer than operation_timeout
        assert not opened.is_set()
        ready = {"producer_name": "p", "producer_ready": True, "topic_epoch": 3, "last_sequence_id": 5}
        await saying(Type.PRODUCER_SUCCESS, **ready)(played.connections[-1], asked)


# ---- Producers that are canceled before they are open


@on_both
async def test_a_canceled_producer_is_closed_once_it_is_open() -> None:
    """An earlier CLOSE_PRODUCER would close nothing (137-pipelined), and the client would have to send it twice."""
    async with playing() as (played, client), anyio.create_task_group() as tasks:
        scope = anyio.CancelScope()

        async def create() -> None:
            with scope:
                await client.create_producer("t").__aenter__()

        played.on[Type.PRODUCER] = silence
        tasks.start_soon(create)
        asked = await played.sent(Type.PRODUCER)
        scope.cancel()
        await anyio.wait_all_tasks_blocked()
        assert played.count(Type.CLOSE_PRODUCER) == 0
        await played.connections[-1].say(Type.PRODUCER_SUCCESS, request_id=asked.request_id, producer_name="p")
        assert (await played.sent(Type.CLOSE_PRODUCER)).producer_id == asked.producer_id
        await anyio.wait_all_tasks_blocked()
        assert played.count(Type.CLOSE_PRODUCER) == 1


@on_both
@pytest.mark.parametrize("how", ["closed", "abandoned"])
async def test_a_producer_that_ends_while_it_is_opened_again_is_closed_once(how: str) -> None:
    async with producing(batching_enabled=False) as stage, anyio.create_task_group() as tasks:
        peer = stage.peer
        await peer.say(Type.CLOSE_PRODUCER, producer_id=0, request_id=UNASKED)
        await peer.lead_here_again()
        asked = await peer.expect(Type.PRODUCER)
        if how == "closed":
            tasks.start_soon(stage.producer.aclose)
        else:
            stage.producer.abandon()
        await anyio.wait_all_tasks_blocked()
        await peer.say(Type.PRODUCER_SUCCESS, request_id=asked.request_id, producer_name="p")
        await peer.expect(Type.CLOSE_PRODUCER)
        await peer.say(Type.PING)
        await peer.expect(Type.PONG)
        with suppress(errors.AlreadyClosed):
            stage.producer.send_nowait(b"1")
            pytest.fail("it is closed")


@on_both
async def test_a_connection_that_breaks_as_soon_as_the_producer_is_open_is_replaced() -> None:
    async with playing() as (played, client):

        async def open_and_break(peer: Peer, body: Any) -> None:
            del played.on[Type.PRODUCER]
            success = frame_of(Type.PRODUCER_SUCCESS, request_id=body.request_id, producer_name="p")
            await peer.stream.send(success + b"\xff" * 16)

        played.on[Type.PRODUCER] = open_and_break
        async with client.create_producer("t") as producer:
            assert (await producer.send(b"x")).ledger_id == 1
        assert played.count(Type.PRODUCER) == 2
