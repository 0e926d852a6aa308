"""Commits of messages that take a millisecond at least (separate_publish_times). Times are in milliseconds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import trio

from pulsarium.broker.config import PIP, PULSAR_4_2, Profile
from tests.broker.held import HeldStorage
from tests.broker.wire import Bed, Type, Wire, plain, serving

SEPARATE = replace(PIP, separate_publish_times=True)


def ms() -> float:
    return round(trio.current_time() * 1000, 3)


@pytest.fixture
async def bed(store: HeldStorage) -> AsyncIterator[Bed]:
    async with serving(profile=SEPARATE, storage=store) as bed:
        yield bed


async def receipt(wire: Wire) -> tuple[int, float]:
    return (await wire.expect(Type.SEND_RECEIPT)).sequence_id, ms()


@pytest.mark.usefixtures("autojump_clock")
@pytest.mark.parametrize(("profile", "least"), [(PIP, 0), (SEPARATE, 1), (PULSAR_4_2, 1)])
@pytest.mark.parametrize("keeps_entries", [False, True])
async def test_a_receipt_comes_a_millisecond_after_its_message(
    profile: Profile, least: float, keeps_entries: bool
) -> None:
    storage = HeldStorage() if keeps_entries else None
    async with serving(profile=profile, storage=storage) as bed:
        wire = await bed.connect()
        await wire.producer()
        for _ in range(3):
            before = ms()
            await wire.publish(plain(b"a"))
            assert ms() - before == pytest.approx(least)


async def test_messages_that_come_meanwhile_are_handled(bed: Bed, sender: Wire) -> None:
    begin = ms()
    for number in range(3):
        await sender.write(sender.sends(plain(b"%d" % number)))
        await trio.sleep(0.0004)
    found = [await receipt(sender) for _ in range(3)]
    assert [sequence for sequence, _ in found] == [0, 1, 2]
    assert [at - begin for _, at in found] == pytest.approx([1.2, 1.4, 1.8])


async def test_receipt_and_message_come_in_the_order_of_a_broker_that_does_not_wait(bed: Bed, sender: Wire) -> None:
    await sender.subscribe()
    await sender.flow(10)
    await sender.write(sender.sends(plain(b"a")))
    assert [each.command.type for each in await sender.rest(0.01)] == [Type.SEND_RECEIPT, Type.MESSAGE]


async def test_a_commit_that_takes_longer_is_not_held(bed: Bed, sender: Wire, store: HeldStorage) -> None:
    store.holding = True
    begin = ms()
    await sender.write(sender.sends(plain(b"a")))
    await trio.sleep(0.005)
    store.release()
    assert await receipt(sender) == (0, begin + 5)


async def test_no_commit_overtakes_that_of_a_message(bed: Bed, sender: Wire) -> None:
    told: list[str] = []
    await sender.write(sender.sends(plain(b"a")))
    await trio.sleep(0.0005)
    turn = bed.broker.turn
    turn.store("/a", b"")
    turn.after_commit(lambda error: told.append(f"{error} {ms() - begin}"))
    begin = ms()
    await receipt(sender)
    assert told == ["None 0.5"]


async def test_the_failure_of_a_held_commit_is_told_once(bed: Bed, sender: Wire, store: HeldStorage) -> None:
    store.holding = True
    await sender.write(sender.sends(plain(b"a")))
    await trio.sleep(0.0002)
    await sender.write(sender.sends(plain(b"b")))
    await trio.sleep(0.0002)
    store.release(1)
    store.fail()
    store.release()
    assert (await receipt(sender))[0] == 0
    error = await sender.expect(Type.SEND_ERROR)
    assert error.sequence_id == 1
