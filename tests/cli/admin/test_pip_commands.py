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
    """Return the message ids of the request that these options make."""
    assert played.said(*SKIP, "-s", "my-sub", *options) == ""
    (method, path, body) = played.sent[-1]
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
    assert played.sent[-1][1] == SKIP_PATH.replace("my-sub", "other")


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
def test_a_triplet_names_an_entry(played: Played) -> None:
    assert skipped(played, "--messageId-triplet", "12345:100") == [{"ledgerId": 12345, "entryId": 100}]


@pytest.mark.req("S423-80")
def test_a_triplet_names_a_message_of_a_batch(played: Played) -> None:
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


STATS = "persistent/public/default/my-topic/internalStats"
PARTITIONED = "persistent/public/default/my-topic/partitioned-internalStats"


def ledgers(*entries: tuple[int, int], current: int) -> dict[str, object]:
    """Return internal stats as a broker gives them, with the entries of the last ledger in a field of their own."""
    listed = [{"ledgerId": ledger, "entries": count, "size": 100} for ledger, count in entries]
    return {"currentLedgerEntries": current, "lastConfirmedEntry": "9:1", "ledgers": listed}


def noted(played: Played, *ids: str) -> str:
    """Return stderr of a run that skips these messages and prints nothing to stdout."""
    result = played.run(*SKIP, "-s", "my-sub", *(word for each in ids for word in ("--messageId-triplet", each)))
    assert (result.exit_code, result.stdout) == (0, "")
    assert played.sent[-1][:2] == ("POST", SKIP_PATH)
    return result.stderr


NONE = (
    "Warning: nothing is skipped. In the topic's ledgers: 0 of 2 message ids; not there: 5:0, 4:1; "
    f"see pulsarium admin topics stats-internal {TOPIC}\n"
)


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (["3:0", "3:9:2", "9:1"], "In the topic's ledgers: 3 of 3 message ids\n"),
        (["3:9", "3:10", "9:2"], "In the topic's ledgers: 1 of 3 message ids; not there: 3:10, 9:2\n"),
        (
            ["5:0", "4:1"],
            NONE,
        ),
        (["3:0", *(f"4:{n}" for n in range(9))], "In the topic's ledgers: 1 of 10 message ids; not there: "),
    ],
)
def test_a_note_says_how_many_ids_are_in_the_ledgers_of_the_topic(played: Played, ids: list[str], said: str) -> None:
    played.answer("GET", STATS, ledgers((3, 10), (9, 0), current=2))
    found = noted(played, *ids)
    assert found.startswith(said)
    assert len(played.sent) == 2
    if len(ids) > 5:
        assert found.endswith(": 4:0, 4:1, 4:2, 4:3, 4:4 and 4 more\n")


def test_ids_are_looked_for_in_all_partitions(played: Played) -> None:
    played.refuse("GET", STATS, 404, "Topic is partitioned")
    parts = {f"{TOPIC}-partition-{n}": ledgers((n, 0), current=4) for n in range(3)}
    played.answer("GET", PARTITIONED, {"metadata": {"partitions": 3}, "partitions": parts})
    said = "In the topic's ledgers: 2 of 3 message ids; not there: 2:4\n"
    assert noted(played, "0:3", "2:0", "2:4") == said


def test_a_broker_that_does_not_say_which_ledgers_there_are_skips_all_the_same(played: Played) -> None:
    for path in (STATS, PARTITIONED):
        played.refuse("GET", path, 403, "not yours")
    assert noted(played, "3:0") == ""


@pytest.mark.req("S415-37")
def test_get_message_id_by_index(played: Played) -> None:
    played.answer("GET", BY_INDEX_PATH, {"ledgerId": 3, "entryId": 5, "partitionIndex": -1, "batchIndex": -1})
    said = played.said("topics", "get-message-id-by-index", "--index", "12345", "persistent://tenant/ns/topic")
    assert played.sent == [("GET", f"{BY_INDEX_PATH}?index=12345", None)]
    assert '"ledgerId" : 3,\n  "entryId" : 5,' in said


@pytest.mark.req("S415-38")
@pytest.mark.parametrize("index", [[], ["--index", "x"], ["--index"]])
def test_get_message_id_by_index_needs_an_index(index: list[str], played: Played) -> None:
    assert "--index" in played.refused("topics", "get-message-id-by-index", "persistent://tenant/ns/topic", *index)
    assert played.sent == []


def test_an_index_that_is_not_counted_says_what_turns_it_on(played: Played) -> None:
    reason = "GetMessageIDByIndex is not allowed when broker entry metadata is disabled"
    played.refuse("GET", BY_INDEX_PATH, 412, reason)
    said = played.refused("topics", "get-message-id-by-index", "--index", "1", "persistent://tenant/ns/topic")
    assert said.startswith(f"pulsarium: {reason} (off by default; turn it on with: ")
    assert said.count("\n") == 1
    assert "pulsarium serve --set brokerEntryMetadataInterceptors=org.apache.pulsar.common.intercept." in said
    assert "AppendIndexMetadataInterceptor" in said
