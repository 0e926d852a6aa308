"""Subscriptions whose deletion cannot be stored: they stay as they were, and can be deleted later."""

from __future__ import annotations

import pytest
import trio

from pulsarium.broker.model.errors import ServiceNotReadyError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.full_disk import NAME, ROLLING, disk, used
from tests.broker.web.admin.rest import TOPICS
from tests.broker.wire import Earliest, Shared, Type, plain


async def test_a_subscription_deleted_in_vain_over_rest_stays(autojump_clock: object) -> None:
    def meanwhile() -> None:
        assert list(it.topic.subscriptions) == ["none"]
        with pytest.raises(ServiceNotReadyError, match="Subscription is fenced"):
            it.topic.subscribe("some", earliest=False)
        with pytest.raises(ServiceNotReadyError, match="Subscription is fenced"):
            it.topic.open_reader("some", None, earliest=False)

    async with disk() as it:
        await used(await it.bed.connect())
        for _ in range(2):
            await it.full("DELETE", f"{TOPICS}/t/subscription/some?force=true", meanwhile)
            assert it.backlogs() == {"some": 1, "none": 3}
        wire = await it.bed.connect()
        await wire.subscribe(name="some", type=Shared)
        await wire.flow()
        assert await wire.payloads(1) == [b"1"]
        await it.rest.done("DELETE", f"{TOPICS}/t/subscription/some?force=true")
    async with disk(it.store) as it:
        assert it.backlogs() == {"none": 3}
        assert [path for path in it.left() if path.startswith("/cursor-ledgers/")] == []


@pytest.mark.parametrize("what", ["t", "t/subscription/sub"])
async def test_acknowledgements_outlive_a_deletion_in_vain(autojump_clock: object, what: str) -> None:
    async with disk() as it:
        wire = await it.bed.connect()
        await wire.producer()
        await wire.subscribe(type=Shared)
        positions = await wire.publish(plain(b"0"), plain(b"1"))
        cursor = it.topic.subscriptions["sub"].cursor
        saves = cursor.saves
        cursor.ack(positions[1])
        cursor.save_soon()
        await it.full("DELETE", f"{TOPICS}/{what}?force=true")
        assert cursor.saves == saves
        await trio.sleep(1)
        async with disk(it.store.left_behind()) as again:
            assert again.backlogs() == {"sub": 1}


async def test_a_client_that_unsubscribes_in_vain(autojump_clock: object) -> None:
    """The broker closes the client's consumer anyway. The client may subscribe again and repeat the UNSUBSCRIBE."""
    async with disk() as it:
        wire = await it.bed.connect()
        await wire.producer()
        await wire.publish(plain(b"x"))
        await wire.subscribe(initialPosition=Earliest)
        it.store.holding = True
        await wire.send(Type.UNSUBSCRIBE, request_id=77, consumer_id=0)
        await wire.quiet()
        it.store.fail()
        it.store.release()
        error = await wire.expect(Type.ERROR)
        assert (error.request_id, error.error) == (77, pb.PersistenceError)
        assert (await wire.expect(Type.CLOSE_CONSUMER)).consumer_id == 0
        await wire.subscribe()
        await wire.flow()
        assert await wire.payloads(1) == [b"x"]
        await wire.ask(Type.UNSUBSCRIBE, consumer_id=0)
        assert it.backlogs() == {}
    async with disk(it.store) as it:
        assert it.backlogs() == {}


async def test_a_topic_loaded_again_has_the_subscription_deleted_in_vain(autojump_clock: object) -> None:
    def meanwhile() -> None:
        it.topics.unload(NAME)
        assert it.backlogs() == {}

    async with disk() as it:
        await (await it.bed.connect()).subscribe(name="some")
        await it.full("DELETE", f"{TOPICS}/t/subscription/some?force=true", meanwhile)
        assert it.backlogs() == {"some": 0}


async def test_nothing_is_trimmed_that_the_subscription_needs(autojump_clock: object) -> None:
    def meanwhile() -> None:
        it.topic.trimmer.trim()

    async with disk(**ROLLING) as it:
        wire = await it.bed.connect()
        await wire.producer()
        await wire.subscribe(name="some")
        for number in range(3):
            await wire.publish(plain(b"%d" % number))
        await it.full("DELETE", f"{TOPICS}/t/subscription/some?force=true", meanwhile)
        assert it.backlogs() == {"some": 3}
        wire = await it.bed.connect()
        await wire.subscribe(name="some")
        await wire.flow()
        assert await wire.payloads(3) == [b"0", b"1", b"2"]
        assert len(it.topic.ledger.ledgers) > 3
        await it.rest.done("DELETE", f"{TOPICS}/t/subscription/some?force=true")
        await trio.sleep(1)
        assert it.topic.ledger.count == 0
