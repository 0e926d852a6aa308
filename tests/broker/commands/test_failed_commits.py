"""Failed commits that hold no message of the client: the errors that clients get, and the state after a crash."""

from __future__ import annotations

import pytest

from pulsarium.broker.config import Config
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.held import HeldStorage
from tests.broker.wire import TOPIC, Bed, Earliest, Type, Wire, plain, serving

ROLLING = Config(managedLedgerMaxEntriesPerLedger=2, managedLedgerMinLedgerRolloverTimeMinutes=0)


async def everything(store: HeldStorage, count: int) -> list[bytes]:
    """Return the payloads that a broker delivers after it starts with the store's present contents."""
    async with serving(storage=store.left_behind()) as bed:
        wire = await bed.connect()
        await wire.subscribe(initialPosition=Earliest)
        await wire.flow()
        payloads = await wire.payloads(count)
        await wire.quiet()
    return payloads


async def refused(wire: Wire, store: HeldStorage) -> tuple[int, str]:
    """Send a PRODUCER whose commits fail, and return the error."""
    await wire.write(wire.numbered(Type.PRODUCER, topic=TOPIC, producer_id=0))
    await wire.quiet()
    store.fail(len(store.waiting))
    error = await wire.expect(Type.ERROR)
    return error.error, error.message


async def test_a_topic_that_cannot_be_kept_while_the_disk_is_full(store: HeldStorage, bed: Bed, wire: Wire) -> None:
    store.holding = True
    for _ in range(3):
        assert await refused(wire, store) == (pb.PersistenceError, "commit failed: the disk is full")
        assert not bed.broker.topics.loaded
    store.release()
    await wire.producer()
    await wire.publish(plain(b"kept"))
    assert await everything(store, 1) == [b"kept"]


@pytest.mark.serving(ROLLING)
async def test_a_ledger_that_is_rolled_in_vain(store: HeldStorage, wire: Wire) -> None:
    """The next message would go to a ledger that the store does not know."""
    await wire.producer()
    await wire.publish(plain(b"0"))
    store.holding = True
    await wire.write(wire.sends(plain(b"1")))
    await wire.quiet()
    store.release(1)
    await wire.receipts(1)
    store.fail()
    await wire.expect(Type.CLOSE_PRODUCER)
    store.release()
    await wire.producer()
    await wire.publish(plain(b"2"))
    assert await everything(store, 3) == [b"0", b"1", b"2"]
