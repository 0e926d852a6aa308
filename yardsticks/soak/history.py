"""A load on a topic with retention, with readers from its beginning and a subscription that seeks."""

from __future__ import annotations

import anyio
import anyio.abc

from pulsarium.client import InitialPosition, MessageId

from .load import NUMBERS, Load, Site, burst, producing

KEPT = "soak/kept"  # a namespace with retention
SUBSCRIPTION = "soak"
READ = 200


class History(Load):
    """Readers and a subscription that must receive every message behind the position where they begin."""

    def __init__(self, site: Site) -> None:
        super().__init__(site, "history")
        self._topic = self.topic(KEPT)
        self._account = self.account()

    async def run(self) -> None:
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._seek)
            tasks.start_soon(self._read)
            number = 0
            async with producing(self.site, self._topic, batching_max_messages=20) as producer:
                while not self.site.stopping:
                    some = range(number, number + self.chance.randrange(1, 60))
                    number = some.stop
                    await burst(producer, self._account, [(each, 0, self.content(each), {}) for each in some])
                    await self.site.pause(self.chance.random() * 0.3)
            await self.settled(self._account, self._topic, SUBSCRIPTION)
            self.is_over = True

    async def _read(self) -> None:
        while not self.site.stopping:
            last = None
            async with self.site.client.create_reader(self._topic, start_message_id=MessageId.earliest) as reader:
                for _ in range(READ):
                    if not await reader.has_message_available():
                        break
                    number = NUMBERS.unpack_from((await reader.read_next()).data())[0]
                    if last is not None and number != last + 1:
                        self._account.violate(f"a reader saw {number} behind {last}")
                    last = number
            await self.site.pause(self.chance.random())

    async def _seek(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Consume messages, and sometimes seek back by a few. Never seek forward, which would skip messages."""
        past: list[tuple[int, MessageId]] = []
        last = -1
        async with self.site.client.subscribe(
            self._topic, SUBSCRIPTION, initial_position=InitialPosition.Earliest
        ) as consumer:
            task_status.started()
            async for message in self.arrivals(consumer):
                number = NUMBERS.unpack_from(message.data())[0]
                if number != last + 1:
                    self._account.violate(f"{number} came where {last + 1} was next")
                last = number
                self._account.saw(number)
                await consumer.acknowledge(message)
                past = [*past[-50:], (number, message.message_id())]
                if not self.site.stopping and self.chance.random() < 0.002:
                    last, target = self.chance.choice(past)
                    past.clear()
                    await consumer.seek(target)
