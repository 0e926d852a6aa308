"""/admin/v2/brokers/configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsarium.broker.config import Config
from tests.broker.admin.rest import ADMIN, NAMESPACES, TOPICS, Rest, rest_of
from tests.broker.admin.steps import Reason, Step, play
from tests.broker.wire import serving

URL = f"{ADMIN}/brokers/configuration"
FORCED = f"DELETE {NAMESPACES}/public/default?force=true"


@pytest.mark.serving(Config())
async def test_a_dynamic_setting_holds_at_once_and_goes(rest: Rest) -> None:
    forbidden = Reason("Broker doesn't allow forced deletion of namespaces")
    await rest.done("PUT", f"{TOPICS}/t")
    await play(
        rest,
        Step(FORCED, 405, forbidden),
        Step(f"POST {URL}/forceDeleteNamespaceAllowed/true", 200),
        Step(f"POST {URL}/forceDeleteNamespaceAllowed/maybe", 200),  # stored, but without effect
        Step(f"GET {URL}/values", 200, {"forceDeleteNamespaceAllowed": "maybe"}),
        Step(FORCED, 204),
        Step(f"PUT {NAMESPACES}/public/default", 204),
        Step(f"DELETE {URL}/forceDeleteNamespaceAllowed", 200),
        Step(FORCED, 405, forbidden),
    )
    runtime = await rest.get(f"{URL}/runtime")
    assert runtime["forceDeleteNamespaceAllowed"] == "false"


async def test_settings_outlive_the_broker(tmp_path: Path) -> None:
    async with serving(Config(), data=tmp_path) as bed:
        await play(rest_of(bed), Step(f"POST {URL}/defaultNumberOfNamespaceBundles/2", 200))
    config = Config()
    async with serving(config, data=tmp_path) as bed:
        await play(rest_of(bed), Step(f"GET {URL}/values", 200, {"defaultNumberOfNamespaceBundles": "2"}))
        assert config.defaultNumberOfNamespaceBundles == 2
        await play(rest_of(bed), Step(f"DELETE {URL}/defaultNumberOfNamespaceBundles", 200))
        assert config.defaultNumberOfNamespaceBundles == 4
