"""Rules: the frames that they select, how often they act, and the object that a test gets for each."""

from __future__ import annotations

from typing import Any, Literal

import pytest
import trio

from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.faults import (
    Action,
    Answer,
    Delay,
    Drop,
    FaultError,
    FaultRemoved,
    Faults,
    Stall,
    TappedFrame,
)
from pulsarium.broker.lab.faults.tapped import names_of
from pulsarium.broker.lab.faults.which import Occurrence
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import TOPIC, Bed, Failover, Type, Wire, plain, serving

A = plain(b"a")


@pytest.mark.parametrize(
    ("options", "struck"),
    [
        ({}, [0]),
        ({"skip": 2}, [2]),
        ({"count": None}, list(range(10))),
        ({"count": 3}, [0, 1, 2]),
        ({"every": 3, "count": None}, [0, 3, 6, 9]),
        ({"every": 3, "count": 2, "skip": 1}, [1, 4]),
        ({"probability": 0.0, "count": None}, []),
    ],
)
def test_skip_count_every_and_probability_select_the_frames(options: dict[str, Any], struck: list[int]) -> None:
    occurrence = Occurrence(**options)
    assert [nth for nth in range(10) if occurrence.strikes()] == struck


def test_chance_is_the_seeds() -> None:
    def rolled(seed: int | None) -> tuple[int, list[bool]]:
        occurrence = Occurrence(probability=0.3, count=None, seed=seed)
        return occurrence.seed, [occurrence.strikes() for _ in range(1000)]

    seed, first = rolled(None)
    assert rolled(seed) == (seed, first)
    assert rolled(5)[1] != rolled(6)[1]
    assert 200 < sum(rolled(5)[1]) < 400


def test_names_of_topics() -> None:
    assert set(names_of(TopicName.parse("non-persistent://a/b/c-partition-3"))) == {
        "non-persistent://a/b/c-partition-3",
        "a/b/c-partition-3",
        "c-partition-3",
        "non-persistent://a/b/c",
        "a/b/c",
        "c",
    }


FITTING = ["t", "t*", "*", "public/default/t", "persistent://*", TOPIC]
OTHERS = ["u", "T", "public/other/*", "non-persistent://*", ""]


@pytest.mark.parametrize("glob", FITTING + OTHERS)
async def test_topics_of_everything_a_producer_and_a_consumer_do(
    faults: Faults, bed: Bed, wire: Wire, glob: str
) -> None:
    seen = {
        name: faults.observe(name, topic=glob)
        for name in ("LOOKUP", "PRODUCER", "SEND", "SEND_RECEIPT", "SUBSCRIBE", "FLOW", "MESSAGE", "ACK", "SEEK")
    }
    seen["closed"] = faults.observe("CLOSE_CONSUMER", sender="broker", topic=glob)
    seen["closed producer"] = faults.observe("CLOSE_PRODUCER", sender="broker", topic=glob)
    await wire.ask(Type.LOOKUP, topic="t")
    await wire.producer("t")
    await wire.subscribe()
    await wire.flow()
    (position,) = await wire.publish(A)
    await wire.message()
    await wire.ack(position)
    await wire.request(Type.SEEK, consumer_id=0, message_publish_time=0)
    bed.broker.topics.unload(TopicName.parse(TOPIC))
    await wire.rest()
    expected = int(glob in FITTING)
    assert {name: rule.hits for name, rule in seen.items()} == dict.fromkeys(seen, expected) | {
        "closed": expected,  # by the seek; when the topic was unloaded, the consumer was already closed
    }


@pytest.mark.parametrize(
    ("glob", "expected"), [("public/default", 1), ("pub*", 1), ("public/other", 0), ("default", 0)]
)
async def test_a_namespace_selects_all_frames_of_its_topics(
    faults: Faults, wire: Wire, glob: str, expected: int
) -> None:
    names = ("LOOKUP", "PRODUCER", "SEND", "SEND_RECEIPT", "SUBSCRIBE", "FLOW", "MESSAGE", "GET_TOPICS_OF_NAMESPACE")
    seen = {name: faults.observe(name, namespace=glob) for name in names}
    await wire.ask(Type.LOOKUP, topic="t")
    await wire.producer("t")
    await wire.subscribe()
    await wire.flow()
    await wire.publish(A)
    await wire.message()
    await wire.ask(Type.GET_TOPICS_OF_NAMESPACE, namespace="public/default")
    assert {name: rule.hits for name, rule in seen.items()} == dict.fromkeys(seen, expected)


