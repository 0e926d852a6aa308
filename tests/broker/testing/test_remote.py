"""Brokers of other processes, over HTTP alone. Here the broker is in this process, so that tests see both sides."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pulsar
import pytest

from pulsarium.broker.testing import ClockError, Drop, FaultError, NotOverHttp, PulsarBroker, RemoteBroker

DAY_MS = 86_400_000


@pytest.fixture
def remote(broker: PulsarBroker) -> Iterator[RemoteBroker]:
    remote = RemoteBroker(broker.admin_url)
    yield remote
    remote.faults.clear()
    remote.clock.reset()


def test_the_service_url_is_found_by_the_admin_url(broker: PulsarBroker, remote: RemoteBroker) -> None:
    assert (remote.service_url, remote.admin_url) == (broker.service_url, broker.admin_url)


def test_the_brokers_clock_is_steered_over_http(broker: PulsarBroker, remote: RemoteBroker) -> None:
    clock = remote.clock
    clock.freeze()
    before = clock.now_ms()
    clock.advance(timedelta(days=1))
    assert (clock.frozen, clock.now_ms() - before, broker.clock.frozen) == (True, DAY_MS, True)
    clock.auto_advance = True
    clock.include("keep-alive")
    assert (clock.auto_advance, clock.included) == (True, ["keep-alive"])
    clock.exclude("keep-alive")
    clock.resume()
    assert (clock.frozen, clock.included) == (False, [])
    clock.reset()
    assert (clock.auto_advance, abs(clock.offset_ms) < 1000) == (False, True)
    with pytest.raises(ClockError, match="pass a finite number"):
        clock.advance(-1)


def test_a_namespaces_clock_is_steered_over_http(
    broker: PulsarBroker, remote: RemoteBroker, client: Any, topic: str
) -> None:
    namespace = topic.split("/")[2] + "/" + topic.split("/")[3]
    clock = remote.clock.of(namespace)
    consumer = client.subscribe(topic, "s", pulsar.ConsumerType.Shared)
    client.create_producer(topic).send(b"a", deliver_after=timedelta(days=1))
    assert not clock.is_own
    while clock.run_next() < 80_000:
        pass
    assert consumer.receive(30_000).data() == b"a"
    assert (clock.is_own, remote.clock.namespaces, clock.next_in) == (True, [namespace], None)
    assert broker.clock.of(namespace).is_own
    assert abs(broker.clock.offset_ms) < 1000
    clock.reset()
    assert remote.clock.namespaces == []
    with pytest.raises(ClockError, match="public/none does not exist"):
        remote.clock.of("public/none")
    with pytest.raises(ClockError, match="belong to connections"):
        clock.include("keep-alive")


def test_faults_are_added_over_http_and_those_of_others_stay(
    broker: PulsarBroker, remote: RemoteBroker, client: Any, topic: str
) -> None:
    other = broker.faults.observe("PRODUCER")
    rule = remote.faults.add(Drop(), "SEND", topic=topic, client_version="nobody*")
    with remote.faults.observe("SEND", topic=topic) as seen:
        client.create_producer(topic).send(b"a")
        seen.wait(1)
        assert (seen.hits, seen.matched, rule.hits) == (1, 1, 0)
        with pytest.raises(AssertionError, match="1 times"):
            seen.wait(2, timeout=0.01)
    with pytest.raises(FaultError, match="no other process can run"):
        remote.faults.add("drop", "SEND", predicate=bool)
    with pytest.raises(TypeError, match="no argument colour"):
        remote.faults.add("drop", "SEND", colour=1)  # type: ignore[call-arg]
    with pytest.raises(FaultError, match="NO_COMMAND"):
        remote.faults.add("drop", "NO_COMMAND")
    remote.faults.clear()
    assert [rule.id for rule in broker.faults.rules] == [other.id]
    other.remove()


def test_namespaces_and_topics_are_made_over_http(broker: PulsarBroker, remote: RemoteBroker) -> None:
    first, second = (remote.create_namespace("a test", message_ttl_in_seconds=5) for _ in range(2))
    assert (first, second) == ("public/a-test", "public/a-test-2")
    assert broker.call(lambda it: it.broker.metadata.namespaces[first]["message_ttl_in_seconds"]) == 5
    assert remote.create_topic(f"{first}/t", partitions=3) == f"persistent://{first}/t"
    assert remote.create_topic(f"{first}/one") == f"persistent://{first}/one"
    with pytest.raises(ValueError, match="colour"):
        remote.create_namespace("x", colour=1)
    with pytest.raises(ValueError, match="exist"):
        remote.create_topic(f"{first}/t", partitions=3)
    for name in (first, second, "public/none"):
        remote.delete_namespace(name)
    assert not {first, second} & set(broker.call(lambda it: list(it.broker.metadata.namespaces)))


def test_assertions_wait_over_http(remote: RemoteBroker, client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    client.create_producer(topic).send(b"a")
    remote.assert_delivered(topic, "s")
    with pytest.raises(AssertionError, match="not 2"):
        remote.assert_delivered(topic, "s", 2, timeout=0.01)
    consumer.acknowledge(consumer.receive(30_000))
    consumer.close()
    remote.assert_acked(topic, "s")
    with pytest.raises(ValueError, match="scalable topic"):
        remote.assert_acked("topic://public/default/t", "s")


def test_all_state_goes_over_http(broker: PulsarBroker, remote: RemoteBroker) -> None:
    remote.create_namespace("gone")
    remote.reset()
    assert "public/gone" not in broker.call(lambda it: list(it.broker.metadata.namespaces))


def test_what_needs_the_brokers_process_is_refused(remote: RemoteBroker) -> None:
    with pytest.raises(NotOverHttp, match=r"only a broker in this process has captures: .* `pulsarium capture`"):
        _ = remote.captures
    with pytest.raises(NotOverHttp, match=r"has assert_acked with a number of messages: .* leave the number out"):
        remote.assert_acked("t", "s", 1)
    with pytest.raises(AttributeError, match="a broker has no colour"):
        _ = remote.colour


def test_a_url_without_pulsarium_is_refused(broker: PulsarBroker) -> None:
    with pytest.raises(ConnectionError, match="start it first"):
        RemoteBroker("http://127.0.0.1:1")
    with pytest.raises(ConnectionError, match="has no lab"):
        RemoteBroker(f"{broker.admin_url}/nowhere")
