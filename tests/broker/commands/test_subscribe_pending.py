"""Commands behind a SUBSCRIBE that is not answered yet."""

from __future__ import annotations

import pytest

from pulsarium.broker.config import PULSAR_4_2
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.held import HeldStorage
from tests.broker.wire import TOPIC, Bed, Earliest, Exclusive, Type, Wire, message_id, plain


def subscribing(wire: Wire, consumer_id: int = 0) -> bytes:
    return wire.numbered(
        Type.SUBSCRIBE,
        topic=TOPIC,
        subscription="sub",
        subType=Exclusive,
        consumer_id=consumer_id,
        initialPosition=Earliest,
    )


def consumers(bed: Bed) -> int:
    return len(bed.subscription().consumers)


async def test_a_flow_is_lost(wire: Wire, sender: Wire) -> None:
    await sender.publish(plain(b"m"))
    await wire.write(subscribing(wire))
    await wire.send(Type.FLOW, consumer_id=0, messagePermits=10)
    await wire.expect(Type.SUCCESS)
    await wire.flow(1)
    assert await wire.payloads(1) == [b"m"]


async def test_the_consumer_is_not_there_yet(wire: Wire) -> None:
    asked = [
        wire.numbered(Type.UNSUBSCRIBE, consumer_id=0),
        wire.numbered(Type.GET_LAST_MESSAGE_ID, consumer_id=0),
        wire.numbered(Type.SEEK, consumer_id=0, message_id={"ledgerId": 0, "entryId": 0}),
    ]
    await wire.write(subscribing(wire) + b"".join(asked))
    for request_id in (1, 2, 3):
        refused = await wire.expect(Type.ERROR)
        assert (refused.request_id, refused.error) == (request_id, pb.MetadataError)
        assert refused.message == "Consumer not found"
    assert (await wire.expect(Type.SUCCESS)).request_id == 4


async def test_close_consumer_takes_the_answer_away(bed: Bed, wire: Wire) -> None:
    both = subscribing(wire) + wire.numbered(Type.CLOSE_CONSUMER, consumer_id=0)
    await wire.write(both)
    assert (await wire.expect(Type.SUCCESS)).request_id == 2
    await wire.quiet()
    assert consumers(bed) == 0
    await wire.subscribe()  # the consumer id and the subscription are free


async def test_the_next_subscribe_is_another(bed: Bed, wire: Wire) -> None:
    closing = wire.numbered(Type.CLOSE_CONSUMER, consumer_id=0)
    await wire.write(subscribing(wire) + closing + subscribing(wire))
    assert (await wire.expect(Type.SUCCESS)).request_id == 1
    assert (await wire.expect(Type.SUCCESS)).request_id == 3
    assert consumers(bed) == 1


@pytest.mark.req("C-04")
@pytest.mark.serving(profile=PULSAR_4_2)
async def test_in_pulsar_4_2_the_next_subscribe_is_refused_and_the_one_after_it_let_in(bed: Bed, wire: Wire) -> None:
    closing = wire.numbered(Type.CLOSE_CONSUMER, consumer_id=0)
    await wire.write(subscribing(wire) + closing + subscribing(wire))
    assert (await wire.expect(Type.SUCCESS)).request_id == 1
    refused = await wire.expect(Type.ERROR)
    assert (refused.request_id, refused.error) == (3, pb.UnknownError)
    assert refused.message == "Consumer that failed is already present on the connection"
    await wire.subscribe()
    assert consumers(bed) == 1


@pytest.mark.req("C-04")
@pytest.mark.serving(profile=PULSAR_4_2)
async def test_in_pulsar_4_2_an_id_is_free_once_the_answer_was_due(bed: Bed, wire: Wire) -> None:
    await wire.write(subscribing(wire) + wire.numbered(Type.CLOSE_CONSUMER, consumer_id=0))
    await wire.expect(Type.SUCCESS)
    await wire.subscribe()
    assert consumers(bed) == 1


@pytest.mark.req("C-04")
@pytest.mark.serving(profile=PULSAR_4_2)
async def test_in_pulsar_4_2_the_end_of_a_connection_lets_go_of_an_abandoned_subscribe(
    store: HeldStorage, bed: Bed, wire: Wire
) -> None:
    store.holding = True
    await wire.write(subscribing(wire) + wire.numbered(Type.CLOSE_CONSUMER, consumer_id=0))
    await wire.expect(Type.SUCCESS)
    await wire.aclose()
    store.release()
    other = await bed.connect()
    await other.subscribe()
    assert consumers(bed) == 1


@pytest.mark.req("C-04")
@pytest.mark.parametrize("alive", [True, False])
async def test_close_consumer_while_the_owner_is_asked(bed: Bed, wire: Wire, alive: bool) -> None:
    await wire.subscribe()
    other = await bed.connect()
    await other.write(subscribing(other))
    await wire.expect(Type.PING)
    await other.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    if alive:
        await wire.send(Type.PONG)
    await other.quiet(8)  # the SUBSCRIBE is neither refused nor accepted
    assert consumers(bed) == int(alive)


@pytest.mark.req("C-04")
async def test_an_owner_that_dies_for_a_second_request(bed: Bed, wire: Wire) -> None:
    await wire.subscribe()
    other = await bed.connect()
    await other.write(subscribing(other))
    await wire.expect(Type.PING)
    await other.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    await other.write(subscribing(other))
    assert (await other.next()).command.success.request_id == 3
    assert consumers(bed) == 1
    await other.quiet()


@pytest.mark.parametrize("how", ["close", "leave"])
async def test_a_subscribe_can_be_canceled_before_its_commit(
    store: HeldStorage, bed: Bed, wire: Wire, how: str
) -> None:
    store.holding = True
    await wire.write(subscribing(wire))
    await wire.quiet()
    if how == "close":
        await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    else:
        await wire.aclose()
    other = await bed.connect()
    await other.quiet()
    assert consumers(bed) == 0
    store.release()
    await other.subscribe()
    if how == "close":
        await wire.quiet()


async def test_closing_answers_behind_the_acknowledgements(store: HeldStorage, wire: Wire) -> None:
    await wire.producer()
    (position,) = await wire.publish(plain(b"m"))
    await wire.subscribe(initialPosition=Earliest)
    await wire.flow()
    await wire.messages(1)
    store.holding = True
    ack = wire.numbered(Type.ACK, consumer_id=0, ack_type=pb.CommandAck.Individual, message_id=[message_id(position)])
    await wire.write(ack + wire.numbered(Type.CLOSE_CONSUMER, consumer_id=0))
    await wire.quiet()
    store.release()
    await wire.expect(Type.ACK_RESPONSE)
    await wire.expect(Type.SUCCESS)


async def test_a_topic_that_is_unloaded_before_it_is_kept(store: HeldStorage, bed: Bed, wire: Wire) -> None:
    store.holding = True
    await wire.write(subscribing(wire))
    await wire.quiet()
    bed.broker.topics.unload(TopicName.parse(TOPIC))
    await wire.expect(Type.CLOSE_CONSUMER)
    store.release()
    refused = await wire.expect(Type.ERROR)
    assert (refused.error, refused.message) == (pb.ServiceNotReady, "Topic is temporarily unavailable")
    await wire.subscribe()