async def test_a_frame_without_a_topic_has_the_namespaces_of_its_connections_producers_and_consumers(
    faults: Faults, bed: Bed
) -> None:
    publishing, idle = await bed.connect(), await bed.connect()
    await publishing.producer("t")
    own, other = (faults.observe("PONG", sender="broker", namespace=each) for each in ("public/default", "public/x"))
    for wire in (publishing, idle):
        await wire.send(Type.PING)
        await wire.expect(Type.PONG)
    assert (own.hits, other.hits) == (1, 0)


@pytest.mark.parametrize("command", ["CONNECT", "CONNECTED", "TC_CLIENT_CONNECT_REQUEST"])
async def test_a_command_before_any_topic_has_no_namespace(faults: Faults, command: str) -> None:
    with pytest.raises(FaultError, match=f"{command} comes before its connection names a topic: select it without"):
        faults.observe(command, namespace="public/default")
    faults.observe(command, namespace="*")


async def test_a_rule_selects_clients_by_version_and_name(faults: Faults, bed: Bed) -> None:
    one, other = await bed.connect(client_version="cpp-3.5"), await bed.connect(client_version="java-4.2")
    await one.producer(producer_name="left")
    await other.producer(producer_name="right")
    await one.subscribe(name="first", consumer_name="c-1")
    await other.subscribe(name="second", consumer_name="c-2")
    cpp = faults.observe("SEND", client_version="cpp-*")
    right = faults.observe("SEND", producer="ri?ht")
    nobody = faults.observe("SEND", consumer="*c*")
    first = faults.observe("*", subscription="first")
    consumer = faults.observe("FLOW", consumer="c-2")
    connecting = faults.observe("CONNECT", client_version="go-*")
    await one.publish(A)
    await one.publish(A)
    await other.publish(A)
    await other.flow()
    await one.flow()
    await bed.connect(client_version="go-1")
    await one.rest()
    assert (cpp.hits, right.hits, nobody.hits, consumer.hits, connecting.hits) == (2, 1, 0, 1, 1)
    assert first.hits == 1 + 3  # FLOW and the three messages


async def test_a_rule_can_name_its_broker() -> None:
    async with serving(brokers=2) as bed:
        lab = bed.broker.cluster.attached(Lab)
        second = lab.faults.observe("PING", broker=1)
        await (await bed.connect()).alive()
        assert second.hits == 0
        await (await bed.connect(broker=1)).alive()
        assert second.hits == 1


async def test_a_predicate_sees_the_frame(faults: Faults, bed: Bed, sender: Wire) -> None:
    seen: list[TappedFrame] = []

    def has_b(frame: TappedFrame) -> bool:
        seen.append(frame)
        return b"bad" in frame.entry

    faults.add(Answer("NotAllowedError"), "SEND", predicate=has_b)
    await sender.publish(A)
    await sender.write(sender.sends(plain(b"bad")))
    assert (await sender.expect(Type.SEND_ERROR)).sequence_id == 1
    assert [(frame.name, frame.body.sequence_id, str(frame.topic)) for frame in seen] == [
        ("SEND", 0, TOPIC),
        ("SEND", 1, TOPIC),
    ]
    assert seen[0].session.address.startswith("/test:")


