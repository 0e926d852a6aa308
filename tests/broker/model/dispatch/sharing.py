"""Helpers for tests of Shared and Key_Shared subscriptions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pulsarium.broker.model.dispatch.key_shared import KeySharedDispatcher
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import Bed, Earliest, KeyShared, Message, Type, Wire, plain


def reason(bed: Bed) -> Reason:
    """Return why the subscription delivers no more messages."""
    return bed.subscription().reason


def why(bed: Bed, position: Position) -> Reason:
    """Return why the subscription does not deliver this entry."""
    return bed.subscription().why(position)


def dispatcher(bed: Bed) -> KeySharedDispatcher:
    found = bed.subscription().dispatcher
    assert isinstance(found, KeySharedDispatcher)
    return found


def sticky(*ranges: tuple[int, int]) -> dict[str, Any]:
    """Return the keySharedMeta of a consumer that takes these ranges."""
    return {"keySharedMode": pb.STICKY, "hashRanges": [{"start": start, "end": end} for start, end in ranges]}


async def joined(bed: Bed, name: str, permits: int = 1000, **fields: Any) -> Wire:
    """Connect a consumer on its own connection, by default Key_Shared from the earliest message."""
    wire = await bed.connect()
    await wire.subscribe(**{"type": KeyShared, "consumer_name": name, "initialPosition": Earliest, **fields})
    if permits:
        await wire.flow(permits)
    return wire


async def got(wire: Wire) -> list[Message]:
    """Return the messages that a consumer has received by now."""
    received = await wire.rest(0.001)
    for base, _ in received:
        assert base.type == Type.MESSAGE, base
    wire.inbox.extend(received)
    return await wire.messages(len(received))


async def payloads(wire: Wire) -> list[bytes]:
    return [message.payload for message in await got(wire)]


def keyed(keys: Iterable[str]) -> list[bytes]:
    """Return an entry for each key, with the key and its index as payload."""
    return [plain(f"{key} {number}".encode(), partition_key=key) for number, key in enumerate(keys)]
