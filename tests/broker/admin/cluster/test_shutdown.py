"""/admin/v2/brokers: what one serves, and its end."""

from __future__ import annotations

import trio

from tests.broker.admin.rest import ADMIN, TOPICS, Rest, rest_of
from tests.broker.wire import Bed, Type, Wire, serving

BROKERS = f"{ADMIN}/brokers"
OWNED = f"{BROKERS}/standalone/localhost%3A8080/ownedNamespaces"
STATUS = {"broker_assignment": "shared", "is_controlled": False, "is_active": True}
OWN = "pulsar/localhost:8080/0x00000000_0xffffffff"


async def test_what_a_broker_serves(rest: Rest) -> None:
    assert await rest.get(OWNED) == {OWN: STATUS}
    await rest.done("PUT", f"{TOPICS}/t")
    bundle = (await rest.call("GET", "/lookup/v2/topic/persistent/public/default/t/bundle")).body.decode()
    served = {OWN: STATUS, f"public/default/{bundle}": STATUS}
    assert await rest.get(OWNED) == await rest.get(OWNED.replace("standalone", "nope")) == served
    absent = (404, "Broker id 'nope:1' not found in available brokers.")
    assert await rest.refused("GET", f"{BROKERS}/standalone/nope%3A1/ownedNamespaces") == absent


async def test_what_each_of_two_serves() -> None:
    async with serving(brokers=2) as bed:
        rest = rest_of(bed)
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