async def test_a_predicate_that_breaks_is_the_tests_own_trouble(
    faults: Faults, wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    rule = faults.add(Drop(), "PING", predicate=lambda frame: frame.body.nonsense)
    await wire.alive()
    assert rule.hits == 0
    assert "the predicate of a fault failed" in caplog.text
    caplog.clear()


async def test_a_predicate_may_remove_its_rule(faults: Faults, wire: Wire) -> None:
    def once(frame: TappedFrame) -> bool:
        faults.clear()
        return True

    faults.add(Drop(), "PING", predicate=once)
    await wire.send(Type.PING)
    await wire.alive()
    assert not wire.inbox
    assert faults.rules == []


@pytest.mark.parametrize(("action", "stage"), [(Stall(), "before"), (Delay(3600), "before"), (Drop(), "after")])
async def test_nothing_waits_for_a_rule_that_its_predicate_removed(
    faults: Faults, wire: Wire, action: Action, stage: Literal["before", "after"]
) -> None:
    def last(frame: TappedFrame) -> bool:
        rule.remove()
        return True

    rule = faults.add(action, "PING", predicate=last, sender="client", stage=stage)
    faults.observe("PING")
    await wire.alive()


async def test_a_predicate_may_remove_another_rule(faults: Faults, wire: Wire) -> None:
    def neither(frame: TappedFrame) -> bool:
        other.remove()
        return False

    faults.add(Drop(), "PING", predicate=neither)
    other = faults.add(Drop(), "PING")
    await wire.alive()
    assert (other.matched, other.hits) == (0, 0)


async def test_a_rule_applies_to_connections_that_were_open_before(faults: Faults, bed: Bed, wire: Wire) -> None:
    lab = bed.broker.cluster.attached(Lab)
    lab.captures.start()  # gives the connection a tap before the rule does
    await wire.producer()
    rule = faults.add(Drop(), "CLOSE_PRODUCER", sender="broker", topic="t")
    bed.broker.topics.unload(TopicName.parse(TOPIC))
    await wire.quiet()
    assert rule.hits == 1


async def test_either_side_may_be_meant(faults: Faults, bed: Bed, wire: Wire) -> None:
    both, client, broker = (faults.observe("PING", sender=who) for who in (None, "client", "broker"))
    await wire.alive()
    assert (both.hits, client.hits, broker.hits) == (1, 1, 0)
    await wire.expect(Type.PING, within=60)
    assert (both.hits, client.hits, broker.hits) == (2, 1, 1)


async def test_the_first_rule_acts_alone_and_observers_see_all(faults: Faults, wire: Wire) -> None:
    seen = faults.observe("PING", sender="client")
    first, second = faults.add(Drop(), "PING"), faults.add(Drop(), "PING")
    too = faults.observe("PING", sender="client")
    for hits in ((1, 0), (1, 1), (1, 1)):
        await wire.send(Type.PING)
        await wire.rest()
        assert (first.hits, second.hits) == hits
    assert seen.hits == too.hits == 3


async def test_everything_that_can_be_refused_is(faults: Faults, sender: Wire) -> None:
    rule = faults.add(Answer("NotAllowedError"), "*", count=None)
    await sender.flow()
    await sender.alive()
    assert (await sender.request(Type.LOOKUP, topic="t")).lookupTopicResponse.error
    await sender.write(sender.sends(A))
    await sender.expect(Type.SEND_ERROR)
    assert rule.hits == 2


async def test_waiting_for_hits(faults: Faults, wire: Wire) -> None:
    rule = faults.add(Drop(), "PING", count=3)
    done: list[int] = []

    async def wait(n: int) -> None:
        await rule.wait(n)
        done.append(n)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, 1)
        nursery.start_soon(wait, 3)
        await wire.send(Type.PING)
        await wire.quiet()
        assert done == [1]
        await wire.send(Type.PING)
        await wire.send(Type.PING)
    assert done == [1, 3]
    await rule.wait(3)
    with pytest.raises(FaultError, match="at most 3 times"):
        await rule.wait(4)


async def test_waiting_for_what_is_removed(faults: Faults, wire: Wire) -> None:
    rule = faults.observe("PING")
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def wait() -> None:
            with pytest.raises(FaultRemoved, match="removed after 1 of 2 hits"):
                await rule.wait(2)

        await wire.alive()
        rule.remove()
        rule.remove()


async def test_rules_by_number(faults: Faults) -> None:
    with faults.add(Drop(), "SEND") as one, faults.observe("SEND") as two:
        assert (one.id, two.id) == (1, 2)
        assert faults.rules == [one, two]
        assert faults.find(2) is two
    assert faults.rules == []
    assert faults.find(2) is None
    assert faults.add(Drop(), "SEND").id == 3


async def test_failover_tells_of_consumers_that_are_known(faults: Faults, bed: Bed, wire: Wire) -> None:
    told = faults.observe("ACTIVE_CONSUMER_CHANGE", subscription="sub", topic="t")
    await wire.subscribe(type=Failover, consumer_name="b")
    await wire.write(wire.numbered(Type.SUBSCRIBE, topic="t", subscription="sub", subType=Failover, consumer_id=1))
    changes = [each for each in await wire.rest(5) if each.command.type == Type.ACTIVE_CONSUMER_CHANGE]
    assert changes
    assert told.hits == len(changes)
