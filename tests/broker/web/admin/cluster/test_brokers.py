"""/admin/v2/brokers: owned namespaces, and the shutdown of a broker. /admin/v2/brokers/configuration."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from pulsarium.broker.config import Config, profile_of
from tests.broker.web.admin.rest import ADMIN, NAMESPACES, TOPICS, Rest, rest_of
from tests.broker.web.admin.steps import Reason, Step, play
from tests.broker.wire import Bed, Type, Wire, serving

BROKERS = f"{ADMIN}/brokers"
OWNED = f"{BROKERS}/standalone/localhost%3A8080/ownedNamespaces"
STATUS = {"broker_assignment": "shared", "is_controlled": False, "is_active": True}
OWN = "pulsar/localhost:8080/0x00000000_0xffffffff"


@pytest.mark.serving(brokers=2)
async def test_each_of_two_brokers_owns_its_namespaces(bed: Bed, rest: Rest) -> None:
    bed.broker.cluster.ownership.assign("public/default", "0x00000000_0x40000000", bed.brokers[1])
    assert list(await rest.get(OWNED)) == [OWN]
    other = f"{BROKERS}/standalone/localhost%3A8081/ownedNamespaces"
    bundle = "public/default/0x00000000_0x40000000"
    assert list(await rest.get(other)) == [OWN.replace("8080", "8081"), bundle]


async def test_a_broker_is_asked_to_end(rest: Rest, bed: Bed, wire: Wire) -> None:
    ended = trio.Event()
    bed.broker.on_shutdown = ended.set
    await wire.producer()
    await rest.done("POST", f"{BROKERS}/shutdown?maxConcurrentUnloadPerSec=10&forcedTerminateTopic=true")
    await wire.expect(Type.CLOSE_PRODUCER)
    with trio.fail_after(1):
        await ended.wait()


async def test_the_running_configuration_is_shown_as_texts(rest: Rest) -> None:
    runtime = await rest.get(f"{BROKERS}/configuration/runtime")
    assert runtime["maxMessageSize"] == "5242880"
    assert runtime["allowAutoTopicCreation"] == "true"
    assert runtime["advertisedAddress"] == ""
    assert runtime["subscriptionTypesEnabled"] == "Exclusive,Failover,Key_Shared,Shared"
    assert all(isinstance(value, str) for value in runtime.values())


@pytest.mark.parametrize(("pip", "shown"), [((), None), ((490,), "false")])
async def test_the_keys_of_a_proposal_are_shown_while_it_is_on(pip: tuple[int, ...], shown: str | None) -> None:
    async with serving(profile=profile_of("pip", pip=pip)) as bed:
        runtime = await rest_of(bed).get(f"{BROKERS}/configuration/runtime")
    assert (runtime.get("tokenRequireKid"), "tokenValidationKeysJwks" in runtime) == (shown, False)


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
    async with serving(Config(), data=tmp_path) as bed:
        config = bed.broker.config
        await play(rest_of(bed), Step(f"GET {URL}/values", 200, {"defaultNumberOfNamespaceBundles": "2"}))
        assert config.defaultNumberOfNamespaceBundles == 2
        await play(rest_of(bed), Step(f"DELETE {URL}/defaultNumberOfNamespaceBundles", 200))
        assert config.defaultNumberOfNamespaceBundles == 4
