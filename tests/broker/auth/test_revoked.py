"""Clients that lose a grant are disconnected."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.session.session import sessions_of
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.auth.secured import by_token, token
from tests.broker.wire import TOPIC, Bed, Exclusive, Type, Wire, frame_of, serving

NAMESPACE = "public/default"
BOTH = {"me": ["produce", "consume"]}


async def with_both(bed: Bed, role: str = "me", **fields: Any) -> Wire:
    """Connect a client with a producer and a consumer."""
    wire = await bed.connect(auth_method_name="token", auth_data=token(role).encode(), **fields)
    await wire.ask(Type.PRODUCER, topic=TOPIC, producer_id=0)
    await wire.ask(Type.SUBSCRIBE, topic=TOPIC, subscription="me-1", subType=Exclusive, consumer_id=0)
    return wire


def put(bed: Bed, auth: dict[str, Any], **others: Any) -> None:
    kept = bed.broker.metadata.namespaces[NAMESPACE]
    bed.broker.metadata.put_namespace(NAMESPACE, {**kept, "auth_policies": auth, **others})
    bed.broker.turn.finish()


def connected(bed: Bed) -> tuple[int, int]:
    """Return the numbers of connected producers and consumers."""
    topic = bed.topic()
    return len(topic.producers), sum(len(each.consumers) for each in topic.subscriptions.values())


@pytest.mark.parametrize(
    ("auth", "others", "left"),
    [
        ({"namespace_auth": BOTH}, {}, (1, 1)),
        ({"destination_auth": {TOPIC: BOTH}}, {}, (1, 1)),
        ({"namespace_auth": {"me": ["produce"]}}, {}, (1, 0)),
        ({"namespace_auth": {"me": ["consume"]}}, {}, (0, 1)),
        ({"namespace_auth": BOTH, "subscription_auth_roles": {"me-1": ["other"]}}, {}, (1, 0)),
        ({"namespace_auth": BOTH}, {"subscription_auth_mode": "Prefix"}, (1, 1)),
        ({}, {}, (0, 0)),
    ],
)
@pytest.mark.serving(by_token())
async def test_clients_that_lost_their_grant_are_disconnected(
    bed: Bed, auth: dict[str, Any], others: dict[str, Any], left: tuple[int, int]
) -> None:
    put(bed, {"namespace_auth": BOTH})
    wire = await with_both(bed)
    put(bed, auth, **others)
    assert connected(bed) == left
    if not left[0]:
        assert (await wire.expect(Type.CLOSE_PRODUCER)).producer_id == 0
    if not left[1]:
        assert (await wire.expect(Type.CLOSE_CONSUMER)).consumer_id == 0
    await wire.alive()


@pytest.mark.serving(by_token())
async def test_a_prefix_that_is_wanted_from_now_on_disconnects_consumers(bed: Bed) -> None:
    put(bed, {"namespace_auth": {"you": ["produce", "consume"]}})
    await with_both(bed, "you")
    put(bed, {"namespace_auth": {"you": ["produce", "consume"]}}, subscription_auth_mode="Prefix")
    assert connected(bed) == (1, 0)


async def test_superusers_stay_and_those_that_proxies_speak_for_go() -> None:
    async with serving(by_token()) as bed:
        put(bed, {"namespace_auth": {"proxy": ["produce", "consume"], **BOTH}})
        await with_both(bed, "admin")
        put(bed, {})
        assert connected(bed) == (1, 1)
    async with serving(by_token()) as bed:
        put(bed, {"namespace_auth": {"proxy": ["produce", "consume"], **BOTH}})
        await with_both(bed, "proxy", original_principal="me")
        put(bed, {"namespace_auth": {"proxy": ["produce", "consume"]}})
        assert connected(bed) == (0, 0)


@pytest.mark.serving(by_token())
async def test_producers_that_wait_lose_their_grant_too(bed: Bed) -> None:
    put(bed, {"namespace_auth": BOTH})
    wire = await bed.connect(auth_method_name="token", auth_data=token("me").encode())
    exclusive = pb.ProducerAccessMode.WaitForExclusive
    await wire.ask(Type.PRODUCER, topic=TOPIC, producer_id=0, producer_access_mode=exclusive)
    await wire.write(wire.numbered(Type.PRODUCER, topic=TOPIC, producer_id=1, producer_access_mode=exclusive))
    assert not (await wire.expect(Type.PRODUCER_SUCCESS)).producer_ready
    put(bed, {})
    assert {(await wire.expect(Type.CLOSE_PRODUCER)).producer_id for _ in range(2)} == {0, 1}
    assert connected(bed) == (0, 0)


@pytest.mark.serving(by_token())
async def test_other_namespaces_are_left_alone(bed: Bed) -> None:
    put(bed, {"namespace_auth": BOTH})
    await with_both(bed)
    bed.broker.metadata.put_namespace("public/other", {})
    assert connected(bed) == (1, 1)


@pytest.mark.serving(by_token())
async def test_a_consumer_that_is_not_kept_yet_loses_its_grant(bed: Bed) -> None:
    put(bed, {"namespace_auth": BOTH})
    wire = await bed.connect(auth_method_name="token", auth_data=token("me").encode())
    (session,) = sessions_of(bed.broker)
    fields: dict[str, Any] = {"topic": TOPIC, "subscription": "s", "subType": Exclusive, "consumer_id": 0}
    session.receive(frame_of(Type.SUBSCRIBE, request_id=1, **fields))
    put(bed, {})
    await wire.expect(Type.CLOSE_CONSUMER)
    await wire.expect(Type.ERROR)
    assert not bed.broker.topics.exists(TopicName.parse(TOPIC)) or connected(bed) == (0, 0)
