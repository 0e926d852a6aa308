"""Whatever happens to a consumer: nothing is lost, nothing acknowledged comes again, and nothing is kept at the end."""

from __future__ import annotations

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarium.client.consumer.consumer import Consumer
from pulsarium.client.consumer.options import ConsumerType, InitialPosition
from pulsarium.client.errors import ConnectError
from pulsarium.client.message import Message
from pulsarium.client.producer.producer import Producer
from tests.client.both import run_on
from tests.client.consumer.started import started

Step = tuple[str, int]

STEPS = st.tuples(
    st.sampled_from(["publish", "batch", "receive", "receive", "ack", "ack", "nack", "sleep", "cut", "again"]),
    st.integers(0, 5),
)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(ConsumerType), st.booleans(), st.integers(0, 3), st.lists(STEPS, max_size=30))
def test_histories(kind: ConsumerType, by_index: bool, size: int, steps: list[Step]) -> None:
    if size == 0:
        steps = [step for step in steps if step[0] != "batch"]
    run_on("trio", _play, kind, by_index, size, steps, jump=True)


async def _play(kind: ConsumerType, by_index: bool, size: int, steps: list[Step]) -> None:
    async with (
        started() as (inside, client),
        client.subscribe(
            "t",
            "s",
            consumer_type=kind,
            initial_position=InitialPosition.Earliest,
            receiver_queue_size=size,
            batch_index_ack_enabled=by_index,
            ack_receipt_enabled=True,
            unacked_messages_timeout=3,
            negative_ack_redelivery_delay=2,
        ) as consumer,
        client.create_producer("t") as producer,
    ):
        history = _History(consumer, producer)
        for what, number in steps:
            if what not in ("publish", "batch", "ack"):
                history.ask_again()
            if what == "cut":
                await inside.cut()
            else:
                await history.do(what, number)
        await history.end()


class _History:
    def __init__(self, consumer: Consumer, producer: Producer) -> None:
        self.consumer = consumer
        self.producer = producer
        self.published: set[bytes] = set()
        self.seen: set[bytes] = set()
        self.done: set[bytes] = set()
        self.held: list[Message] = []
        self.under_way: set[bytes] = set()

    async def do(self, what: str, number: int) -> None:
        held = self.held[number % len(self.held)] if self.held else None
        if what == "publish":
            await self.producer.send(self.new())
        elif what == "batch":
            for _ in range(3):
                self.producer.send_nowait(self.new())
            await self.producer.flush()
        elif what == "receive":
            with anyio.move_on_after(0.3):
                self.got(await self.consumer.receive())
        elif what == "sleep":
            await anyio.sleep(number)
        elif what == "again":
            await anyio.sleep(0.01)  # what is on its way would come twice, on Shared
            await self.consumer.redeliver_unacknowledged_messages()
        elif held is not None and what == "nack":
            self.consumer.negative_acknowledge(held)
        elif held is not None:
            await self.acknowledge(held)

    def ask_again(self) -> None:
        """A step that takes time, or cuts: what is not acknowledged comes once more, and may be here before its ack."""
        self.under_way |= {message.data() for message in self.held} - self.done

    def new(self) -> bytes:
        content = b"%d" % len(self.published)
        self.published.add(content)
        return content

    def got(self, message: Message) -> None:
        assert message.data() not in self.done - self.under_way
        self.under_way.discard(message.data())
        self.seen.add(message.data())
        self.held.append(message)

    async def acknowledge(self, message: Message) -> None:
        try:
            await self.consumer.acknowledge(message)
        except ConnectError:  # nobody knows
            return
        if message.message_id().batch_index < 0:
            self.done.add(message.data())

    async def end(self) -> None:
        """Everything comes until it is acknowledged."""
        with anyio.move_on_after(60):
            while True:
                message = await self.consumer.receive()
                self.got(message)
                await self.acknowledge(message)
        assert self.seen == self.published
        await self.consumer.redeliver_unacknowledged_messages()
        with anyio.move_on_after(20):
            raise AssertionError(await self.consumer.receive())
        (part,) = self.consumer._parts.all
        assert part._redelivery.unacknowledged is not None
        assert (len(part._acknowledgements), len(part._redelivery.refused), len(part._redelivery.unacknowledged)) == (
            0,
            0,
            0,
        )
