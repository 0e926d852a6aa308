"""Properties of topics and subscriptions."""

from __future__ import annotations

from pathlib import Path

from pulsarium.broker.config import Config
from pulsarium.broker.config.keys import APPEND_INDEX
from tests.broker.admin.rest import TOPICS, rest_of
from tests.broker.wire import serving

URL = f"{TOPICS}/t/properties"
SUBSCRIPTION = f"{TOPICS}/t/subscription/s"


async def test_an_interceptor_keeps_one_too() -> None:
    async with serving(Config(brokerEntryMetadataInterceptors=(APPEND_INDEX,))) as bed:
        rest = rest_of(bed)
        await rest.done("PUT", f"{TOPICS}/t", {"a": "1"})
        assert await rest.get(URL) == {"a": "1", "index": "-1"}


async def test_they_survive_a_restart(tmp_path: Path) -> None:
    async with serving(data=tmp_path) as bed:
        await rest_of(bed).done("PUT", f"{TOPICS}/t", {"a": "not a number"})
    async with serving(data=tmp_path) as bed:
        assert await rest_of(bed).get(URL) == {"a": "not a number"}
