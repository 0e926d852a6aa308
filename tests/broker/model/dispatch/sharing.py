"""What tests of Shared and Key_Shared need besides a wire."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pulsarium.broker.model.dispatch.key_shared import KeySharedDispatcher
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.dispatcher import Reason
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import TOPIC, Bed, Earliest, KeyShared, Message, Type, Wire, plain


def subscription(bed: Bed, name: str = "sub") -> PersistentSubscription:
    found = bed.broker.topics.find(TopicName.parse(TOPIC)).subscriptions[name]
    assert isinstance(found, PersistentSubscription)
    return found


def reason(bed: Bed) -> Reason:
    """Why no more is delivered."""
    return subscription(bed).reason


def why(bed: Bed, position: Position) -> Reason:
    """Why one entry is not."""
    return subscription(bed).why(position)


def dispatcher(bed: Bed) -> KeySharedDispatcher:
    found = subscription(bed).dispatcher
    assert isinstance(found, KeySharedDispatcher)
    return found


async def joined(bed: Bed, name: str, permits: int = 1000, **fields: Any) -> Wire:
    """A consumer on a connection of its own; Key_Shared from the first message on unless `fields` say otherwise."""
    wire = await bed.connect()
    await wire.subscribe(**{"type": KeyShared, "consumer_name": name, "initialPosition": Earliest, **fields})
    if permits:
        await wire.flow(permits)
    return wire


async def got(wire: Wire) -> list[Message]:
    """The messages that came by now."""
    received = await wire.rest(0.001)
    for base, _ in received:
        assert base.type == Type.MESSAGE, base
    wire.inbox.extend(received)
    return await wire.messages(len(received))


async def payloads(wire: Wire) -> list[bytes]:
    return [message.payload for message in await got(wire)]


def keyed(keys: Iterable[str]) -> list[bytes]:
    """An entry for each key, whose payload is the key and its number."""
    return [plain(f"{key} {number}".encode(), partition_key=key) for number, key in enumerate(keys)]
