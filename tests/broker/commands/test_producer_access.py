"""Access modes of producers: they own a topic, share a topic, or wait for one."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import PIP, PULSAR_4_2, Profile
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.commands.refusals import JAVA, refused_producer
from tests.broker.held import HeldStorage
from tests.broker.wire import TOPIC, Bed, Type, Wire, plain, serving


async def producer(wire: Wire, name: str, mode: pb.ProducerAccessMode, **fields: Any) -> pb.CommandProducerSuccess:
    return await wire.producer(producer_name=name, producer_access_mode=mode, **fields)


@pytest.mark.req("P-04")
async def test_shared_keeps_exclusive_out_and_the_other_way_round(bed: Bed, wire: Wire) -> None:
    other = await bed.connect()
    await producer(wire, "sh", pb.Shared)
    code, text = await refused_producer(other, producer_access_mode=pb.Exclusive)
    assert (code, text) == (pb.ProducerFenced, f"{JAVA}ProducerFencedException: Topic has existing shared producers")
    await wire.ask(Type.CLOSE_PRODUCER, producer_id=0)
    assert (await producer(other, "ex", pb.Exclusive)).topic_epoch == 0
    code, text = await refused_producer(wire, 1)
    existing = "Topic has an existing exclusive producer: ex"
    assert (code, text) == (pb.ProducerBusy, f"{JAVA}ProducerBusyException: {existing}")
    code, text = await refused_producer(wire, 1, producer_access_mode=pb.Exclusive)
    assert (code, text) == (pb.ProducerFenced, f"{JAVA}ProducerFencedException: {existing}")


@pytest.mark.req("P-04", "P-10")
async def test_partial_producers_are_fenced_like_all_others(bed: Bed) -> None:
    partial = [await bed.connect(flags=["supports_partial_producer"]) for _ in range(2)]
    await producer(partial[0], "first", pb.Exclusive)
    assert (await refused_producer(partial[1], 1))[0] == pb.ProducerBusy
    assert (await refused_producer(partial[1], 1, producer_access_mode=pb.Exclusive))[0] == pb.ProducerFenced
    assert (await producer(partial[1], "second", pb.ExclusiveWithFencing, producer_id=2)).topic_epoch == 1


@pytest.mark.req("P-04", "P-05")
async def test_waiters_take_over_in_order(bed: Bed, wire: Wire) -> None:
    await producer(wire, "first", pb.Exclusive)
    waiters = [await bed.connect() for _ in range(2)]
    for number, waiter in enumerate(waiters):
        success = await producer(waiter, f"w{number}", pb.WaitForExclusive)
        assert not success.producer_ready
        assert not success.HasField("topic_epoch")
    await wire.ask(Type.CLOSE_PRODUCER, producer_id=0)
    success = await waiters[0].expect(Type.PRODUCER_SUCCESS)
    assert (success.request_id, success.producer_ready, success.topic_epoch) == (1, True, 1)
    await waiters[0].publish(plain(b"mine"))
    await waiters[1].quiet()
    await waiters[0].aclose()
    success = await waiters[1].expect(Type.PRODUCER_SUCCESS)
    assert (success.producer_name, success.topic_epoch) == ("w1", 2)


@pytest.mark.req("P-04")
async def test_a_waiter_whose_turn_comes_at_once_is_answered_once(wire: Wire) -> None:
    """The owner leaves in the same segment. An answer that says "wait" would come behind the one that says "ready"."""
    await producer(wire, "first", pb.Exclusive)
    waits = wire.numbered(
        Type.PRODUCER, topic=TOPIC, producer_id=1, producer_name="w", producer_access_mode=pb.WaitForExclusive
    )
    await wire.write(waits + wire.numbered(Type.CLOSE_PRODUCER, producer_id=0))
    success = await wire.expect(Type.PRODUCER_SUCCESS)
    assert (success.producer_name, success.producer_ready) == ("w", True)
    await wire.expect(Type.SUCCESS)
    await wire.publish(plain(b"mine"), producer_id=1)


@pytest.mark.req("P-04")
async def test_a_waiter_that_sends_is_disconnected(bed: Bed, wire: Wire) -> None:
    await producer(wire, "first", pb.Exclusive)
    waiter = await bed.connect()
    await producer(waiter, "w", pb.WaitForExclusive)
    await waiter.write(waiter.sends(plain(b"too early")))
    assert await waiter.closed() == []
    await wire.publish(plain(b"mine"))


@pytest.mark.req("P-04")
async def test_a_waiter_hears_nothing_of_its_own_connections_end(wire: Wire) -> None:
    await wire.producer(producer_id=1)
    await producer(wire, "w", pb.WaitForExclusive)
    await wire.send(Type.CONNECT, client_version="again", protocol_version=21)
    assert await wire.closed() == []


@pytest.mark.req("P-04")
async def test_a_waiter_keeps_shared_producers_out(bed: Bed, wire: Wire) -> None:
    waiter, third = await bed.connect(), await bed.connect()
    await producer(wire, "pa", pb.Shared)
    assert not (await producer(waiter, "pb", pb.WaitForExclusive)).producer_ready
    code, text = await refused_producer(third)
    assert code == pb.ProducerBusy
    assert text == f"{JAVA}ProducerBusyException: Topic has an existing exclusive producer: null"
    await wire.ask(Type.CLOSE_PRODUCER, producer_id=0)
    assert (await waiter.expect(Type.PRODUCER_SUCCESS)).topic_epoch == 0


@pytest.mark.req("P-04")
async def test_a_producer_that_waits_for_exclusive_access_alone_has_it_at_once(wire: Wire) -> None:
    success = await producer(wire, "w", pb.WaitForExclusive)
    assert (success.producer_ready, success.topic_epoch) == (True, 0)


@pytest.mark.req("P-04")
async def test_fencing_throws_everybody_out_without_a_word(bed: Bed, wire: Wire) -> None:
    b, c, d = [await bed.connect() for _ in range(3)]
    await producer(wire, "a", pb.Shared)
    await producer(b, "b", pb.Shared)
    assert (await producer(c, "c", pb.ExclusiveWithFencing)).topic_epoch == 0
    await wire.quiet()
    await wire.write(wire.sends(plain(b"fenced")))
    assert await wire.closed() == []
    assert not (await producer(b, "b2", pb.WaitForExclusive, producer_id=1)).producer_ready
    assert (await producer(d, "d", pb.ExclusiveWithFencing)).topic_epoch == 1
    error = await b.expect(Type.ERROR)
    assert (error.request_id, error.error) == (2, pb.ProducerFenced)
    assert error.message == f"{JAVA}ProducerFencedException: Fenced out"
    await c.quiet()


@pytest.mark.req("P-04")
async def test_a_fenced_producer_whose_topic_was_unloaded_shortly_before_gets_no_answer(bed: Bed, wire: Wire) -> None:
    """Pulsar ignores messages of a closed producer for keepAliveIntervalSeconds, even if the producer was reopened."""
    other = await bed.connect()
    await producer(wire, "a", pb.Exclusive)
    bed.broker.topics.unload(TopicName.parse(TOPIC))
    await wire.expect(Type.CLOSE_PRODUCER)
    await producer(wire, "a", pb.Exclusive)
    await producer(other, "b", pb.ExclusiveWithFencing)
    await wire.write(wire.sends(plain(b"fenced")))
    await wire.quiet()


@pytest.mark.req("P-04", "P-05")
async def test_a_stale_epoch_fences_the_owner_all_the_same(bed: Bed, wire: Wire) -> None:
    other = await bed.connect()
    await producer(wire, "a", pb.Exclusive)
    await producer(other, "b", pb.ExclusiveWithFencing)
    code, text = await refused_producer(wire, 1, producer_access_mode=pb.ExclusiveWithFencing, topic_epoch=0)
    assert code == pb.ProducerFenced
    moved = "Topic epoch has already moved. Current epoch: 1, Producer epoch: 0"
    assert text == f"{JAVA}ProducerFencedException: {moved}"
    await other.write(other.sends(plain(b"x")))
    await other.closed()
    assert (await producer(wire, "c", pb.Exclusive, producer_id=2)).topic_epoch == 2


@pytest.mark.req("P-05")
@pytest.mark.parametrize(("epoch", "following"), [(2**64 - 1, 0), (2**63 - 1, 2**63)])
async def test_epochs_are_counted_as_signed_ones(bed: Bed, wire: Wire, epoch: int, following: int) -> None:
    other = await bed.connect()
    assert (await producer(wire, "a", pb.Exclusive, topic_epoch=epoch)).topic_epoch == epoch
    assert (await producer(other, "b", pb.ExclusiveWithFencing)).topic_epoch == following


@pytest.mark.req("P-05", "B-50")
async def test_an_owner_comes_back_with_its_epoch(bed: Bed, wire: Wire) -> None:
    other = await bed.connect()
    assert (await producer(wire, "a", pb.Exclusive)).topic_epoch == 0
    bed.broker.topics.unload(TopicName.parse(TOPIC))
    await wire.expect(Type.CLOSE_PRODUCER)
    assert (await producer(wire, "a", pb.Exclusive, topic_epoch=0)).topic_epoch == 0
    await wire.ask(Type.CLOSE_PRODUCER, producer_id=0)
    assert (await producer(other, "b", pb.Exclusive)).topic_epoch == 1
    await other.ask(Type.CLOSE_PRODUCER, producer_id=0)
    code, _ = await refused_producer(wire, producer_access_mode=pb.Exclusive, topic_epoch=0)
    assert code == pb.ProducerFenced


@pytest.mark.req("P-05")
async def test_the_epoch_outlives_the_broker(autojump_clock: object) -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed:
        for epoch in range(3):
            wire = await bed.connect()
            assert (await producer(wire, "a", pb.Exclusive)).topic_epoch == epoch
            await wire.aclose()
    async with serving(storage=store) as bed:
        assert (await producer(await bed.connect(), "a", pb.Exclusive)).topic_epoch == 3


@pytest.mark.req("P-03", "P-04")
async def test_a_waiter_that_asks_again_is_told_that_it_is_there(bed: Bed, wire: Wire) -> None:
    await producer(wire, "first", pb.Exclusive)
    waiter = await bed.connect()
    await producer(waiter, "w", pb.WaitForExclusive)
    code, text = await refused_producer(waiter, producer_name="w", producer_access_mode=pb.WaitForExclusive)
    assert (code, text) == (pb.ServiceNotReady, "Producer is already present on the connection")
    assert not (await producer(waiter, "w", pb.WaitForExclusive, producer_id=1)).producer_ready
    await wire.aclose()
    assert (await waiter.expect(Type.PRODUCER_SUCCESS)).request_id == 1


@pytest.mark.req("P-04")
async def test_shared_producers_hear_the_epoch_of_the_last_owner(bed: Bed, wire: Wire) -> None:
    await producer(wire, "first", pb.Exclusive)
    await wire.ask(Type.CLOSE_PRODUCER, producer_id=0)
    assert (await producer(wire, "a", pb.Shared)).topic_epoch == 0
    assert (await producer(wire, "b", pb.Shared, producer_id=1)).topic_epoch == 0
    assert not (await producer(wire, "b", pb.Shared, producer_id=1)).HasField("topic_epoch")  # a repeated request
    bed.broker.topics.unload(TopicName.parse(TOPIC))
    await wire.rest()
    assert (await producer(wire, "a", pb.Shared)).topic_epoch == 0


# producers that wait while their topic is unloaded or terminated, as seen on a real 4.2.4


async def queue(bed: Bed, *modes: pb.ProducerAccessMode) -> list[Wire]:
    """Return connections with producers of these access modes, which are called a, b, c, ..."""
    wires = [await bed.connect() for _ in modes]
    for wire, name, mode in zip(wires, "abc", modes, strict=False):
        await producer(wire, name, mode)
    return wires


@pytest.mark.req("P-04", "B-50")
@pytest.mark.parametrize(("profile", "heard"), [(PIP, 2), (PULSAR_4_2, 1)])
async def test_an_unload_refuses_who_waits_but_only_the_first_in_pulsar_4_2(
    autojump_clock: object, profile: Profile, heard: int
) -> None:
    async with serving(profile=profile) as bed:
        owner, *waiters = await queue(bed, pb.Exclusive, pb.WaitForExclusive, pb.WaitForExclusive)
        bed.broker.topics.unload(TopicName.parse(TOPIC))
        await owner.expect(Type.CLOSE_PRODUCER)
        answers = [answer for waiter in waiters for answer in await waiter.rest()]
        assert [answer.command.error.error for answer in answers] == [pb.ServiceNotReady] * heard


@pytest.mark.req("P-03", "P-04")
@pytest.mark.serving(profile=PULSAR_4_2)
async def test_in_pulsar_4_2_who_heard_nothing_of_an_unload_is_there_until_it_closes(bed: Bed) -> None:
    _, _, waiter = await queue(bed, pb.Exclusive, pb.WaitForExclusive, pb.WaitForExclusive)
    bed.broker.topics.unload(TopicName.parse(TOPIC))
    code, text = await refused_producer(waiter, producer_access_mode=pb.WaitForExclusive)
    assert (code, text) == (pb.ServiceNotReady, "Producer is already present on the connection")
    await waiter.ask(Type.CLOSE_PRODUCER, producer_id=0)
    assert (await producer(waiter, "c", pb.WaitForExclusive)).producer_ready


@pytest.mark.req("P-05")
@pytest.mark.parametrize(("profile", "epoch"), [(PIP, 1), (PULSAR_4_2, 2)])
async def test_the_epoch_does_not_count_who_was_refused_by_an_unload_but_in_pulsar_4_2(
    autojump_clock: object, profile: Profile, epoch: int
) -> None:
    async with serving(profile=profile) as bed:
        owner, _ = await queue(bed, pb.Exclusive, pb.WaitForExclusive)
        bed.broker.topics.unload(TopicName.parse(TOPIC))
        await owner.expect(Type.CLOSE_PRODUCER)
        assert (await producer(owner, "a", pb.Exclusive)).topic_epoch == epoch


@pytest.mark.req("P-04", "B-33")
@pytest.mark.parametrize(("profile", "heard"), [(PIP, 2), (PULSAR_4_2, 1)])
async def test_a_topic_that_ends_refuses_who_waits_but_only_the_first_in_pulsar_4_2(
    autojump_clock: object, profile: Profile, heard: int
) -> None:
    async with serving(profile=profile) as bed:
        owner, *waiters = await queue(bed, pb.Exclusive, pb.WaitForExclusive, pb.WaitForExclusive)
        bed.topic().terminate()
        await owner.expect(Type.CLOSE_PRODUCER)
        answers = [answer for waiter in waiters for answer in await waiter.rest()]
        assert [answer.command.error.error for answer in answers] == [pb.TopicTerminatedError] * heard


@pytest.mark.req("P-04", "B-33")
@pytest.mark.serving(profile=PULSAR_4_2)
async def test_in_pulsar_4_2_who_is_refused_by_a_terminated_topic_owns_it_all_the_same(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    bed.topic().terminate()
    await wire.expect(Type.CLOSE_PRODUCER)
    modes = (pb.Shared, pb.Exclusive, pb.Exclusive, pb.Shared)
    refused = [await refused_producer(wire, n, producer_access_mode=mode) for n, mode in enumerate(modes)]
    ended = pb.TopicTerminatedError
    assert [code for code, _ in refused] == [ended, ended, pb.ProducerFenced, pb.ProducerBusy]
    assert not (await producer(wire, "w", pb.WaitForExclusive, producer_id=7)).producer_ready
    await wire.quiet()


@pytest.mark.req("P-04", "B-33")
async def test_nobody_waits_for_a_terminated_topic(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    bed.topic().terminate()
    await wire.expect(Type.CLOSE_PRODUCER)
    for number in range(2):
        code, _ = await refused_producer(wire, number, producer_access_mode=pb.WaitForExclusive)
        assert code == pb.TopicTerminatedError
