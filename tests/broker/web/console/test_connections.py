"""The page of all connections."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.faults.actions import Drop
from tests.broker.web.admin.rest import TOPICS, Rest
from tests.broker.wire import TOPIC, Bed, Shared, Type, Wire, plain

CONNECTIONS = "/pulsarium/connections"


async def one(rest: Rest) -> dict[str, Any]:
    (found,) = (await rest.get(CONNECTIONS))["connections"]
    assert isinstance(found, dict)
    return found


async def test_a_connection_shows_its_client_and_what_it_does(rest: Rest, bed: Bed) -> None:
    wire = await bed.connect(client_version="Pulsar-Test-v1")
    await rest.done("PUT", f"{TOPICS}/p/partitions", 2)
    await wire.producer("persistent://public/default/p-partition-0")
    await wire.subscribe(type=Shared)
    await wire.subscribe(type=Shared, name="other", consumer_id=1)
    found = await one(rest)
    assert (found["client"], found["protocolVersion"], found["kind"]) == ("Pulsar-Test-v1", 21, "binary")
    assert (found["producers"], found["consumers"], found["topicCount"]) == (1, 2, 2)
    assert found["topics"] == ["persistent://public/default/p", TOPIC]
    assert (found["role"], found["tls"], found["paused"]) == (None, False, None)
    assert found["sinceMs"] <= bed.broker.clock.now_ms()


async def test_a_connection_counts_its_bytes(rest: Rest, wire: Wire) -> None:
    before = await one(rest)
    await wire.send(Type.PING)
    await wire.expect(Type.PONG)
    after = await one(rest)
    assert after["inBytes"] - before["inBytes"] == after["outBytes"] - before["outBytes"] > 0


async def test_many_connections_are_counted_and_filtered(rest: Rest, bed: Bed) -> None:
    for number in range(3):
        wire = await bed.connect(client_version=f"client-{number}")
        await wire.producer(f"topic-{number}")
    assert (await rest.get(CONNECTIONS))["count"] == 3
    for part in ("client-1", "topic-1", "test:2"):
        value = await rest.get(f"{CONNECTIONS}?filter={part}")
        assert (value["count"], [each["client"] for each in value["connections"]]) == (1, ["client-1"])


async def test_a_connection_that_a_limit_pauses_says_so(rest: Rest, sender: Wire, bed: Bed) -> None:
    (session,) = bed.broker.sessions
    session.producers[0].client.pause_reading()
    assert (await one(rest))["paused"] == "a limit of the rate or of memory"
    session.producers[0].client.resume_reading()
    assert (await one(rest))["paused"] is None


async def test_the_hits_of_faults_are_counted_by_connection(rest: Rest, sender: Wire, bed: Bed) -> None:
    bed.broker.cluster.attached(Lab).faults.add(Drop(), "SEND", count=2)
    await sender.write(sender.sends(plain(b"1"), plain(b"2"), plain(b"3")))
    await sender.receipts(1)
    await bed.connect()
    assert [each["faultHits"] for each in (await rest.get(CONNECTIONS))["connections"]] == [2, 0]


async def test_the_findings_of_the_linter_are_counted_by_connection(rest: Rest, bed: Bed) -> None:
    bed.broker.cluster.attached(Lab).linter.start()
    wire = await bed.connect()
    await wire.subscribe(type=Shared)
    for _ in range(2):
        await wire.flow(2**31 - 1)
    await wire.alive()
    assert (await one(rest))["findings"] == 1
