"""Days that pass in no time, for our client."""

from __future__ import annotations

from datetime import timedelta

import anyio

from pulsarium.client.consumer.options import ConsumerType
from tests.client.in_process import in_process

WEEK = 7 * 86_400


async def test_a_message_that_is_due_in_a_week() -> None:
    async with in_process() as inside, inside.client() as client:
        lab = inside.bed.broker.cluster.lab
        assert lab is not None
        async with client.subscribe("t", "s", consumer_type=ConsumerType.Shared) as consumer:
            async with client.create_producer("t") as producer:
                await producer.send(b"week", deliver_after=timedelta(seconds=WEEK).total_seconds())
            await lab.clock.advance(WEEK - 60)
            assert lab.why("t", "s").reason == "delayed"
            await lab.clock.advance(60)
            with anyio.fail_after(30):
                assert (await consumer.receive()).data() == b"week"
