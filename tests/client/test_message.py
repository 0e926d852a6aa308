"""Keys and properties of messages, and their metadata."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.client import Message, MessageId
from pulsarium.client.producer.draft import Draft, draft
from pulsarium.client.producer.packing import metadata_of
from pulsarium.proto.generated import PulsarApi_pb2 as pb

ENTRY = pb.MessageMetadata(producer_name="p", sequence_id=0, publish_time=1)


def single(sent: Draft) -> Message[Any]:
    """Return a message with an entry of its own, and with the metadata that a producer writes."""
    return Message("t", MessageId(1, 1), metadata_of("p", [sent], 0), None, b"")


def batched(sent: Draft) -> Message[Any]:
    return Message("t", MessageId(1, 1, 0, 0, 1), ENTRY, sent.metadata, b"")


@pytest.mark.parametrize("received", [single, batched])
@pytest.mark.parametrize(
    ("key", "text", "in_bytes"),
    [
        (None, "", None),
        ("", "", b""),
        ("é", "é", "é".encode()),
        (b"", "", b""),
        (b"text", "dGV4dA==", b"text"),
        (b"\xff", "/w==", b"\xff"),
    ],
)
def test_keys_are_texts_and_bytes(received: Any, key: str | bytes | None, text: str, in_bytes: bytes | None) -> None:
    message = received(draft(b"", partition_key=key))
    assert message.has_partition_key() is (key is not None)
    assert message.partition_key() == text
    assert message.key_bytes() == in_bytes


def test_a_batch_has_the_key_of_its_first_message() -> None:
    metadata = metadata_of("p", [draft(b"", partition_key=b"\xff"), draft(b"", partition_key=b"x")], 0)
    assert (metadata.partition_key, metadata.partition_key_b64_encoded) == ("/w==", True)
    metadata = metadata_of("p", [draft(b"", partition_key="k"), draft(b"", partition_key=b"x")], 0)
    assert (metadata.partition_key, metadata.HasField("partition_key_b64_encoded")) == ("k", False)


def test_a_key_that_only_claims_to_be_base64() -> None:
    metadata = pb.SingleMessageMetadata(payload_size=0, partition_key="no base64!", partition_key_b64_encoded=True)
    assert Message("t", MessageId(1, 1), ENTRY, metadata, b"").key_bytes() == b"no base64!"


@pytest.mark.parametrize("properties", [{}, {"a": "b"}, {"a": "", "é": "c", "d": "e"}])
def test_properties_come_back(properties: dict[str, str]) -> None:
    assert batched(draft(b"", properties=properties)).properties() == properties
