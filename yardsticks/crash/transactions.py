"""Transactions that publish and acknowledge on one topic, and take effect whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass, field

from pulsarium.client import Client, Consumer, ConsumerType, Message, Producer, TxnId
from pulsarium.client.errors import TransactionNotFound

from .journal import Acknowledged, Messages, Place, numbered, place_of
from .log import consuming, verified
from .stage import CONTENT, Stage, fence, keep_all, located, read
from .topics import Lives

LIFETIME = 400  # messages
TIMEOUT = 3600.0  # seconds; no transaction times out during a run


@dataclass
class Open:
    """A transaction whose end the broker has not confirmed."""

    id: TxnId
    commit: bool | None = None
    """True after the client asked to commit the transaction, False after it asked to abort, None before."""
    published: dict[int, Place] = field(default_factory=dict)
    acknowledged: set[Place] = field(default_factory=set)


class Transactions:
    """An actor that publishes and acknowledges in transactions."""

    def __init__(self, lives: Lives) -> None:
        self._lives = lives
        self.parts = {"transactions"}
        self._open: list[Open] = []
        self._begin()

    def _begin(self) -> None:
        self.messages = Messages(self._lives.next("txn"))
        self._moves = Acknowledged(f"{self.messages.topic} moves")

    async def live(self, stage: Stage) -> None:
        async with stage.client() as client:
            for each in list(self._open):
                await self._end(client, each)
            if self._lives.is_over(self.messages, LIFETIME):
                self._begin()
            topic = self.messages.topic
            await keep_all(client, self.messages.topic)
            until = await fence(client, self.messages)
            self.messages.check(located(await read(client, topic, until)))
            batched = stage.chance.random() < 0.5
            async with (
                client.subscribe(topic, "moves", **consuming(ConsumerType.Shared)) as consumer,
                client.create_producer(topic, batching_enabled=batched) as producer,
            ):
                came = await verified(consumer, self._moves, self.messages, until)
                waiting = {place_of(each.message_id()): each for each in came}
                await stage.has_verified("transactions")
                while True:
                    await self._one(stage, client, producer, consumer, waiting)

    async def _one(
        self,
        stage: Stage,
        client: Client,
        producer: Producer[bytes],
        consumer: Consumer[bytes],
        waiting: dict[Place, Message[bytes]],
    ) -> None:
        chance = stage.chance
        txn = await client.begin_transaction(timeout=TIMEOUT)
        mine = Open(txn.id())
        self._open.append(mine)
        receipts = {}
        for _ in range(chance.randrange(1, 5)):
            number = self.messages.next_number()
            mine.published[number] = (-1, -1, -1)
            receipts[number] = await producer.submit(CONTENT[:100], txn=txn, **numbered(number))
        await producer.flush()
        for number, receipt in receipts.items():
            mine.published[number] = place_of(await receipt.wait())
        while waiting and len(mine.acknowledged) < 5:
            place = chance.choice(list(waiting))
            mine.acknowledged.add(place)
            await consumer.acknowledge(waiting.pop(place), txn=txn)
        # Without an acknowledgement, an abort redelivers nothing, and the `receive` below would wait forever.
        mine.commit = not mine.acknowledged or chance.random() < 0.7
        await (txn.commit() if mine.commit else txn.abort())
        self._ended(mine)
        stage.confirms()
        self._keep(await consumer.receive(), waiting)
        await stage.pause()

    def _keep(self, message: Message[bytes], waiting: dict[Place, Message[bytes]]) -> None:
        """Add a message to the waiting ones, unless a transaction has acknowledged it.

        An abort redelivers whole entries, as the real broker does. So a message of a batch can come a second time,
        while the first copy waits or after a transaction has acknowledged that one.
        """
        place = place_of(message.message_id())
        if place not in self._moves.done:
            waiting[place] = message

    async def _end(self, client: Client, left: Open) -> None:
        """End a transaction that a crash left open: commit it if the client had asked to, and abort it otherwise."""
        while (coordinator := await client._core.coordinators.next()).number != left.id.most:
            pass
        never_told, left.commit = left.commit is None, left.commit is True  # recorded first: the answer may not come
        try:
            await coordinator.end(left.id, commit=left.commit)
        except TransactionNotFound:
            assert not never_told, f"{left.id} was open, and the broker has lost it"
        self._ended(left)

    def _ended(self, txn: Open) -> None:
        self._open.remove(txn)
        if txn.commit:
            self.messages.receipts.update(txn.published)
            self._moves.confirm(txn.acknowledged)
        else:
            self.messages.lost.update(txn.published)
