"""Options of `df.write` and `writeStream`."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from pyspark.sql.types import BinaryType, StringType, StructType

from pulsarium.client import CompressionType, HashingScheme
from pulsarium.pipeline.options import BadOption
from pulsarium.pipeline.sink import once
from pulsarium.pipeline.sink.options import COMPRESSIONS, OPTIONS, PRODUCER_OPTIONS, SCHEMES, SinkOptions
from pulsarium.pipeline.sink.writers import PulsarStreamWriter, PulsarWriter

GIVEN = {"service.url": "pulsar://here:6650", "topic": "t"}
VALUE = StructType().add("value", BinaryType())


def test_the_sink_has_defaults() -> None:
    """The defaults equal those in the tables of options."""
    options = SinkOptions.of(GIVEN)
    assert options.topic == "t"
    assert options.required is None
    assert (options.is_sorted, options.schema_type, options.busy_timeout) == (False, "avro", 60.0)
    assert options.send_timeout == 30.0
    assert options.producer["compression_type"] is CompressionType.NONE
    shown = {each.name: each.default for each in (*OPTIONS, *PRODUCER_OPTIONS) if each.default}
    del shown["deduplication"], shown["producerName"]  # these defaults are descriptions, and no values
    assert SinkOptions.of({**GIVEN, **shown}) == options
    assert all(each.meaning for each in (*OPTIONS, *PRODUCER_OPTIONS))


def test_the_sink_knows_the_names_of_the_client() -> None:
    assert [*SCHEMES] == [each.name for each in HashingScheme]
    assert [*COMPRESSIONS] == [each.name for each in CompressionType]


def test_as_the_connector_and_java_name_them() -> None:
    options = SinkOptions.of(
        {
            "SERVICE.URL": "pulsar://here:6650",
            "pulsar.producer.compressiontype": "lz4",
            "pulsar.producer.blockIfQueueFull": "true",
            "pulsar.producer.sendTimeoutMs": "0",
            "pulsar.producer.hashingScheme": "Murmur3_32Hash",
            "pulsar.producer.batchingEnabled": "False",
            "pulsar.producer.maxPendingMessages": "7",
            "deduplication": "off",
        }
    )
    assert options.topic is None
    assert options.send_timeout is None
    assert options.required is False
    assert options.hashing_scheme is HashingScheme.Murmur3_32Hash
    assert options.producer["compression_type"] is CompressionType.LZ4
    assert options.most_messages == 1
    assert options.producer["max_pending_messages"] == 7
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"pulsar.producer.nonsense": "1"}, "pulsar.producer.nonsense"),
        ({"maxMessagesPerTrigger": "1"}, 'unknown option "maxMessagesPerTrigger"'),
        ({"pulsar.producer.compressionType": "RAR"}, "compressionType"),
        ({"pulsar.producer.maxPendingMessages": "0"}, "maxPendingMessages"),
        ({"pulsar.producer.blockIfQueueFull": "false"}, "must be true: a task waits"),
        ({"replayOrder": "random"}, "replayOrder"),
        ({"deduplication": "on"}, "required, off"),
        ({"schemaType": "protobuf"}, "schemaType"),
        ({"producerBusyTimeoutMs": "1.5"}, "producerBusyTimeoutMs"),
        ({"batchId": "-1"}, "batchId"),
    ],
)
def test_a_wrong_option_of_the_sink_is_refused_by_its_name(more: dict[str, str], words: str) -> None:
    with pytest.raises(BadOption, match=words):
        SinkOptions.of({**GIVEN, **more})


@pytest.mark.parametrize("kind", [PulsarWriter, PulsarStreamWriter])
class TestWriters:
    @pytest.fixture(autouse=True)
    def deduplicating(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(once, "require_deduplication", lambda connection, topic: None)

    def test_topics_are_append_only(self, kind: Any) -> None:
        with pytest.raises(BadOption, match="append-only"):
            kind(GIVEN, VALUE, True)

    def test_rows_need_a_topic_column_or_option(self, kind: Any) -> None:
        with pytest.raises(BadOption, match="__topic"):
            kind({"service.url": "pulsar://here:6650"}, VALUE, False)
        kind({"service.url": "pulsar://here:6650"}, StructType(VALUE.fields).add("__topic", StringType()), False)

    @pytest.mark.parametrize("option", ["topic", "deadLetterTopic"])
    def test_a_scalable_topic_is_refused(self, kind: Any, option: str) -> None:
        with pytest.raises(BadOption, match="is scalable, and the sink cannot write to it"):
            kind(GIVEN | {option: "topic://public/default/t"}, VALUE, False)

    def test_the_writer_can_be_pickled(self, kind: Any) -> None:
        made = kind(GIVEN, VALUE, False)
        assert vars(pickle.loads(pickle.dumps(made))) == vars(made)


def test_two_jobs_have_different_names() -> None:
    one, other = (PulsarWriter(GIVEN, VALUE, False) for _ in range(2))
    assert one._name != other._name


@pytest.mark.parametrize("alone", [{"producerName": "p"}, {"batchId": "1"}])
def test_a_name_without_a_number(alone: dict[str, str]) -> None:
    with pytest.raises(BadOption, match="needs both producerName and batchId"):
        PulsarWriter({**GIVEN, **alone}, VALUE, False)


def test_a_stream_numbers_its_own_batches() -> None:
    with pytest.raises(BadOption, match=r"df\.write"):
        PulsarStreamWriter({**GIVEN, "deduplication": "off", "batchId": "1"}, VALUE, False)
