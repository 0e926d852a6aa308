"""`pulsarium serve --capture`: what the official Python client says and is told, from its first frame on."""

from __future__ import annotations

from pathlib import Path

import pulsar

from pulsarium.capture.file import CaptureReader, Record
from pulsarium.capture.lint.checker import Walk

from .conftest import Launch


def read(path: Path) -> list[Record]:
    return list(CaptureReader().feed(path.read_bytes()))


def test_everything_is_captured_and_breaks_no_rule(launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "captures").mkdir()
    broker = launch("--capture", f"{tmp_path}/captures/")
    client = pulsar.Client(
        broker.address.service_url,
        logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
        authentication=pulsar.AuthenticationToken("a-secret-of-mine"),
    )
    consumer = client.subscribe("orders", "s", consumer_type=pulsar.ConsumerType.Shared)
    producer = client.create_producer("orders", batching_enabled=True, batching_max_publish_delay_ms=2)
    for number in range(20):
        producer.send_async(b"%d" % number, None)
    producer.flush()
    for _ in range(20):
        consumer.acknowledge(consumer.receive(30_000))
    client.close()
    assert broker.stop() == 0
    [path] = (tmp_path / "captures").iterdir()
    assert b"a-secret-of-mine" not in path.read_bytes()
    walk = Walk(judging=True)
    seen = [walk.feed(record) for record in read(path)]
    assert [f"{each.rule.name}: {each.detail}" for _, one in seen for each in one.violations] == []
    outcomes = {(each.request.name, each.outcome) for _, one in seen for each in one.exchanges}
    assert outcomes >= {(name, "ok") for name in ("CONNECT", "LOOKUP", "PRODUCER", "SUBSCRIBE", "SEND")}
    assert {checker.conversation.client for checker, _ in seen} == {"Pulsar-CPP"}
    assert sum(one.frame.name == "MESSAGE" for _, one in seen if one.frame) >= 1
