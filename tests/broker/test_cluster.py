"""Brokers of one cluster: lookup, ownership, transfer of bundles, and the end of a broker."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pulsarium.broker.cluster import LEDGER_COUNTER, SKIPPED_NUMBERS, START_COUNTER
from pulsarium.broker.config import Config
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.held import HeldStorage
from tests.broker.wire import TOPIC, Bed, Type, Wire, plain, serving

Lookup = pb.CommandLookupTopicResponse
NAME = TopicName.parse(TOPIC)


@pytest.fixture
async def three() -> AsyncIterator[Bed]:
    async with serving(brokers=3) as bed:
        for index, broker in enumerate(bed.brokers):
            broker.listening(6650 + index, 8080 + index)
        yield bed


async def test_numbers_that_lost_commits_may_have_given_away_are_skipped_for_good() -> None:
    """Clients know the ids of lost messages, and names of producers, so these must never mean anything else."""
    store = HeldStorage()
    store.metadata = {LEDGER_COUNTER: b"7", START_COUNTER: b"3"}
    store.has_lost_commits = True
    async with serving(storage=store) as bed:
        assert bed.broker.cluster.starts_before == 3 + SKIPPED_NUMBERS
    assert int(store.metadata[LEDGER_COUNTER]) >= 7 + SKIPPED_NUMBERS
    store.has_lost_commits = False
    async with serving(storage=store) as bed:
        assert bed.broker.cluster.next_ledger_id() >= 7 + SKIPPED_NUMBERS
        assert bed.broker.cluster.starts_before == 4 + SKIPPED_NUMBERS


async def look_up(wire: Wire, *, authoritative: bool = False) -> Lookup:
    answer: Lookup = await wire.ask(Type.LOOKUP, topic=TOPIC, authoritative=authoritative)
    return answer


async def serve_by(bed: Bed, index: int) -> Wire:
    """Let a broker serve the topic, and return a connection to it."""
    wire = await bed.connect(broker=index)
    assert (await look_up(wire, authoritative=True)).response == Lookup.Connect
    return wire


async def test_a_lookup_goes_through_the_leader(three: Bed) -> None:
    for_somebody_else = "public/default", "elsewhere"
    three.broker.cluster.ownership.assign(*for_somebody_else, three.brokers[0])
    third = await three.connect(broker=2)
    answer = await look_up(third)
    assert (answer.response, answer.brokerServiceUrl) == (Lookup.Redirect, "pulsar://localhost:6650")
    assert not answer.authoritative
    leader = await three.connect()
    answer = await look_up(leader)
    assert (answer.response, answer.brokerServiceUrl) == (Lookup.Redirect, "pulsar://localhost:6651")
    assert answer.authoritative
    second = await three.connect(broker=1)
    answer = await look_up(second, authoritative=True)
    assert (answer.response, answer.brokerServiceUrl) == (Lookup.Connect, "pulsar://localhost:6651")
    assert not answer.proxy_through_service_url
    answer = await look_up(third)
    assert (answer.response, answer.brokerServiceUrl) == (Lookup.Connect, "pulsar://localhost:6651")


async def test_another_broker_does_not_serve_the_topic(three: Bed) -> None:
    await serve_by(three, 1)
    wire = await three.connect()
    code, text = await wire.refused(Type.PRODUCER, topic=TOPIC, producer_id=0)
    assert code == pb.ServiceNotReady
    bundle = "public/default/0x80000000_0xc0000000"
    assert text.startswith(
        f"Namespace bundle ({bundle}) for topic ({TOPIC}) not served by this instance:localhost:8080"
    )


async def test_clients_are_told_where_their_topic_went(three: Bed) -> None:
    wire = await serve_by(three, 1)
    await wire.producer()
    await wire.subscribe()
    namespace, bundle = three.broker.cluster.ownership.bundles_of(three.brokers[1])[0]
    await three.broker.cluster.unload([(namespace, bundle)], three.brokers[2])
    closings = [(await wire.next())[0] for _ in range(2)]
    assert [closing.type for closing in closings] == [Type.CLOSE_PRODUCER, Type.CLOSE_CONSUMER]
    assert closings[0].close_producer.assignedBrokerServiceUrl == "pulsar://localhost:6652"
    assert closings[1].close_consumer.assignedBrokerServiceUrl == "pulsar://localhost:6652"
    third = await three.connect(broker=2)
    await third.producer()  # without another lookup


async def test_without_a_destination_clients_look_it_up_again(three: Bed) -> None:
    wire = await serve_by(three, 1)
    await wire.producer()
    ownership = three.broker.cluster.ownership
    await three.broker.cluster.unload(ownership.bundles_of(three.brokers[1])[:1])
    closing = (await wire.next())[0]
    assert closing.type == Type.CLOSE_PRODUCER
    assert not closing.close_producer.HasField("assignedBrokerServiceUrl")
    assert ownership.owner(NAME) is None


async def test_messages_and_acks_move_with_their_bundle(three: Bed) -> None:
    wire = await serve_by(three, 1)
    await wire.producer()
    await wire.subscribe()
    await wire.flow()
    positions = await wire.publish(*[plain(b"%d" % number) for number in range(5)])
    await wire.messages(5)
    await wire.ack(positions[0], positions[2])
    namespace, bundle = three.broker.cluster.ownership.bundles_of(three.brokers[1])[0]
    await three.broker.cluster.unload([(namespace, bundle)], three.brokers[0])
    moved = await three.connect()
    await moved.subscribe()
    await moved.flow()
    assert await moved.payloads(3) == [b"1", b"3", b"4"]


async def test_a_broker_that_ends_leaves_its_topics_to_others(three: Bed) -> None:
    wire = await serve_by(three, 0)
    await wire.producer()
    await wire.publish(plain(b"kept"))
    three.broker.stop()
    await wire.closed()
    second = await three.connect(broker=1)
    answer = await look_up(second)  # the second broker is the leader now
    assert answer.response == Lookup.Connect
    await second.subscribe(initialPosition=pb.CommandSubscribe.Earliest)
    await second.flow()
    assert await second.payloads(1) == [b"kept"]
    three.broker.start()
    assert three.broker.cluster.ownership.bundles_of(three.broker) == []
    assert three.broker.cluster.ownership.leader is three.brokers[1]


@pytest.mark.req("B-47")
async def test_a_proxy_s_connection_is_the_broker_s_that_it_names(three: Bed) -> None:
    await serve_by(three, 2)
    through = await three.connect(proxy_to_broker_url="pulsar://localhost:6652")
    await through.producer()
    assert [len(broker.sessions) for broker in three.brokers] == [0, 0, 2]
    assert (await look_up(through)).proxy_through_service_url


async def test_a_proxy_may_name_a_broker_as_host_and_port(three: Bed) -> None:
    await three.connect(proxy_to_broker_url="127.0.0.1:6651")
    assert len(three.brokers[1].sessions) == 1


async def test_one_broker_takes_any_name(bed: Bed) -> None:
    wire = await bed.connect(proxy_to_broker_url="pulsar://who.example:1")
    await wire.producer()


async def test_producer_names_are_never_given_twice(three: Bed) -> None:
    names = set()
    for index in range(3):
        wire = await three.connect(broker=index)
        topic = f"persistent://public/default/of-{index}"
        await wire.ask(Type.LOOKUP, topic=topic, authoritative=True)
        for number in range(3):
            names.add((await wire.producer(topic=topic, producer_id=number)).producer_name)
    assert len(names) == 9


@pytest.mark.serving(Config(defaultNumberOfNamespaceBundles=16), brokers=2)
async def test_the_metrics_of_a_broker_are_of_its_topics(bed: Bed) -> None:
    for index in range(2):
        wire = await bed.connect(broker=index)
        topic = f"persistent://public/default/t{index}"
        await wire.ask(Type.LOOKUP, topic=topic, authoritative=True)
        await wire.producer(topic=topic)
    assert [[t.name.local_name for t in broker.loaded_topics()] for broker in bed.brokers] == [["t0"], ["t1"]]


async def test_a_proxy_s_connection_to_a_broker_that_is_down_is_closed(three: Bed) -> None:
    """Otherwise the stopped broker would serve this client, and own topics where no other client can reach them."""
    three.brokers[1].stop()
    wire = three.dial()
    await wire.send(Type.CONNECT, client_version="proxied", protocol_version=21, proxy_to_broker_url="localhost:6651")
    await wire.closed()
    assert not any(broker.sessions for broker in three.brokers)
