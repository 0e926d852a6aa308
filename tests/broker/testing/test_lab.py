"""The lab from a test's own thread: all parts work as in the broker's thread."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pulsar
import pytest

from pulsarium.broker.session.session import sessions_of
from pulsarium.broker.testing import (
    BrokerClock,
    ClockError,
    Drop,
    FaultError,
    FaultRemoved,
    Mask,
    PulsarBroker,
    TappedFrame,
    WhyError,
    running,
)
from pulsarium.capture.file import EventKind
from pulsarium.proto.framing import frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.testing.conftest import client_of

WEEK = timedelta(days=7)


def test_a_lost_receipt(broker: PulsarBroker, client: Any, topic: str) -> None:
    """The broker stores the message. The producer gets no receipt and sends it again, which makes a duplicate."""
    with broker.faults.add("close", "SEND", stage="after", topic=topic) as lost:
        assert [rule.id for rule in broker.faults.rules] == [lost.id]
        client.create_producer(topic).send(b"a")
        lost.wait()
        assert (lost.hits, lost.matched) == (1, 2)
    broker.assert_produced(topic, [b"a", b"a"])
    assert broker.faults.rules == []


def test_rules_wait_count_and_go(broker: PulsarBroker, client: Any, topic: str) -> None:
    threads = []

    def large(frame: TappedFrame) -> bool:
        threads.append(threading.current_thread().name)
        return len(frame.entry) > 1000

    faults = broker.faults
    seen = faults.observe("SEND", topic=topic)
    big = faults.observe("SEND", topic=topic, predicate=large)
    producer = client.create_producer(topic)
    producer.send(b"a")
    producer.send(b"a" * 2000)
    seen.wait(2)
    assert (seen.hits, big.hits, set(threads)) == (2, 1, {"pulsarium broker"})
    with pytest.raises(AssertionError, match=r"<fault \d+: Observe\(\) of SEND, 1 hits> after 0.01 s, not 2; 1 frames"):
        big.wait(2, timeout=0.01)
    once = faults.add(Drop(), "SEND")
    with pytest.raises(FaultError, match="at most 1 times, not 2"):
        once.wait(2)
    timer = threading.Timer(0.01, once.remove)
    timer.start()
    with pytest.raises(FaultRemoved):
        once.wait()
    timer.join()
    with pytest.raises(FaultError, match="no action"):
        faults.add("explode", "SEND")
    slow = faults.add({"kind": "delay", "seconds": 1000}, "SEND", topic=topic)
    producer.send_async(b"late", lambda result, message_id: None)
    slow.wait()
    broker.assert_produced(topic, 2)
    faults.clear()
    broker.assert_produced(topic, [b"a", b"a" * 2000, b"late"])


@pytest.fixture
def clock(broker: PulsarBroker) -> Iterator[BrokerClock]:
    yield broker.clock
    broker.clock.reset()


def test_a_delayed_message_arrives_when_the_clock_is_advanced(
    broker: PulsarBroker, clock: BrokerClock, client: Any, topic: str
) -> None:
    clock.freeze()
    now = clock.now_ms()
    consumer = client.subscribe(topic, "s", pulsar.ConsumerType.Shared)
    client.create_producer(topic).send(b"a", deliver_after=WEEK)
    with pytest.raises(AssertionError, match="was delivered 0 messages, not 1, of 1 message in the topic; "):
        broker.assert_delivered(topic, "s", timeout=0.01)
    clock.advance(timedelta(days=6))
    assert clock.now_ms() == now + 6 * 86_400_000
    assert 0 < (clock.next_in or 0) < 86_500  # the client's own clock went on
    clock.advance(86_500)
    assert consumer.receive(30_000).data() == b"a"
    with pytest.raises(ClockError, match="pass a finite number"):
        clock.advance(-1)
    frozen = clock.frozen
    with pytest.raises(AttributeError, match="read-only"):
        clock.frozen = False  # type: ignore[assignment]
    clock.resume()
    assert (frozen, clock.frozen) == (True, False)
    assert clock.offset_ms > 6 * 86_400_000
    clock.include("keep-alive")
    assert clock.included == ["keep-alive"]
    clock.exclude("keep-alive")
    assert clock.included == []
    clock.reset()
    assert abs(clock.offset_ms) < 1000


def test_time_goes_by_itself(broker: PulsarBroker, clock: BrokerClock, client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s", pulsar.ConsumerType.Shared)
    producer = client.create_producer(topic)
    producer.send(b"a", deliver_after=WEEK)
    broker.assert_produced(topic, 1)
    while not clock.run_next() > 86_400:
        pass
    assert consumer.receive(30_000).data() == b"a"
    producer.send(b"b", deliver_after=2 * WEEK)
    clock.auto_advance = True
    assert clock.auto_advance
    assert consumer.receive(30_000).data() == b"b"
    clock.reset()
    assert [clock.auto_advance] == [False]


def test_a_test_masks_its_broker(broker: PulsarBroker, topic: str) -> None:
    def versions() -> set[int]:
        return broker.call(lambda it: {each.profile.max_protocol_version for each in sessions_of(it.broker)})

    with broker.masks.add(Mask(max_protocol_version=12), client_version="Pulsar-CPP*") as mask:
        assert [worn.id for worn in broker.masks.worn] == [mask.id]
        client = client_of(broker)
        client.create_producer(topic)
        assert (versions(), mask.hits, mask.mask.max_protocol_version) == ({12}, 1, 12)
        client.close()
    assert broker.masks.worn == []
    broker.masks.add(Mask(max_protocol_version=13))
    broker.masks.clear()
    assert broker.masks.worn == []


def test_captures_in_memory_and_in_a_file_hold_the_same_frames(
    broker: PulsarBroker, client: Any, topic: str, tmp_path: Path
) -> None:
    with broker.captures.start() as capture, broker.captures.start(tmp_path / "capture") as file:
        assert [each.id for each in broker.captures.running] == [capture.id, file.id]
        client.create_producer(topic).send(b"a")
        assert [each.running for each in (capture, file)] == [True, True]
    assert [each.running for each in (capture, file)] == [False, False]
    records = capture.records()
    assert capture.frames == sum(record.kind is EventKind.FRAME for record in records) > 4
    assert (capture.path, file.path) == (None, tmp_path / "capture")
    assert len(file.records()) == len(records)


def test_a_clean_client_passes_the_linter(broker: PulsarBroker, client: Any, topic: str) -> None:
    linter = broker.linter
    linter.start()
    client.create_producer(topic).send(b"a")
    linter.assert_clean()
    linter.stop()
    linter.clear()
    assert linter.violations() == []


def test_the_linter_says_what_a_client_did_wrong(broker: PulsarBroker, topic: str) -> None:
    """The client uses a request id twice."""
    connect = pb.CommandConnect(client_version="careless", protocol_version=19)
    lookup = pb.CommandLookupTopic(topic=topic, request_id=7)
    commands = [
        pb.BaseCommand(type=pb.BaseCommand.CONNECT, connect=connect),
        *[pb.BaseCommand(type=pb.BaseCommand.LOOKUP, lookupTopic=lookup)] * 2,
    ]
    broker.linter.start()
    port = int(broker.service_url.rpartition(":")[2])
    seen = broker.faults.observe("LOOKUP", client_version="careless")
    with seen, socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"".join(frame(command.SerializeToString()) for command in commands))
        seen.wait(2)
    reused = r"(?s)a client broke rules.*\nclient error request-id-reused: LOOKUP with request 7"
    with pytest.raises(AssertionError, match=reused):
        broker.linter.assert_clean()
    broker.linter.stop()
    broker.linter.clear()


def test_a_test_asks_why(broker: PulsarBroker, client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    sent = client.create_producer(topic).send(b"a")
    message = consumer.receive(30_000)
    assert broker.why(topic, "s", sent).reason == "delivered"
    assert broker.why(topic, "s").reason == "caught-up"
    consumer.acknowledge(message)
    consumer.close()
    broker.assert_acked(topic, "s")
    assert broker.why(topic, "s", message.message_id()).reason == "acknowledged"
    with pytest.raises(WhyError, match="there is no topic"):
        broker.why(f"{topic}2", "s")


def test_a_broker_takes_snapshots_resets_and_restores(tmp_path: Path) -> None:
    with running() as broker:
        client = client_of(broker)
        producer = client.create_producer("orders")
        producer.send(b"a")
        broker.snapshot(tmp_path / "snapshot")
        broker.faults.add("drop", "ACK")
        broker.reset()
        assert broker.faults.rules == []
        broker.assert_produced("orders", 0)
        broker.restore(tmp_path / "snapshot")
        broker.assert_produced("orders", [b"a"])
        client.close()


def test_a_seed_file_fills_a_topic(broker: PulsarBroker, topic: str, tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.toml"
    seeds.write_text(f'[[topics]]\nname = "{topic}"\nmessages = ["a", "b"]\n')
    assert broker.seed(seeds)["messages"] == 2
    broker.assert_produced(topic, ["a", "b"])
