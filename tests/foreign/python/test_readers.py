"""Readers: where they start, which messages they read, and when they are at the end."""

from __future__ import annotations

from typing import Any

import pulsar
import pytest

from ..admin import Admin
from .traffic import QUIET_MS, SECONDS, payloads, send_all


def read_to_end(reader: Any) -> list[bytes]:
    got = []
    while reader.has_message_available():
        got.append(reader.read_next(timeout_millis=int(SECONDS * 1000)).data())
    return got


@pytest.mark.req("B-35")
def test_from_the_earliest_message_of_batches_to_the_end(client: Any, topic: str) -> None:
    sent = payloads(250)
    producer = client.create_producer(topic, batching_enabled=True, batching_max_messages=100)
    send_all(producer, sent)
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert read_to_end(reader) == sent
    with pytest.raises(pulsar.Timeout):
        reader.read_next(timeout_millis=QUIET_MS)


@pytest.mark.parametrize("inclusive", [False, True], ids=["after", "inclusive"])
@pytest.mark.parametrize("batched", [False, True], ids=["single", "batched"])
@pytest.mark.req("C-07")
def test_from_a_message_id(client: Any, topic: str, batched: bool, inclusive: bool) -> None:
    sent = payloads(30)
    producer = client.create_producer(topic, batching_enabled=batched, batching_max_messages=10)
    ids = send_all(producer, sent)
    for start in (0, 4, 9, 10, 29):
        reader = client.create_reader(topic, ids[start], start_message_id_inclusive=inclusive)
        assert read_to_end(reader) == sent[start if inclusive else start + 1 :]
        reader.close()


@pytest.mark.req("B-14")
def test_readers_do_not_take_from_each_other_nor_stay(client: Any, admin: Admin, topic: str) -> None:
    sent = payloads(20)
    send_all(client.create_producer(topic), sent)
    readers = [client.create_reader(topic, pulsar.MessageId.earliest) for _ in range(3)]
    assert [read_to_end(reader) for reader in readers] == [sent] * 3
    assert len(admin.stats(topic)["subscriptions"]) == 3
    for reader in readers:
        reader.close()
    assert admin.stats(topic)["subscriptions"] == {}


def test_a_reader_reads_over_partitions(client: Any, admin: Admin, topic: str) -> None:
    admin.create_partitioned(topic, 3)
    sent = payloads(60)
    send_all(client.create_producer(topic), sent)
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert sorted(read_to_end(reader)) == sent


def test_seek_by_id_and_back_to_the_start(client: Any, topic: str) -> None:
    sent = payloads(20)
    ids = send_all(client.create_producer(topic), sent)
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert read_to_end(reader) == sent
    reader.seek(ids[11])
    assert read_to_end(reader) == sent[12:]
    reader.seek(pulsar.MessageId.earliest)
    assert read_to_end(reader) == sent
    reader.seek(pulsar.MessageId.latest)
    assert not reader.has_message_available()
