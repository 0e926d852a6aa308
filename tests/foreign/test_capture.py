"""Captures of the official Python client by `pulsarium serve --capture`, from the first frame."""

from __future__ import annotations

from pathlib import Path

import pulsar
import pytest

from pulsarium.capture.file import CaptureReader, CaptureRecord
from pulsarium.capture.lint.checker import Walk

from .conftest import Launch


def read(path: Path) -> list[CaptureRecord]:
    return list(CaptureReader().feed(path.read_bytes()))


@pytest.mark.req("W-07", "W-08")
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
    said = {one.frame.name: one.frame.body for _, one in seen if one.frame and one.frame.name.startswith("CONNECT")}
    connect, connected = said["CONNECT"], said["CONNECTED"]
    assert connect.protocol_version == connected.protocol_version == 20
    assert connect.feature_flags.supports_auth_refresh
    assert connect.feature_flags.supports_broker_entry_metadata
    assert connected.feature_flags.supports_topic_watchers
    assert connected.feature_flags.supports_topic_watcher_reconcile
    assert connected.feature_flags.supports_get_partitioned_metadata_without_auto_creation
