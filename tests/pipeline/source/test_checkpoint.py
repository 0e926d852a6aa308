"""Subscriptions that a checkpoint names, and their deletion."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyspark.sql.streaming.datasource import ReadAllAvailable

from pulsarium.cli.main import cli
from pulsarium.pipeline.source import subscription
from pulsarium.pipeline.source.checkpoint import NoSubscriptions, subscriptions
from pulsarium.pipeline.source.offsets import Offset, TopicOffset, encode
from pulsarium.pipeline.source.places import ReadPosition
from tests.foreign.broker_process import Address

from .topics import admin, numbers, options, publish, stream_reader

METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{"spark.sql.shuffle.partitions":"2"}}'
ONE, OTHER = (
    encode({"a": TopicOffset(ReadPosition(1, 2))}, "s-1"),
    encode({"b": TopicOffset(ReadPosition(3, 4))}, "s-2"),
)


def write(checkpoint: Path, batch: int, *sources: Offset | None) -> str:
    """Write the offsets of a batch as Spark does. None is a source without offsets."""
    (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
    lines = ["v1", METADATA, *("-" if one is None else json.dumps(one) for one in sources)]
    (checkpoint / "offsets" / str(batch)).write_text("\n".join(lines))
    (checkpoint / "offsets" / f".{batch}.crc").write_bytes(b"crc")
    return str(checkpoint)


def test_the_newest_offsets_name_the_subscriptions(tmp_path: Path) -> None:
    write(tmp_path, 9, encode({"a": TopicOffset(ReadPosition(1, 1))}, "old"))
    assert subscriptions(write(tmp_path, 10, ONE, None, OTHER)) == {"s-1": ["a"], "s-2": ["b"]}
    assert subscriptions(tmp_path.as_uri()) == {"s-1": ["a"], "s-2": ["b"]}


def test_offsets_by_the_name_of_the_source_are_read_too(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text(f"v2\n{METADATA}\n{json.dumps({'0': json.dumps(ONE), '1': None})}")
    assert subscriptions(str(tmp_path)) == {"s-1": ["a"]}


def test_a_checkpoint_without_a_subscription_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoSubscriptions, match="no checkpoint of a query that has run"):
        subscriptions(str(tmp_path))
    write(tmp_path, 0, {"other": {"offset": "3"}})
    with pytest.raises(NoSubscriptions, match="does not read Pulsar: name the checkpointLocation"):
        subscriptions(str(tmp_path))


def abandon(broker: Address, checkpoint: str) -> Result:
    return CliRunner().invoke(cli, ["abandon", checkpoint, "--url", broker.service_url])


def test_the_subscriptions_of_a_stopped_query_are_deleted(
    broker: Address, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription, "TAKEOVER", 0.0)
    publish(broker, topic, numbers(3))
    reader = stream_reader(options(broker, topic, startingOffsets="earliest"))
    checkpoint = write(tmp_path, 0, reader.latestOffset(reader.initialOffset(), ReadAllAvailable()))
    result = abandon(broker, checkpoint)
    assert (result.exit_code, "the query still runs" in result.output) == (1, True)
    reader.stop()
    result = abandon(broker, checkpoint)
    assert (result.output, result.exit_code) == (f"{topic}: deleted the subscription\n", 0)
    assert admin(broker, lambda found: found.topics.get_subscriptions(topic)) == []


def test_a_topic_that_was_deleted_is_not_made_again(broker: Address, topic: str, tmp_path: Path) -> None:
    result = abandon(broker, write(tmp_path, 0, encode({topic: TopicOffset(ReadPosition(1, 2))}, "s")))
    assert (result.output, result.exit_code) == ("", 0)
    assert topic not in admin(broker, lambda found: found.topics.get_list("public/default"))


def test_a_folder_that_is_no_checkpoint_is_a_wrong_command_line(broker: Address, tmp_path: Path) -> None:
    result = abandon(broker, str(tmp_path))
    assert (result.exit_code, "no checkpoint" in result.output) == (2, True)
