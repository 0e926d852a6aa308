"""A load of compaction, which must keep the newest message of each key for all readers."""

from __future__ import annotations

import anyio

from pulsarium.client import MessageId

from .load import NUMBERS, Load, Site, burst, producing, until

KEYS = 50


class Compacted(Load):
    """A topic that is compacted again and again.

    A table view, and a reader at the end, must see the newest message of each key.
    """

    def __init__(self, site: Site) -> None:
        super().__init__(site, "compacted")
        self._topic = self.topic()
        self._account = self.account(ordered=True)
        self._newest: dict[str, int] = {}

    async def run(self) -> None:
        async with producing(self.site, self._topic) as producer, anyio.create_task_group() as tasks:
            tasks.start_soon(self._compact)
            number = 0
            async with self.site.client.create_table_view(self._topic) as view:
                while not self.site.stopping:
                    some = range(number, number + self.chance.randrange(1, 60))
                    number = some.stop
                    keys = {each: f"key-{self.chance.randrange(KEYS)}" for each in some}
                    await burst(
                        producer, self._account, [(n, 0, self.content(n), {"partition_key": keys[n]}) for n in some]
                    )
                    self._newest |= {key: each for each, key in keys.items()}
                    await self.site.pause(self.chance.random() * 0.3)

                async def is_equal() -> bool:
                    return {key: _number(view.get(key)) for key in view} == self._newest

                await until(is_equal, lambda: self._account.violate("a table view lacks the newest values"))
        await self._read()
        for each in range(number):
            self._account.saw(each)

    async def _compact(self) -> None:
        while not self.site.stopping:
            await self.site.pause(self.chance.uniform(2, 6))
            if (await self.site.admin.topics.compaction_status(self._topic))["status"] != "RUNNING":
                await self.site.admin.topics.trigger_compaction(self._topic)

    async def _read(self) -> None:
        found: dict[str, int] = {}
        async with self.site.client.create_reader(
            self._topic, start_message_id=MessageId.earliest, read_compacted=True
        ) as reader:
            while await reader.has_message_available():
                message = await reader.read_next()
                found[message.partition_key()] = NUMBERS.unpack_from(message.data())[0]
        if found != self._newest:
            wrong = {key: (found.get(key), newest) for key, newest in self._newest.items() if found.get(key) != newest}
            self._account.violate(f"compacted: found and expected of {wrong}")


def _number(value: bytes | None) -> int | None:
    return None if value is None else int(NUMBERS.unpack_from(value)[0])
