"""Batches and receipts by themselves."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.client.errors import InvalidConfiguration, TopicTerminated
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.draft import Draft
from pulsarium.client.producer.options import PartitionsRoutingMode, ProducerOptions
from pulsarium.client.producer.packing import Batch, KeyBatch
from pulsarium.client.producer.receipt import Receipt
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.hostile.clocks import on_both


def draft_of(size: int, number: int, **fields: Any) -> Draft:
    metadata = pb.SingleMessageMetadata(payload_size=size, sequence_id=number, **fields)
    return Draft(metadata, bytes(size), None, Receipt())


@given(st.lists(st.integers(0, 30)), st.integers(1, 5), st.integers(1, 40))
def test_batches_keep_order_and_limits(sizes: list[int], most: int, most_bytes: int) -> None:
    batch, batches = Batch(most, most_bytes), list[list[Draft]]()
    for number, size in enumerate(sizes):
        message = draft_of(size, number)
        if not batch.fits(message):
            batches += batch.take()
        batch.add(message)
        if batch.is_full:
            batches += batch.take()
    batches += batch.take()
    assert [message.sequence_id for one in batches for message in one] == list(range(len(sizes)))
    for one in batches:
        assert len(one) <= most
        assert len(one) <= 1 or sum(len(message.content) for message in one) <= most_bytes
    assert batch.take() == []


@given(st.lists(st.sampled_from([None, "", "a", "b"]), max_size=9))
def test_batches_by_key(keys: list[str | None]) -> None:
    """One for each key, in which its messages keep their order; those whose last message is older go first."""
    batch = KeyBatch(1000, 1000)
    for number, key in enumerate(keys):
        batch.add(draft_of(1, number, partition_key=key))
    batches = batch.take()
    found = [[message.sequence_id for message in one] for one in batches]
    assert found == sorted(
        ([n for n, key in enumerate(keys) if key == own] for own in set(keys)), key=lambda numbers: numbers[-1]
    )
    assert batch.take() == []


def test_ordering_keys_come_before_partition_keys() -> None:
    batch = KeyBatch(1000, 1000)
    for number, (key, ordering) in enumerate([("a", b"1"), ("b", b"1"), ("a", b"2"), ("1", None)]):
        batch.add(draft_of(1, number, partition_key=key, ordering_key=ordering))
    assert [[message.sequence_id for message in one] for one in batch.take()] == [[0, 1], [2], [3]]


@on_both
async def test_a_receipt_has_many_readers() -> None:
    receipt, failing = Receipt(), Receipt()
    found: list[MessageId] = []

    async def wait() -> None:
        found.append(await receipt.wait())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        tasks.start_soon(wait)
        await anyio.lowlevel.checkpoint()
        assert not receipt.is_done()
        receipt._settle(MessageId(1, 2))
    assert found == [await receipt.wait()] * 2
    failing._fail(TopicTerminated("over"))
    assert failing.is_done()
    with pytest.raises(TopicTerminated, match="over"):
        await failing.wait()


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_pending_messages": 0},
        {"max_pending_messages_across_partitions": 0},
        {"chunking_enabled": True},
        {"chunking_enabled": True, "batching_enabled": False, "chunk_max_message_size": -1},
        {"initial_sequence_id": -2},
        {"batching_max_messages": 0},
        {"batching_max_allowed_size_in_bytes": 0},
        {"batching_max_publish_delay": -1.0},
        {"auto_update_partitions_interval": 0.0},
        {"message_routing_mode": PartitionsRoutingMode.CustomPartition},
        {"message_router": lambda message, count: 0},
    ],
)
def test_options_that_make_no_sense(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidConfiguration):
        ProducerOptions("t", **wrong)  # type: ignore[arg-type]
