"""The two commands that PIP-423 and PIP-415 add to the released tool."""

from __future__ import annotations

import base64

import pytest

from pulsarium.proto.message_id import MessageId

from .conftest import Played

TOPIC = "persistent://public/default/my-topic"
SKIP = f"topics skip-messages {TOPIC}".split()
SKIP_PATH = "persistent/public/default/my-topic/subscription/my-sub/skipByMessageIds"
BY_INDEX_PATH = "persistent/tenant/ns/topic/getMessageIdByIndex"


def skipped(played: Played, *options: str) -> list[dict[str, int]]:
    """The ids of the one request that these options make."""
    assert played.said(*SKIP, "-s", "my-sub", *options) == ""
    ((method, path, body),) = played.sent
    assert (method, path, body["type"]) == ("POST", SKIP_PATH, "messageId")
    ids: list[dict[str, int]] = body["messageIds"]
    return ids


@pytest.mark.req("S423-75", "SREV-11")
def test_skip_messages_says_what_it_does(played: Played) -> None:
    said = played.said("topics", "skip-messages", "--help")
    assert "Skip some messages for a subscription by their message IDs." in said
    assert "--messageId-triplet" in said
    assert "skip-messages" in played.said("topics", "--help")
    assert "\n  skip  " in played.said("topics", "--help")


@pytest.mark.req("S423-76")
def test_skip_messages_needs_a_subscription(played: Played) -> None:
    assert "'--subscription' / '-s'" in played.refused(*SKIP, "--messageId-triplet", "1:2")
    assert played.sent == []
    played.said(*SKIP, "--subscription", "other", "--messageId-triplet", "1:2")
    assert played.sent[0][1] == SKIP_PATH.replace("my-sub", "other")


@pytest.mark.req("S423-77")
def test_triplets_may_be_repeated(played: Played) -> None:
    ids = skipped(played, "--messageId-triplet", "1:2", "--messageId-triplet", "3:4:5")
    assert ids == [{"ledgerId": 1, "entryId": 2}, {"ledgerId": 3, "entryId": 4, "batchIndex": 5}]


@pytest.mark.req("S423-78")
def test_serialized_ids_may_be_repeated(played: Played) -> None:
    texts = [base64.b64encode(MessageId(7, entry).to_bytes()).decode() for entry in (1, 2)]
    ids = skipped(played, "--messageId-base64", texts[0], "--messageId-base64", texts[1])
    assert ids == [{"ledgerId": 7, "entryId": 1}, {"ledgerId": 7, "entryId": 2}]


def test_a_serialized_id_of_a_batch_keeps_its_index_and_leaves_its_partition(played: Played) -> None:
    text = base64.b64encode(MessageId(7, 1, partition=3, batch_index=4, batch_size=9).to_bytes()).decode()
    assert skipped(played, "--messageId-base64", text) == [{"ledgerId": 7, "entryId": 1, "batchIndex": 4}]


@pytest.mark.req("S423-79")
def test_example_1(played: Played) -> None:
    assert skipped(played, "--messageId-triplet", "12345:100") == [{"ledgerId": 12345, "entryId": 100}]


@pytest.mark.req("S423-80")
def test_example_2(played: Played) -> None:
    assert skipped(played, "--messageId-triplet", "12345:101:3") == [
        {"ledgerId": 12345, "entryId": 101, "batchIndex": 3}
    ]


@pytest.mark.req("S423-81")
def test_example_3_becomes_one_format(played: Played) -> None:
    ids = skipped(played, "--messageId-triplet", "12345:102", "--messageId-base64", "CLlgEAQwAA==")
    assert ids == [{"ledgerId": 12345, "entryId": 102}, {"ledgerId": 12345, "entryId": 4}]


@pytest.mark.req("S423-82")
@pytest.mark.parametrize(
    "triplet", ["1:2:3:4", "a:b", "1", "", "1:", ":2", "1:-1", "1:2:", "1:2:x", "1 :2", f"{2**63}:1"]
)
def test_a_bad_triplet_is_not_sent(triplet: str, played: Played) -> None:
    said = played.refused(*SKIP, "-s", "my-sub", "--messageId-triplet", "5:6", "--messageId-triplet", triplet)
    assert "--messageId-triplet" in said
    assert played.sent == []


@pytest.mark.parametrize("text", ["", "%%%", "AA", base64.b64encode(b"\xff\xff").decode()])
def test_a_bad_serialized_id_is_not_sent(text: str, played: Played) -> None:
    assert "--messageId-base64" in played.refused(*SKIP, "-s", "my-sub", "--messageId-base64", text)
    assert played.sent == []


@pytest.mark.req("S423-83")
def test_no_id_at_all_is_not_sent(played: Played) -> None:
    said = played.refused(*SKIP, "-s", "my-sub")
    assert "--messageId-triplet" in said
    assert "--messageId-base64" in said
    assert played.sent == []


@pytest.mark.req("S415-37")
def test_get_message_id_by_index(played: Played) -> None:
    played.answer("GET", BY_INDEX_PATH, {"ledgerId": 3, "entryId": 5, "partitionIndex": -1, "batchIndex": -1})
    said = played.said("topics", "get-message-id-by-index", "--index", "12345", "persistent://tenant/ns/topic")
    assert played.sent == [("GET", f"{BY_INDEX_PATH}?index=12345", None)]
    assert '"ledgerId" : 3,\n  "entryId" : 5,' in said


@pytest.mark.req("S415-38")
@pytest.mark.parametrize("index", [[], ["--index", "x"], ["--index"]])
def test_get_message_id_by_index_needs_one(index: list[str], played: Played) -> None:
    assert "--index" in played.refused("topics", "get-message-id-by-index", "persistent://tenant/ns/topic", *index)
    assert played.sent == []


def test_an_index_that_is_not_counted_says_what_turns_it_on(played: Played) -> None:
    reason = "GetMessageIDByIndex is not allowed when broker entry metadata is disabled"
    played.refuse("GET", BY_INDEX_PATH, 412, reason)
    said = played.refused("topics", "get-message-id-by-index", "--index", "1", "persistent://tenant/ns/topic")
    assert said.startswith(f"{reason}\n\nReason: {reason}\n")
    assert "pulsarium serve --set brokerEntryMetadataInterceptors=org.apache.pulsar.common.intercept." in said
    assert "AppendIndexMetadataInterceptor" in said
