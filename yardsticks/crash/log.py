"""Use one topic with two producers and five subscriptions, one of which seeks."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import trio

from pulsarium.client import Client, Consumer, ConsumerType, InitialPosition, Message, MessageId, PulsarError

from .journal import Acknowledged, Messages, Place, behind, numbered, place_of
from .stage import CONTENT, Stage, fence, keep_all, located, read
from .topics import Lives

TYPES = {
    "shared": ConsumerType.Shared,
    "keys": ConsumerType.KeyShared,
    "exclusive": ConsumerType.Exclusive,
    "failover": ConsumerType.Failover,
    "seeks": ConsumerType.Exclusive,
}
CUMULATIVE = ("exclusive", "failover")
WAITING = 40  # unacknowledged messages at which a consumer acknowledges some before it receives more


class Log:
    """An actor with several clients: two that publish, and one for each subscription."""

    def __init__(self, lives: Lives) -> None:
        self._lives = lives
        self.parts = {f"log {name}" for name in TYPES}
        self._begin()

    def _begin(self) -> None:
        self.messages = Messages(self._lives.next("log"))
        self._subscriptions = {name: Acknowledged(f"{self.messages.topic} {name}") for name in TYPES}
        # Times in milliseconds since the epoch at which no client published, each with the next message's position.
        self._quiet: list[tuple[int, Place]] = []

    async def live(self, stage: Stage) -> None:
        if self._lives.is_over(self.messages):
            self._begin()
        async with stage.client() as client:
            quiet = time.time_ns() // 1_000_000
            await keep_all(client, self.messages.topic)
            until = await fence(client, self.messages)
            self._quiet.append((quiet, until))
            self.messages.check(located(await read(client, self.messages.topic, until)))
        async with trio.open_nursery() as nursery:
            for name in TYPES:
                nursery.start_soon(self._consume, stage, name, until)
            for batched in (False, True):
                nursery.start_soon(self._publish, stage, batched)

    async def _publish(self, stage: Stage, batched: bool) -> None:
        async with stage.client() as client:
            await publish(stage, client, self.messages, batched)

    async def _consume(self, stage: Stage, name: str, until: Place) -> None:
        acknowledged = self._subscriptions[name]
        async with (
            stage.client() as client,
            client.subscribe(self.messages.topic, name, **consuming(TYPES[name])) as consumer,
        ):
            waiting = await verified(consumer, acknowledged, self.messages, until)
            await stage.has_verified(f"log {name}")
            if name in CUMULATIVE:
                await acknowledge_cumulatively(stage, consumer, acknowledged, waiting)
            else:
                seek = partial(self._seek, stage, consumer, acknowledged) if name == "seeks" else None
                await acknowledge(stage, consumer, acknowledged, waiting, seek)

    async def _seek(self, stage: Stage, consumer: Consumer[bytes], acknowledged: Acknowledged) -> None:
        target: MessageId | int
        if stage.chance.random() < 0.5:
            target, place = stage.chance.choice(self._quiet)
        else:
            entry = stage.chance.choice(self.messages.places())
            target, place = MessageId(*entry[:2]), (*entry[:2], -1)
        acknowledged.seeking = place
        await consumer.seek(target)
        acknowledged.moved(place)
        stage.confirms()


def consuming(consumer_type: ConsumerType) -> dict[str, Any]:
    """Return the options of a consumer that waits for the broker's confirmation of its acknowledgements."""
    return {
        "consumer_type": consumer_type,
        "initial_position": InitialPosition.Earliest,
        "ack_receipt_enabled": True,
        "batch_index_ack_enabled": True,
        "start_message_id_inclusive": True,
    }


async def verified(
    consumer: Consumer[bytes], acknowledged: Acknowledged, messages: Messages, until: Place
) -> list[Message[bytes]]:
    """Receive and check all messages that the subscription has not acknowledged, up to the unacknowledged `until`."""
    came = await received(consumer, until)
    stored = [place for place in messages.places() if place <= until]
    acknowledged.check(stored, [place_of(each.message_id()) for each in came])
    return came


async def received(consumer: Consumer[bytes], until: Place) -> list[Message[bytes]]:
    """Receive messages up to the one at `until`, which must not be acknowledged yet."""
    came: list[Message[bytes]] = []
    while not came or place_of(came[-1].message_id()) != until:
        came.append(await consumer.receive())
    return came


async def publish(stage: Stage, client: Client, messages: Messages, batched: bool, keys: int = 50) -> None:
    """Publish a few messages at a time, and then wait for a short while or for the receipt of the last one."""
    chance = stage.chance

    def settled(number: int, message_id: MessageId | None, error: PulsarError | None) -> None:
        if message_id is not None:
            messages.has(number, message_id)
            stage.confirms()

    async with client.create_producer(
        messages.topic,
        batching_enabled=batched,
        batching_max_messages=chance.randrange(2, 20),
        batching_max_publish_delay=0.002,
    ) as producer:
        await stage.loading.wait()
        while True:
            receipts = []
            for _ in range(chance.randrange(1, 9)):
                number = messages.next_number()
                content = CONTENT[: chance.randrange(1, 2000)]
                key = f"k{chance.randrange(keys)}"
                receipts.append(producer.send_nowait(content, partition_key=key, **numbered(number)))
                receipts[-1].then(partial(settled, number))
            if chance.random() < 0.3:
                await receipts[-1].wait()
            else:
                await stage.pause(0.02)


async def acknowledge(
    stage: Stage,
    consumer: Consumer[bytes],
    acknowledged: Acknowledged,
    waiting: list[Message[bytes]],
    seek: Callable[[], Any] | None,
) -> None:
    """Acknowledge messages in random order, up to five at a time, and seek now and then."""
    chance = stage.chance
    while True:
        if seek is not None and chance.random() < 0.05:
            await seek()
            waiting.clear()
        if not waiting or (len(waiting) < WAITING and chance.random() < 0.7):
            waiting.append(await consumer.receive())
            continue
        chosen = [waiting.pop(chance.randrange(len(waiting))) for _ in range(chance.randrange(1, 6)) if waiting]
        await acknowledge_these(consumer, acknowledged, chosen)
        stage.confirms()


async def acknowledge_these(
    consumer: Consumer[bytes], acknowledged: Acknowledged, messages: list[Message[bytes]]
) -> None:
    """Acknowledge several messages with one call, and record that the broker confirmed it."""
    places = {place_of(each.message_id()) for each in messages}
    acknowledged.asked |= places
    await consumer.acknowledge(messages)
    acknowledged.confirm(places)


async def acknowledge_cumulatively(
    stage: Stage, consumer: Consumer[bytes], acknowledged: Acknowledged, waiting: list[Message[bytes]]
) -> None:
    """Acknowledge cumulatively, each time up to a random one of the received messages."""
    while True:
        while len(waiting) < stage.chance.randrange(1, WAITING):
            waiting.append(await consumer.receive())
        upto = stage.chance.randrange(len(waiting))
        place = behind(place_of(waiting[upto].message_id()))
        acknowledged.asked_since = place
        await consumer.acknowledge_cumulative(waiting[upto])
        acknowledged.confirm_since(place)
        stage.confirms()
        del waiting[: upto + 1]
