"""Topics that are created and deleted over REST, and policies that change."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from pulsarium.client import Client
from pulsarium.rest.policies import MESSAGE_TTL

from .journal import Registers
from .stage import Stage
from .topics import Lives

NAMESPACE = "public/settings"
TOPICS = [f"persistent://{NAMESPACE}/t{number}" for number in range(5)]


class Settings:
    """An actor that changes topics and policies over REST, and verifies them after a crash."""

    def __init__(self, lives: Lives) -> None:
        self.parts = {"settings"}
        self._lives = lives
        self._registers = Registers()

    async def live(self, stage: Stage) -> None:
        async with stage.client() as client:
            await self._verify(client)
            await self._lives.tidy(client)
            await stage.has_verified("settings")
            while True:
                await self._change(stage, client)
                stage.confirms()
                await stage.pause()

    async def _verify(self, client: Client) -> None:
        admin, check = client.admin, self._registers.check
        there = await admin.topics.get_list(NAMESPACE)
        for topic in TOPICS:
            check(topic, True if topic in there else None)
            if topic in there:
                check(f"{topic} ttl", await admin.topic_policies[MESSAGE_TTL].get(topic))
                check(f"{topic} color", (await admin.topics.get_properties(topic) or {}).get("color"))
        check("ttl", await admin.namespace_policies[MESSAGE_TTL].get(NAMESPACE))
        check("color", (await admin.namespaces.get_properties(NAMESPACE)).get("color"))

    async def _change(self, stage: Stage, client: Client) -> None:
        topics, namespaces, chance = client.admin.topics, client.admin.namespaces, stage.chance
        value = chance.randrange(1, 1000)
        topic = chance.choice((*TOPICS, None))
        if topic is None:
            set_ttl = client.admin.namespace_policies[MESSAGE_TTL].set(NAMESPACE, value)
            await self._set("ttl", value, set_ttl)
            await self._set("color", str(value), namespaces.set_property(NAMESPACE, "color", str(value)))
        elif not self._registers.known(topic):
            await self._set(topic, True, topics.create_non_partitioned_topic(topic))
        elif chance.random() < 0.3:
            for name in (f"{topic} ttl", f"{topic} color"):
                self._registers.setting(name, None)
            await self._set(topic, None, topics.delete(topic))
            for name in (f"{topic} ttl", f"{topic} color"):
                self._registers.is_set(name, None)
        elif chance.random() < 0.5:
            await self._set(f"{topic} ttl", value, client.admin.topic_policies[MESSAGE_TTL].set(topic, value))
        else:
            await self._set(f"{topic} color", str(value), topics.update_properties(topic, {"color": str(value)}))

    async def _set(self, name: str, value: Any, call: Awaitable[None]) -> None:
        self._registers.setting(name, value)
        await call
        self._registers.is_set(name, value)
