"""The producers and consumers of a proxied connection: those that the broker did not refuse."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.lab.proxy.opened import OpenedByClient
from pulsarium.proto.commands import Direction
from tests.broker.wire import Type, command

TOPIC = "persistent://public/default/t"
CLIENT, BROKER = Direction.CLIENT, Direction.BROKER


def producer(opened: OpenedByClient, request: int, number: int = 1) -> None:
    opened.note(CLIENT, command(Type.PRODUCER, topic=TOPIC, producer_id=number, request_id=request))


def consumer(opened: OpenedByClient, request: int, number: int = 1, name: str = "") -> None:
    fields: dict[str, Any] = {"topic": TOPIC, "subscription": "s", "subType": 0, "consumer_name": name}
    opened.note(CLIENT, command(Type.SUBSCRIBE, consumer_id=number, request_id=request, **fields))


def refusal(opened: OpenedByClient, request: int) -> None:
    opened.note(BROKER, command(Type.ERROR, request_id=request, error=0, message="no"))


def named(opened: OpenedByClient, request: int, *, ready: bool) -> None:
    answer = command(Type.PRODUCER_SUCCESS, request_id=request, producer_name="p", producer_ready=ready)
    opened.note(BROKER, answer)


def test_what_the_broker_refuses_is_not_open() -> None:
    opened = OpenedByClient()
    producer(opened, request=1)
    consumer(opened, request=2)
    refusal(opened, 1)
    refusal(opened, 2)
    assert (opened.producers, opened.consumers) == ({}, {})


def test_a_refused_request_leaves_what_was_open_before() -> None:
    opened = OpenedByClient()
    consumer(opened, request=1, name="first")
    opened.note(BROKER, command(Type.SUCCESS, request_id=1))
    consumer(opened, request=2, name="second")
    refusal(opened, 2)
    assert opened.consumers[1].name == "first"


def test_an_error_for_another_request_closes_nothing() -> None:
    opened = OpenedByClient()
    producer(opened, request=1)
    named(opened, 1, ready=True)
    refusal(opened, 1)
    assert opened.producers[1].name == "p"


def test_a_producer_that_waits_for_its_turn_may_still_be_refused() -> None:
    opened = OpenedByClient()
    producer(opened, request=1)
    named(opened, 1, ready=False)
    assert opened.producers[1].name == "p"
    refusal(opened, 1)
    assert opened.producers == {}
