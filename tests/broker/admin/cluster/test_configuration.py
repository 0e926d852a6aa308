"""/admin/v2/brokers/configuration."""

from __future__ import annotations

from pathlib import Path

import trio

from pulsarium.broker.config import Config
from tests.broker.admin.rest import ADMIN, NAMESPACES, TOPICS, Rest, rest_of
from tests.broker.admin.steps import Reason, Step, play
from tests.broker.wire import serving

URL = f"{ADMIN}/brokers/configuration"
NOT_SET = {"reason": "Can't update non-dynamic configuration"}
NOT_DELETED = {"reason": "Can't delete non-dynamic configuration"}
FORCED = f"DELETE {NAMESPACES}/public/default?force=true"


async def test_names(rest: Rest) -> None:
    names = await rest.get(URL)
    assert len(names) == len(set(names))
    assert names[0] == "loadBalancerSheddingGracePeriodMinutes"
    assert {"maxConcurrentLookupRequest", "forceDeleteNamespaceAllowed", "superUserRoles"} <= set(names)


async def test_a_setting_that_is_only_kept(rest: Rest) -> None:
    await play(
        rest,
        Step(f"GET {URL}/values", 200, {}),
        Step(f"POST {URL}/maxConcurrentLookupRequest/40000", 200),
        Step(f"GET {URL}/values", 200, {"maxConcurrentLookupRequest": "40000"}),
        Step(f"POST {URL}/maxConcurrentLookupRequest/abc", 200),
        Step(f"DELETE {URL}/maxConcurrentLookupRequest", 200),
        Step(f"DELETE {URL}/maxConcurrentLookupRequest", 200),
        Step(f"GET {URL}/values", 200, {}),
    )


async def test_settings_that_do_not_change(rest: Rest) -> None:
    await play(
        rest,
        Step(f"POST {URL}/maxUnackedMessagesPerConsumer/1", 412, NOT_SET),
        Step(f"POST {URL}/brokerServicePort/1", 412, NOT_SET),
        Step(f"POST {URL}/noSuch/1", 412, NOT_SET),
        Step(f"DELETE {URL}/noSuch", 412, NOT_DELETED),
    )


async def test_one_that_is_heeded_holds_at_once_and_goes() -> None:
    async with serving(Config()) as bed:
        rest = rest_of(bed)
        forbidden = Reason("Broker doesn't allow forced deletion of namespaces")
        await rest.done("PUT", f"{TOPICS}/t")
        await play(
            rest,
            Step(FORCED, 405, forbidden),
            Step(f"POST {URL}/forceDeleteNamespaceAllowed/true", 200),
            Step(f"POST {URL}/forceDeleteNamespaceAllowed/maybe", 200),  # kept, and changes nothing
            Step(f"GET {URL}/values", 200, {"forceDeleteNamespaceAllowed": "maybe"}),
            Step(FORCED, 204),
            Step(f"PUT {NAMESPACES}/public/default", 204),
            Step(f"DELETE {URL}/forceDeleteNamespaceAllowed", 200),
            Step(FORCED, 405, forbidden),
        )
        runtime = await rest.get(f"{URL}/runtime")
        assert runtime["forceDeleteNamespaceAllowed"] == "false"


def test_they_outlive_the_broker(tmp_path: Path) -> None:
    async def first() -> None:
        async with serving(Config(), data=tmp_path) as bed:
            await play(rest_of(bed), Step(f"POST {URL}/defaultNumberOfNamespaceBundles/2", 200))

    async def second() -> None:
        config = Config()
        async with serving(config, data=tmp_path) as bed:
            await play(rest_of(bed), Step(f"GET {URL}/values", 200, {"defaultNumberOfNamespaceBundles": "2"}))
            assert config.defaultNumberOfNamespaceBundles == 2
            await play(rest_of(bed), Step(f"DELETE {URL}/defaultNumberOfNamespaceBundles", 200))
            assert config.defaultNumberOfNamespaceBundles == 4

    trio.run(first)
    trio.run(second)


async def test_where_things_are_kept(rest: Rest) -> None:
    found = await rest.get(f"{ADMIN}/brokers/internal-configuration")
    assert list(found) == [
        "zookeeperServers",
        "configurationStoreServers",
        "metadataStoreUrl",
        "configurationMetadataStoreUrl",
        "ledgersRootPath",
    ]
    assert found["ledgersRootPath"] == "/ledgers"
