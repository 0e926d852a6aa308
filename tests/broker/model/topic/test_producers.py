"""The producers of a topic, compared with a simple model of exclusive, shared and waiting producers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.client import AssignedBroker
from pulsarium.broker.model.errors import BrokerServiceError, NamingError, OwnerMustAnswerError, ProducerFencedError
from pulsarium.broker.model.topic.producers import Producer, ProducerOptions, Producers
from pulsarium.proto.generated import PulsarApi_pb2 as pb

MODES = [pb.Shared, pb.Exclusive, pb.WaitForExclusive, pb.ExclusiveWithFencing]


class Client:
    """A connection that records all commands to the client."""

    address = "a"

    def __init__(self) -> None:
        self.heard: list[tuple[str, int]] = []

    def error(self, request_id: int, code: int, text: str, **about: object) -> None:
        self.heard.append((pb.ServerError.Name(code), request_id))

    def producer_ready(self, producer: Producer) -> None:
        self.heard.append(("ready", producer.request_id))

    def forget_producer(self, producer_id: int) -> None:
        self.heard.append(("forgotten", producer_id))

    def close_producer(self, producer_id: int, assigned: AssignedBroker | None = None) -> None:
        self.heard.append(("closed", producer_id))


def producer(client: Client, number: int, name: str, mode: int, topic_epoch: int | None = None) -> Producer:
    options = ProducerOptions(
        producer_id=number, request_id=number, name=name, access_mode=mode, topic_epoch=topic_epoch
    )
    return Producer(client, None, options, 0)  # type: ignore[arg-type]


def topic_producers(epoch: int | None = None, *, keep: Callable[[int], None] = lambda epoch: None) -> Producers:
    return Producers("t", epoch, keep)


@dataclass
class Naive:
    """A model of the connected producers, the waiting producers and the epoch, by request number."""

    inside: list[tuple[int, str, int]] = field(default_factory=list)  # request number, name, client
    exclusive: bool = False
    waiting: list[int] = field(default_factory=list)
    epoch: int = -1

    def own(self, wanted: int | None) -> None:
        if wanted is not None and self.epoch >= 0 and wanted < self.epoch:
            raise ProducerFencedError("stale")
        self.epoch = wanted if wanted is not None else self.epoch + 1
        self.exclusive = True

    def add(self, number: int, name: str, client: int, mode: int, wanted: int | None) -> str:
        """Add a producer, and return the answer that its client gets."""
        if mode == pb.Shared and (self.exclusive or self.waiting):
            return "ProducerBusyError"
        if mode == pb.Shared:
            owner = next((own for _, taken, own in self.inside if taken == name), None)
            if owner is not None:
                return "NamingError" if owner == client else "OwnerMustAnswerError"
        elif mode == pb.WaitForExclusive and self.inside:
            self.waiting.append(number)
            return "waits"
        else:
            if mode == pb.ExclusiveWithFencing:
                self.inside, self.waiting, self.exclusive = [], [], False
            elif self.inside:
                return "ProducerFencedError"
            try:
                self.own(wanted)
            except ProducerFencedError:
                return "ProducerFencedError"
        self.inside.append((number, name, client))
        return "in"


newcomers = st.tuples(
    st.sampled_from(["a", "b", "c"]),
    st.integers(0, 1),
    st.sampled_from(MODES),
    st.one_of(st.none(), st.none(), st.integers(0, 3)),
)
steps = st.one_of(
    st.tuples(st.just("add"), newcomers),
    st.tuples(st.just("add"), newcomers),
    st.tuples(st.just("leave"), st.integers(0, 5)),
)


@pytest.mark.req("P-02", "P-04", "P-05")
@given(st.lists(steps, max_size=15))
def test_producers_behave_as_a_simple_account(program: list[tuple[str, Any]]) -> None:
    kept: list[int] = []
    made, naive = topic_producers(keep=kept.append), Naive()
    clients = [Client(), Client()]
    present: dict[int, Producer] = {}
    wanted: dict[int, tuple[str, int, int | None]] = {}
    for number, (verb, argument) in enumerate(program):
        if verb == "add":
            name, client, mode, epoch = argument
            added = producer(clients[client], number, name, mode, epoch)
            wanted[number] = (name, client, epoch)
            try:
                said = "in" if made.add(added) else "waits"
                present[number] = added
            except (BrokerServiceError, OwnerMustAnswerError) as error:
                said = type(error).__name__
            assert said == naive.add(number, name, client, mode, epoch)
        elif naive.inside:
            leaving = naive.inside.pop(argument % len(naive.inside))[0]
            made.remove(present[leaving])
            if not naive.inside:
                naive.exclusive = False
                while naive.waiting and not naive.inside:
                    following = naive.waiting.pop(0)
                    name, client, epoch = wanted[following]
                    try:
                        naive.own(epoch)
                    except ProducerFencedError:
                        assert ("ProducerFenced", following) in clients[client].heard
                        continue
                    naive.inside.append((following, name, client))
                    assert ("ready", following) in clients[client].heard
        assert {name: each.producer_id for name, each in made.by_name.items()} == {
            name: own for own, name, _ in naive.inside
        }
        assert [each.producer_id for each in made.waiting] == naive.waiting
        assert made.epoch == (naive.epoch if naive.epoch >= 0 else None)
        assert not kept or kept[-1] == naive.epoch
        assert not naive.exclusive or len(made) == 1
        assert not any(each.closed for each in made.by_name.values())


@pytest.mark.req("P-04")
def test_fencing_tells_waiters_and_forgets_owners() -> None:
    made, client = topic_producers(), Client()
    for number, mode in enumerate((pb.Exclusive, pb.WaitForExclusive, pb.WaitForExclusive)):
        made.add(producer(client, number, f"p{number}", mode))
    assert made.add(producer(Client(), 9, "new", pb.ExclusiveWithFencing))
    assert ("forgotten", 0) in client.heard
    assert [told for told in client.heard if told[0] == "ProducerFenced"] == [
        ("ProducerFenced", 1),
        ("ProducerFenced", 2),
    ]
    assert list(made.by_name) == ["new"]


@pytest.mark.req("P-04")
def test_a_waiter_that_left_is_passed_over() -> None:
    made, client = topic_producers(), Client()
    first, second, third = (producer(client, number, f"p{number}", pb.WaitForExclusive) for number in range(3))
    assert [made.add(each) for each in (first, second, third)] == [True, False, False]
    made.remove(second)
    made.remove(first)
    assert client.heard == [("ready", 2)]
    assert list(made.by_name) == ["p2"]


@pytest.mark.req("P-02")
def test_the_owner_of_a_producer_name_is_asked() -> None:
    made, owner, other = topic_producers(), Client(), Client()
    made.add(producer(owner, 0, "p", pb.Shared))
    with pytest.raises(NamingError):
        made.add(producer(owner, 1, "p", pb.Shared))
    with pytest.raises(OwnerMustAnswerError) as asked:
        made.add(producer(other, 0, "p", pb.Shared))
    assert id(asked.value.owner) == id(owner)
    assert isinstance(asked.value.refusal, NamingError)


@pytest.mark.req("P-04")
def test_the_topic_epoch_goes_on_where_it_was() -> None:
    made = topic_producers(7)
    made.add(producer(Client(), 0, "p", pb.Exclusive))
    assert made.epoch == 8


@pytest.mark.req("B-50", "P-04")
def test_disconnecting_closes_owners_and_refuses_waiters() -> None:
    made, client = topic_producers(), Client()
    owner, waiter = producer(client, 0, "a", pb.Exclusive), producer(client, 1, "b", pb.WaitForExclusive)
    made.add(owner)
    made.add(waiter)
    made.disconnect()
    assert client.heard == [("closed", 0), ("ServiceNotReady", 1), ("forgotten", 1)]
    assert owner.closed
    assert waiter.closed
    assert len(made) == 0
    assert made.add(producer(client, 2, "a", pb.Shared))
    with pytest.raises(ProducerFencedError):
        made.add(producer(client, 3, "c", pb.Exclusive))
    made.remove(owner)  # the owner is removed already
    assert len(made) == 1
    with pytest.raises(ProducerFencedError, match="existing shared"):
        made.add(producer(client, 4, "d", pb.Exclusive))
