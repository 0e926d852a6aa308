"""Shows that a broker keeps a repeated message once."""

from __future__ import annotations

from pulsarium.client import MessageId

from .scenario import scenario
from .world import World, available

ON = {"deduplication": True}


@scenario(expected={"data": ["a", "b", "c", "d"], "numbers": [0, 1, 2, 3]})
async def batches_that_were_there(world: World) -> object:
    topic = f"persistent://{await world.own_namespace(**ON)}/t"
    for contents, first in (([b"a", b"b"], 0), ([b"a", b"b"], 0), ([b"c", b"d"], 2)):
        async with world.client.create_producer(topic, producer_name="p", batching_max_publish_delay=10.0) as producer:
            for n, content in enumerate(contents):
                producer.send_nowait(content, sequence_id=first + n)
    async with world.client.create_reader(topic, MessageId.earliest) as reader:
        messages = await available(reader)
        return {"data": messages, "numbers": [m.sequence_id() for m in messages]}
