"""Messages and message ids that are read from answers of the REST API."""

from __future__ import annotations

import pytest

from pulsarium.client import AdminError, MessageId
from pulsarium.client.admin.entries import messages_of
from pulsarium.client.admin.topics import message_id_of
from pulsarium.proto.batch import pack
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.rest.exchange import RestReply

TOPIC = "persistent://public/default/t"
HEADERS = {
    "x-pulsar-message-id": "3:7",
    "x-pulsar-property": '{"a":"1"}',
    "x-pulsar-publish-time": "2026-11-21T13:14:57.69Z",
    "x-pulsar-event-time": "1970-01-01T00:00:05Z",
    "x-pulsar-producer-name": "p",
    "x-pulsar-sequence-id": "-1",
    "x-pulsar-partition-key": "k",
    "x-pulsar-base64-ordering-key": "b2s=",
    "x-pulsar-is-encrypted": "false",
}


def test_an_answer_is_read_as_one_message() -> None:
    (message,) = messages_of(TOPIC, RestReply(200, HEADERS, b"content"))
    assert (message.data(), message.properties(), message.topic_name()) == (b"content", {"a": "1"}, TOPIC)
    assert message.message_id() == MessageId(3, 7)
    assert (message.publish_timestamp(), message.event_timestamp()) == (1795266897690, 5000)
    assert (message.producer_name(), message.sequence_id()) == ("p", 2**64 - 1)
    assert (message.partition_key(), message.ordering_key()) == ("k", "ok")
    assert not message.has_null_value()


def test_an_answer_with_a_batch_is_read_as_its_messages() -> None:
    singles = [pb.SingleMessageMetadata(payload_size=0, partition_key=str(n)) for n in range(3)]
    body = pack([(single, b"m%d" % n) for n, single in enumerate(singles)])
    found = messages_of(TOPIC, RestReply(200, HEADERS | {"x-pulsar-num-batch-message": "3"}, body))
    assert [(message.data(), message.partition_key()) for message in found] == [
        (b"m0", "0"),
        (b"m1", "1"),
        (b"m2", "2"),
    ]
    assert [message.message_id() for message in found] == [MessageId(3, 7, batch_index=n) for n in range(3)]
    assert found[0].message_id().batch_size == 3


def test_an_encrypted_message_comes_undecrypted() -> None:
    headers = HEADERS | {"x-pulsar-is-encrypted": "true", "x-pulsar-num-batch-message": "3"}
    (message,) = messages_of(TOPIC, RestReply(200, headers, b"cipher"))
    assert message.data() == b"cipher"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-pulsar-message-id": "x"},
        HEADERS | {"x-pulsar-num-batch-message": "2"},
        HEADERS | {"x-pulsar-publish-time": "soon"},
        HEADERS | {"x-pulsar-property": "{"},
    ],
)
def test_an_answer_that_holds_none(headers: dict[str, str]) -> None:
    with pytest.raises(AdminError, match="the broker's answer holds no message"):
        messages_of(TOPIC, RestReply(200, headers, b""))


def test_ids_of_answers_are_message_ids() -> None:
    assert message_id_of({"ledgerId": 1, "entryId": 2, "partitionIndex": 3}) == MessageId(1, 2, 3)
    found = message_id_of({"ledgerId": 1, "entryId": 2, "partitionIndex": -1, "batchSize": 5, "batchIndex": 4})
    assert (found, found.batch_size) == (MessageId(1, 2, batch_index=4), 5)
