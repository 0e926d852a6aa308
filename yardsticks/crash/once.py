"""A producer that outlives the broker. With deduplication, its messages are stored once and in order."""

from __future__ import annotations

from functools import partial

import trio

from pulsarium.client import Message, MessageId, Producer, PulsarError, Receipt

from .journal import START, Messages, Place, numbered, place_of
from .process import Broker
from .stage import CONTENT, Stage, client_of, keep_all, located, read

NAMESPACE = "public/once"
TOPIC = f"persistent://{NAMESPACE}/once"
MOST_PENDING = 500  # messages without a receipt
UNKNOWN = MessageId(-1, -1)  # the broker's receipt for a duplicate, whose position it does not remember
WHOLE = 50  # lives of the broker between two reads of the whole topic; the other reads cover new messages only


class Once:
    """An actor. Its client runs in `run`, and resends messages without a receipt by itself."""

    def __init__(self) -> None:
        self.parts = {"once"}
        self.messages = Messages(TOPIC)
        self._open = trio.Event()
        self._producer: Producer[bytes] | None = None
        self._pending: dict[int, Receipt] = {}
        self._checked: Place = START

    async def run(self, broker: Broker) -> None:
        """Keep the client and the producer open until the task is canceled."""
        async with (
            client_of(broker) as client,
            client.create_producer(TOPIC, producer_name="once", batching_max_messages=5) as self._producer,
        ):
            self._open.set()
            await trio.sleep_forever()

    async def live(self, stage: Stage) -> None:
        async with stage.client() as client:
            await keep_all(client, TOPIC)
            await self._open.wait()
            for receipt in list(self._pending.values()):
                await receipt.wait()
            until = place_of(await self._send(b"").wait())
            while until < START:  # a duplicate, stored before a crash, has no position: publish one more
                until = place_of(await self._send(b"").wait())
            since = START if stage.number % WHOLE == 0 else self._checked
            behind = MessageId.earliest if since == START else MessageId(*since[:2], batch_index=since[2])
            self._check(await read(client, TOPIC, until, behind, start_message_id_inclusive=True), since)
            self._checked = until
            await stage.has_verified("once")
            while True:
                # A slow machine answers less than this publishes, and a producer refuses more than 1000 without answer.
                for _ in range(stage.chance.randrange(1, 9) if len(self._pending) < MOST_PENDING else 0):
                    self._send(CONTENT[: stage.chance.randrange(1, 500)])
                await stage.pause(0.04)

    def _check(self, found: list[Message[bytes]], since: Place) -> None:
        places = located(found)
        numbers = [number for _, number in places]
        first = numbers[0]
        assert numbers == list(range(first, self.messages.sent)), f"{TOPIC}: not each once, in order: {numbers}"
        assert since != START or first == 0, f"{TOPIC}: begins with {first}"
        self.messages.check(places, since)

    def _send(self, content: bytes) -> Receipt:
        assert self._producer is not None
        number = self.messages.next_number()
        receipt = self._pending[number] = self._producer.send_nowait(content, **numbered(number))
        receipt.then(partial(self._settled, number))
        return receipt

    def _settled(self, number: int, message_id: MessageId | None, error: PulsarError | None) -> None:
        self._pending.pop(number, None)
        if message_id is not None and message_id.entry != UNKNOWN.entry:
            self.messages.has(number, message_id)
