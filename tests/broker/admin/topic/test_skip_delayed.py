"""Cancelling delayed messages (PIP-423)."""

from __future__ import annotations

import pytest

from tests.broker.admin.rest import TOPICS, rest_of
from tests.broker.admin.skipped import backlog, skip
from tests.broker.model.dispatch.sharing import joined, payloads
from tests.broker.model.upkeep.policed import fresh, patient
from tests.broker.wire import KeyShared, Shared


@pytest.mark.req("S423-40", "S423-41", "S423-42")
@pytest.mark.parametrize("type", [Shared, KeyShared])
async def test_a_delayed_message_is_cancelled(autojump_clock: object, type: int) -> None:
    async with patient() as bed:
        rest, sender = rest_of(bed), await bed.connect()
        await sender.producer()
        wire = await joined(bed, "c", type=type)
        later = bed.broker.clock.now_ms() + 3_600_000
        now, cancelled, other = await sender.publish(
            fresh(bed.broker, b"now"),
            fresh(bed.broker, b"cancelled", deliver_at_time=later),
            fresh(bed.broker, b"other", deliver_at_time=later),
        )
        assert await payloads(wire) == [b"now"]
        assert await backlog(rest) == 3
        await skip(rest, cancelled)
        assert await backlog(rest) == 2
        await wire.quiet(3000)
        assert (await wire.message(7200)).payload == b"other"
        await wire.quiet(7200)
        await wire.ack(now, other)
        assert await backlog(rest) == 0


@pytest.mark.req("S423-40")
async def test_delayed_messages_are_cancelled_before_a_consumer_comes(autojump_clock: object) -> None:
    async with patient() as bed:
        rest, sender = rest_of(bed), await bed.connect()
        await sender.producer()
        await rest.done("PUT", f"{TOPICS}/t/subscription/sub", "earliest")
        later = bed.broker.clock.now_ms() + 3_600_000
        (cancelled,) = await sender.publish(fresh(bed.broker, b"cancelled", deliver_at_time=later))
        await skip(rest, cancelled)
        wire = await joined(bed, "c", type=Shared)
        await wire.quiet(7200)
