"""Brokers of other processes, over HTTP alone. Here the broker is in this process, so that tests see both sides."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pulsar
import pytest

from pulsarium.broker.lab.state import SeedError
from pulsarium.broker.lab.why import NotThere
from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.testing import (
    ClockError,
    Drop,
    FaultError,
    Mask,
    NotOverHttp,
    PulsarBroker,
    RemoteBroker,
    WhyError,
)
from pulsarium.broker.testing.remote import INSTEAD
from tests.broker.testing.conftest import client_of

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


def test_all_state_goes_over_http(broker: PulsarBroker, remote: RemoteBroker) -> None:
    remote.create_namespace("gone")
    remote.reset()
    assert "public/gone" not in broker.call(lambda it: list(it.broker.metadata.namespaces))


@pytest.mark.parametrize("name", ["call", "kill", "bring_back", "service_urls"])
def test_what_needs_the_brokers_process_says_what_to_do(remote: RemoteBroker, name: str) -> None:
    with pytest.raises(NotOverHttp, match=rf"only a broker in the process of the test has {name}: .* mark the test"):
        getattr(remote, name)


def test_another_name_is_an_attribute_error(remote: RemoteBroker) -> None:
    with pytest.raises(AttributeError, match="a broker has no colour"):
        _ = remote.colour


def test_each_method_of_a_broker_is_there_over_http_or_says_what_to_do(remote: RemoteBroker) -> None:
    public = {name for name in vars(PulsarBroker) if not name.startswith("_")}
    assert {name for name in public if name not in INSTEAD and not hasattr(RemoteBroker, name)} == set()


def test_produced_messages_are_compared_over_http(remote: RemoteBroker, client: Any, topic: str) -> None:
    producer = client.create_producer(topic)
    producer.send(b"a")
    producer.send(b"\xff")
    remote.assert_produced(topic, 2)
    remote.assert_produced(topic, ["a", b"\xff"])
    with pytest.raises(AssertionError, match="has 2 messages, not 1: b'a', "):
        remote.assert_produced(topic, 1)
    with pytest.raises(AssertionError, match=r"message 1 of .* not b'b'"):
        remote.assert_produced(topic, ["a", "b"])
    with pytest.raises(ValueError, match="is not persistent"):
        remote.assert_produced("non-persistent://public/default/t", ["a"])


def test_a_number_of_acknowledgements_is_expected_over_http(remote: RemoteBroker, client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    for _ in range(2):
        producer.send(b"a")
    consumer.acknowledge(consumer.receive(30_000))
    remote.assert_acked(topic, "s", 1, timeout=60)
    with pytest.raises(AssertionError, match="has 1 message acknowledged, not 2, of 2 messages"):
        remote.assert_acked(topic, "s", 2, timeout=0.01)


def test_why_is_asked_over_http(broker: PulsarBroker, remote: RemoteBroker, client: Any, topic: str) -> None:
    client.subscribe(topic, "s").close()
    client.create_producer(topic).send(b"a")
    assert remote.why(topic, "s") == broker.why(topic, "s")
    assert remote.why(topic, producer="").reason == "can-be-created"
    with pytest.raises(NotThere, match="nobody"):
        remote.why(topic, "nobody")
    with pytest.raises(WhyError, match="no message id"):
        remote.why(topic, "s", "first")


def test_masks_are_added_over_http_and_those_of_others_stay(broker: PulsarBroker, remote: RemoteBroker) -> None:
    other = broker.masks.add(Mask(), client_version="nobody*")
    mask = Mask(profile="pulsar-4.2", flags={"supports_partial_producer": False}, allowed=frozenset({"PRODUCER"}))
    with remote.masks.add(mask, client_version="nobody*"):
        assert broker.masks.worn[-1].mask == mask
    worn = remote.masks.add(Mask(max_protocol_version=12), listener="pulsar://nowhere*")
    assert worn.hits == 0
    with pytest.raises(TypeError, match="no argument 'colour'"):
        remote.masks.add(Mask(), colour=1)  # type: ignore[call-arg]
    remote.masks.clear()
    assert [each.id for each in broker.masks.worn] == [other.id]
    other.remove()


def test_a_capture_is_read_over_http(broker: PulsarBroker, remote: RemoteBroker, client: Any, topic: str) -> None:
    own = broker.captures.start()
    with remote.captures.start() as capture:
        client.create_producer(topic).send(b"a")
        assert [each.id for each in remote.captures.running] == [capture.id]
        assert capture.frames == own.frames
    own.stop()
    assert [each.data for each in capture.records()] == [each.data for each in own.records()]
    assert (capture.frames, capture.running, remote.captures.running) == (own.frames, False, [])
    assert [each.id for each in broker.captures.running] == []
    with pytest.raises(OSError, match="--lab-dir"):
        remote.captures.start("here.pulscap")


def test_a_long_capture_is_read_in_parts(broker: PulsarBroker, remote: RemoteBroker, topic: str) -> None:
    client = client_of(broker)
    with remote.captures.start() as capture:
        producer = client.create_producer(topic)
        for _ in range(10):
            producer.send(b"a" * 1_000_000)
    client.close()
    assert sum(record.size > 1_000_000 for record in capture.records()) == 10


def test_the_linter_and_the_checker_judge_over_http(broker: PulsarBroker, remote: RemoteBroker, topic: str) -> None:
    linter, checker = remote.linter, remote.checker
    linter.start()
    checker.start()
    client = client_of(broker)
    consumer = client.subscribe(topic, "s")
    client.create_producer(topic).send(b"a")
    consumer.receive(30_000)
    client.close()
    linter.stop()
    checker.stop()
    linter.assert_clean()
    checker.assert_kept()
    assert checker.tally().kept["permits-exceeded"] == 1


def test_the_state_is_saved_and_restored_over_http(broker: PulsarBroker, remote: RemoteBroker, tmp_path: Path) -> None:
    seed = tmp_path / "seed.json"
    seed.write_text('{"namespaces": [{"name": "public/seeded"}]}')
    assert remote.seed(seed)["namespaces"] == 1
    remote.snapshot(tmp_path / "state")
    remote.reset()
    assert "public/seeded" not in broker.call(lambda it: list(it.broker.metadata.namespaces))
    remote.restore(tmp_path / "state")
    assert "public/seeded" in broker.call(lambda it: list(it.broker.metadata.namespaces))
    with pytest.raises(StorageError):
        remote.restore(seed)
    seed.write_text("{")
    with pytest.raises(SeedError):
        remote.seed(seed)
    remote.reset()


def test_a_url_without_pulsarium_is_refused(broker: PulsarBroker) -> None:
    with pytest.raises(ConnectionError, match="start it first"):
        RemoteBroker("http://127.0.0.1:1")
    with pytest.raises(ConnectionError, match="has no lab"):
        RemoteBroker(f"{broker.admin_url}/nowhere")
