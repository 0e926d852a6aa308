"""/admin/v2/brokers: owned namespaces, and the shutdown of a broker."""

from __future__ import annotations

import pytest
import trio

from tests.broker.admin.rest import ADMIN, Rest
from tests.broker.wire import Bed, Type, Wire

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
