"""The recorded scenarios: each is a program of a WebSocket client, with the admin API beside it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

from .player import Play

Scenario = Callable[[Play], None]
SCENARIOS: Final[dict[str, Scenario]] = {}


def scenario(play: Scenario) -> Scenario:
    """Register a scenario under the name of its function."""
    SCENARIOS[play.__name__.replace("_", "-")] = play
    return play


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def message(text: str, **fields: Any) -> dict[str, Any]:
    return {"payload": b64(text.encode()), **fields}


def produce(play: Play, *texts: str, topic: str = "", query: str = "", **fields: Any) -> list[Any]:
    """Publish messages through a producer of their own. Return the answers."""
    play.open("filler", f"v2/producer/{topic or play.topic}", query)
    found = [play.send("filler", message(text, **fields), 1)[0]["json"] for text in texts]
    play.leave("filler")
    return found


def consumer(play: Play, query: str = "", subscription: str = "sub", name: str = "c") -> int:
    return play.open(name, f"v2/consumer/{play.topic}/{subscription}", query)


def acknowledge(play: Play, found: list[Any], name: str = "c", kind: str | None = None) -> None:
    for each in found:
        play.send(name, {"messageId": each["messageId"], **({} if kind is None else {"type": kind})})


# producers


@scenario
def producer_plain(play: Play) -> None:
    play.open("p", f"v2/producer/{play.topic}")
    play.send("p", message("one"), 1)
    play.send("p", message("two", context="2"), 1)
    play.send("p", message("", context="empty"), 1)
    play.leave("p")


@scenario
def producer_fields(play: Play) -> None:
    consumer(play)
    produce(play, "x", key="k", properties={"a": "1", "b": "ü"}, context="c", eventTime="2024-01-02T03:04:05.678Z")
    produce(play, "y", replicationClusters=["standalone"], sequenceId=7, disableReplication=True, schemaVersion=3)
    produce(play, "z", eventTime="2024-01-02T03:04:05+02:00", unknownField=1)
    play.messages("c", 3)
    play.leave()


@scenario
def producer_bad_frames(play: Play) -> None:
    play.open("p", f"v2/producer/{play.topic}")
    play.send("p", "{", 1)
    play.send("p", "not json", 1)
    play.send("p", "", 1)
    play.send("p", "null", 1)
    play.send("p", "[]", 1)
    play.send("p", {"context": "no payload"}, 1)
    play.send("p", {"payload": "?!", "context": "1"}, 1)
    play.send("p", {"payload": "YQ", "context": "unpadded"}, 1)
    play.send("p", {"payload": "YWJjZA", "context": "unpadded"}, 1)
    play.send("p", {"payload": "a", "context": "short"}, 1)
    play.send("p", {"payload": "YWI=c", "context": "after the padding"}, 1)
    play.send("p", {"payload": 5, "context": "number"}, 1)
    play.send("p", message("x", eventTime="yesterday", context="2"), 1)
    play.send("p", message("x", properties="text"), 1)
    play.send("p", message("x", deliverAt="soon"), 1)
    play.send("p", message("still there"), 1)
    play.leave("p")


@scenario
def producer_delayed(play: Play) -> None:
    consumer(play, "subscriptionType=Shared")
    play.open("p", f"v2/producer/{play.topic}")
    play.send("p", message("late", deliverAfterMs=3_600_000), 1)
    play.send("p", message("at", deliverAt=4_000_000_000_000), 1)
    play.send("p", message("soon"), 1)
    play.messages("c", 1)
    play.leave()


@scenario
def producer_batches(play: Play) -> None:
    consumer(play)
    play.open(
        "p", f"v2/producer/{play.topic}", "batchingEnabled=true&batchingMaxMessages=3&batchingMaxPublishDelay=60000"
    )
    for text in ("a", "b", "c"):
        play.send("p", message(text, key=text, properties={"n": text}, context=text))
    play.take("p", 3)
    found = play.messages("c", 3)
    acknowledge(play, found)
    play.leave()


@scenario
def producer_compression(play: Play) -> None:
    consumer(play)
    for kind in ("LZ4", "ZLIB", "ZSTD", "SNAPPY", "NONE"):
        produce(play, "text " * 50 + kind, query=f"compressionType={kind}")
    play.messages("c", 5)
    play.leave()


@scenario
def producer_wrong_options(play: Play) -> None:
    path = f"v2/producer/{play.topic}"
    for query in (
        "compressionType=lz4",
        "compressionType=GZIP",
        "messageRoutingMode=Random",
        "hashingScheme=Md5",
        "sendTimeoutMillis=soon",
        "sendTimeoutMillis=-1",
        "batchingEnabled=true&batchingMaxMessages=0",
        "batchingEnabled=true&batchingMaxMessages=x",
        "batchingEnabled=true&batchingMaxPublishDelay=0",
        "batchingEnabled=true&maxPendingMessages=-1",
        "initialSequenceId=x",
        "initialSequenceId=-5",
        "producerName=%20",
        "encryptionKeys=k1",
    ):
        if play.open("p", path, query) == 101:
            play.leave("p")


@scenario
def producer_options(play: Play) -> None:
    path = f"v2/producer/{play.topic}"
    for query in (
        "producerName=named&initialSequenceId=41",
        "sendTimeoutMillis=0",
        "batchingEnabled=maybe&batchingMaxMessages=0",
        "messageRoutingMode=CustomPartition",
        "hashingScheme=Murmur3_32Hash&messageRoutingMode=RoundRobinPartition",
        "maxPendingMessages=1",
        "noSuchOption=1",
        "producerName=first&producerName=second",
    ):
        play.open("p", path, query)
        play.send("p", message("x"), 1)
        play.leave("p")


@scenario
def producer_names(play: Play) -> None:
    play.open("a", f"v2/producer/{play.topic}", "producerName=same")
    play.open("b", f"v2/producer/{play.topic}", "producerName=same")
    play.send("a", message("x"), 1)
    play.leave("a")
    play.open("b", f"v2/producer/{play.topic}", "producerName=same")
    play.leave("b")


@scenario
def producer_refused(play: Play) -> None:
    for path in (
        "v2/producer/persistent/public/nowhere/t",
        "v2/producer/persistent/nobody/default/t",
        "v2/producer/persistent/public/default/",
        "v2/producer/persistent/public/default",
        "v2/producer/other/public/default/t",
        "v2/producer/persistent/pub$lic/default/t",
        "producer/persistent/public/standalone/default/t",
        "v3/producer/persistent/public/default/t",
        "v2/nothing/persistent/public/default/t",
        "v2/producer",
        "v2",
    ):
        if play.open("p", path) == 101:
            play.leave("p")


@scenario
def producer_topic_names(play: Play) -> None:
    for name in ("with%2Fslash", "with%20blank", "%C3%BC", "plus+sign", "per%25cent"):
        topic = f"{play.topic}-{name}"
        if play.open("p", f"v2/producer/{topic}") == 101:
            play.send("p", message(name), 1)
            play.leave("p")


@scenario
def producer_extra_parts(play: Play) -> None:
    for name in ("with/slash", "double//slash"):
        if play.open("p", f"v2/producer/{play.topic}-{name}") == 101:
            play.leave("p")


@scenario
def producer_no_auto_creation(play: Play) -> None:
    play.rest("PUT", "/admin/v2/namespaces/public/ws-fixed", {"replication_clusters": ["standalone"]})
    off = {"allowAutoTopicCreation": False, "topicType": "non-partitioned"}
    play.rest("POST", "/admin/v2/namespaces/public/ws-fixed/autoTopicCreation", off)
    play.open("p", "v2/producer/persistent/public/ws-fixed/absent")
    play.open("c", "v2/consumer/persistent/public/ws-fixed/absent/sub")
    play.open("r", "v2/reader/persistent/public/ws-fixed/absent")
    play.rest("PUT", "/admin/v2/persistent/public/ws-fixed/there")
    play.open("p", "v2/producer/persistent/public/ws-fixed/there")
    play.send("p", message("x"), 1)
    play.leave()


@scenario
def producer_terminated(play: Play) -> None:
    play.open("p", f"v2/producer/{play.topic}")
    play.send("p", message("last"), 1)
    play.rest("POST", f"/admin/v2/{play.topic}/terminate")
    play.leave("p")
    play.open("p", f"v2/producer/{play.topic}")
    play.leave()


@scenario
def producer_quota(play: Play) -> None:
    consumer(play)
    play.leave("c")
    produce(play, "x" * 1000)
    play.rest("PUT", "/admin/v2/namespaces/public/ws-quota", {"replication_clusters": ["standalone"]})
    topic = "persistent/public/ws-quota/full"
    play.rest(
        "POST",
        "/admin/v2/namespaces/public/ws-quota/maxProducersPerTopic",
        1,
    )
    play.open("a", f"v2/producer/{topic}")
    play.open("b", f"v2/producer/{topic}")
    play.leave("a")


@scenario
def producer_encryption_required(play: Play) -> None:
    play.rest("PUT", "/admin/v2/namespaces/public/ws-secret", {"replication_clusters": ["standalone"]})
    play.rest("POST", "/admin/v2/namespaces/public/ws-secret/encryptionRequired", True)
    topic = "persistent/public/ws-secret/t"
    play.open("p", f"v2/producer/{topic}", f"encryptionKeys={encryption_keys()}")
    play.send("p", message("sealed", encryptionParam=b64(b"iv")), 1)
    play.leave()


def encryption_keys(**changed: Any) -> str:
    keys = {"k1": {"keyValue": b64(b"sealed data key"), "metadata": {"version": "1"}}, **changed}
    return quote(b64(json.dumps(keys).encode()))


@scenario
def encryption(play: Play) -> None:
    consumer(play, "cryptoFailureAction=CONSUME")
    play.open("r", f"v2/reader/{play.topic}", "cryptoFailureAction=CONSUME")
    play.open("p", f"v2/producer/{play.topic}", f"encryptionKeys={encryption_keys()}")
    play.send("p", message("sealed", encryptionParam=b64(b"iv"), key="k"), 1)
    play.send("p", message("no parameter", context="1"), 1)
    play.send("p", message("bad parameter", encryptionParam="?", context="2"), 1)
    sized = {"compressionType": "LZ4", "uncompressedMessageSize": 40, "encryptionParam": b64(b"iv")}
    play.send("p", message("compressed before", context="3", **sized), 1)
    play.send("p", message("half", compressionType="ZSTD", context="4"), 1)
    play.send("p", message("half", uncompressedMessageSize=4, context="5"), 1)
    play.send("p", message("none", compressionType="NONE", context="6"), 1)
    play.send("p", message("wrong", compressionType="GZIP", context="7"), 1)
    acknowledge(play, play.messages("c", 5))
    play.messages("r", 5)
    play.leave()


@scenario
def encryption_wrong_keys(play: Play) -> None:
    for keys in (
        encryption_keys(**{" ": {"keyValue": b64(b"x")}}),
        encryption_keys(k2=None),
        encryption_keys(k2={"keyValue": None}),
        quote(b64(b"{}")),
        quote(b64(b"[]")),
        "",
    ):
        if play.open("p", f"v2/producer/{play.topic}", f"encryptionKeys={keys}") == 101:
            play.send("p", message("x"), 1)
            play.leave("p")
    for action in ("FAIL", "DISCARD", "CONSUME", "OTHER"):
        if consumer(play, f"cryptoFailureAction={action}", "crypto") == 101:
            play.leave("c")


# consumers


@scenario
def consumer_plain(play: Play) -> None:
    consumer(play)
    produce(play, "1", "2", "3")
    acknowledge(play, play.messages("c", 3))
    play.ping("c")
    play.leave("c")
    consumer(play)
    produce(play, "4")
    acknowledge(play, play.messages("c", 1))
    play.leave()


@scenario
def consumer_unacknowledged(play: Play) -> None:
    consumer(play)
    produce(play, "1", "2", "3")
    found = play.messages("c", 3)
    acknowledge(play, found[1:2])
    play.leave("c")
    consumer(play)
    play.messages("c", 2)
    play.leave()


@scenario
def consumer_types(play: Play) -> None:
    for kind in ("Exclusive", "Shared", "Failover", "Key_Shared"):
        consumer(play, f"subscriptionType={kind}&consumerName=first", kind)
        consumer(play, f"subscriptionType={kind}&consumerName=second", kind, "d")
        play.leave()
    for query in ("subscriptionType=exclusive", "subscriptionType=KeyShared", "subscriptionType="):
        consumer(play, query)


@scenario
def consumer_type_conflict(play: Play) -> None:
    consumer(play, "subscriptionType=Shared")
    consumer(play, "subscriptionType=Exclusive", name="d")
    consumer(play, "subscriptionType=Failover", name="d")
    play.leave()


@scenario
def consumer_modes(play: Play) -> None:
    produce(play, "before")
    consumer(play, "subscriptionMode=NonDurable&subscriptionInitialPosition=Earliest", "n")
    play.messages("c", 1)
    play.leave("c")
    consumer(play, "subscriptionMode=Durable&subscriptionInitialPosition=Latest", "l")
    produce(play, "after")
    play.messages("c", 1)
    play.leave("c")
    consumer(play, "subscriptionMode=Sometimes", "x")
    consumer(play, "subscriptionInitialPosition=Middle", "x")


@scenario
def consumer_wrong_options(play: Play) -> None:
    for query in (
        "ackTimeoutMillis=10",
        "ackTimeoutMillis=x",
        "receiverQueueSize=-1",
        "receiverQueueSize=x",
        "priorityLevel=-1",
        "priorityLevel=x",
        "consumerName=",
        "negativeAckRedeliveryDelay=-1",
        "negativeAckRedeliveryDelay=x",
        "maxRedeliverCount=0",
        "maxRedeliverCount=x",
        "deadLetterTopic=t",
        "maxRedeliverCount=1&subscriptionType=Exclusive",
        "noSuchOption=1",
    ):
        if consumer(play, query) == 101:
            play.leave("c")


@scenario
def consumer_refused(play: Play) -> None:
    for path in (
        f"v2/consumer/{play.topic}/",
        f"v2/consumer/{play.topic}",
        "v2/consumer/persistent/public/default",
        "v2/consumer/persistent/public/nowhere/t/sub",
        "v2/consumer/other/public/default/t/sub",
        "consumer/persistent/public/standalone/default/t/sub",
        f"v2/consumer/{play.topic}/sub%2Fslash",
        f"v2/consumer/{play.topic}/s%C3%BCb",
    ):
        if play.open("c", path) == 101:
            play.asked(f"/admin/v2/{play.topic}/subscriptions")
            play.leave("c")


@scenario
def consumer_bad_frames(play: Play) -> None:
    for frame in (
        "{",
        "",
        "null",
        {},
        {"messageId": "?"},
        {"messageId": b64(b"nothing")},
        {"messageId": ""},
        {"type": "permit"},
        {"type": "permit", "permitMessages": "many"},
        {"type": "negativeAcknowledge"},
        {"type": "negativeAcknowledge", "messageId": "?"},
        {"messageId": b64(b"\x08\x01\x10\x01"), "unknown": 1},
        {"type": "isEndOfTopic", "unknown": 1},
        {"type": "other"},
    ):
        consumer(play)
        play.send("c", frame)
        play.send("c", {"type": "isEndOfTopic"})
        play.take("c", 1)
        if "closed" not in play.lines[-1]:
            play.leave("c")


@scenario
def consumer_queue_of_two(play: Play) -> None:
    consumer(play, "receiverQueueSize=2")
    produce(play, *"12345")
    found = play.messages("c", 2)
    play.ping("c")
    acknowledge(play, found[:1])
    found += play.messages("c", 1)
    acknowledge(play, found[1:2])
    play.messages("c", 1)
    play.leave()


@scenario
def consumer_queue_of_zero(play: Play) -> None:
    consumer(play, "receiverQueueSize=0")
    produce(play, *"123")
    for _ in range(3):
        acknowledge(play, play.messages("c", 1))
    play.leave()


@scenario
def consumer_pull(play: Play) -> None:
    consumer(play, "pullMode=true")
    produce(play, *"12345")
    play.ping("c")
    play.send("c", {"type": "permit", "permitMessages": 2})
    acknowledge(play, play.messages("c", 2))
    play.ping("c")
    play.send("c", {"type": "permit", "permitMessages": 1})
    acknowledge(play, play.messages("c", 1))
    play.send("c", {"type": "permit", "permitMessages": 100})
    acknowledge(play, play.messages("c", 2))
    produce(play, "6")
    play.messages("c", 1)
    play.leave()


@scenario
def consumer_permits_without_pull(play: Play) -> None:
    consumer(play, "receiverQueueSize=1")
    produce(play, *"12")
    found = play.messages("c", 1)
    play.send("c", {"type": "permit", "permitMessages": 5})
    play.ping("c")
    acknowledge(play, found)
    play.messages("c", 1)
    play.leave()


@scenario
def consumer_nack(play: Play) -> None:
    consumer(play, "subscriptionType=Shared&negativeAckRedeliveryDelay=100")
    produce(play, "1", "2")
    found = play.messages("c", 2)
    acknowledge(play, found[:1], kind="negativeAcknowledge")
    acknowledge(play, found[1:])
    again = play.messages("c", 1)
    acknowledge(play, again, kind="negativeAcknowledge")
    acknowledge(play, play.messages("c", 1))
    play.leave()


@scenario
def consumer_nack_exclusive(play: Play) -> None:
    consumer(play, "negativeAckRedeliveryDelay=100")
    produce(play, "1", "2")
    found = play.messages("c", 2)
    acknowledge(play, found[1:], kind="negativeAcknowledge")
    acknowledge(play, play.messages("c", 2))
    play.leave()


@scenario
def consumer_ack_timeout(play: Play) -> None:
    consumer(play, "subscriptionType=Shared&ackTimeoutMillis=1000")
    produce(play, "1")
    play.messages("c", 1)
    acknowledge(play, play.messages("c", 1))
    play.leave()


@scenario
def consumer_dead_letters(play: Play) -> None:
    query = "subscriptionType=Shared&negativeAckRedeliveryDelay=100&maxRedeliverCount=1"
    consumer(play, query)
    play.open("dead", f"v2/consumer/{play.topic}-sub-DLQ/letters")
    produce(play, "bad", properties={"a": "1"}, key="k")
    acknowledge(play, play.messages("c", 1), kind="negativeAcknowledge")
    acknowledge(play, play.messages("c", 1), kind="negativeAcknowledge")
    acknowledge(play, play.messages("dead", 1), "dead")
    produce(play, "good")
    acknowledge(play, play.messages("c", 1))
    play.leave()


@scenario
def consumer_dead_letters_named(play: Play) -> None:
    query = "subscriptionType=Shared&negativeAckRedeliveryDelay=100&maxRedeliverCount=1"
    consumer(play, f"{query}&deadLetterTopic=ws-letters")
    play.open("dead", "v2/consumer/persistent/public/default/ws-letters/letters")
    produce(play, "bad")
    for _ in range(2):
        acknowledge(play, play.messages("c", 1), kind="negativeAcknowledge")
    acknowledge(play, play.messages("dead", 1), "dead")
    play.leave()


@scenario
def consumer_unsubscribe(play: Play) -> None:
    consumer(play)
    play.send("c", {"type": "unsubscribe"})
    play.send("c", {"type": "isEndOfTopic"}, 1)
    play.asked(f"/admin/v2/{play.topic}/subscriptions")
    play.leave()


@scenario
def consumer_end_of_topic(play: Play) -> None:
    consumer(play)
    play.open("r", f"v2/reader/{play.topic}", "messageId=earliest")
    produce(play, "1")
    acknowledge(play, play.messages("c", 1))
    play.messages("r", 1)
    play.send("c", {"type": "isEndOfTopic"}, 1)
    play.send("r", {"type": "isEndOfTopic"}, 1)
    play.rest("POST", f"/admin/v2/{play.topic}/terminate")
    for name in ("c", "r"):  # both have read all messages
        while not play.send(name, {"type": "isEndOfTopic"}, 1)[0]["json"]["endOfTopic"]:
            play.lines.pop()  # the end of the topic may arrive a little later
    play.leave()


@scenario
def consumer_batch_partly_acknowledged(play: Play) -> None:
    consumer(play, "subscriptionType=Shared")
    query = "batchingEnabled=true&batchingMaxMessages=3&batchingMaxPublishDelay=60000"
    play.open("p", f"v2/producer/{play.topic}", query)
    for text in "abc":
        play.send("p", message(text))
    play.take("p", 3)
    acknowledge(play, play.messages("c", 3)[:1])
    play.leave("c")
    consumer(play, "subscriptionType=Shared")
    acknowledge(play, play.messages("c", 2))
    play.leave("c")
    consumer(play, "subscriptionType=Shared")
    play.send("p", message("next"))
    play.leave("p")
    play.leave()


@scenario
def consumer_unloaded(play: Play) -> None:
    consumer(play)
    play.open("p", f"v2/producer/{play.topic}")
    play.send("p", message("1"), 1)
    found = play.messages("c", 1)
    play.rest("PUT", f"/admin/v2/{play.topic}/unload")
    play.send("p", message("2"), 1)
    found = play.messages("c", 2)
    acknowledge(play, found)
    play.leave()


# readers


@scenario
def reader_starts(play: Play) -> None:
    sent = produce(play, *"123")
    play.open("early", f"v2/reader/{play.topic}", "messageId=earliest&readerName=r")
    play.messages("early", 3)
    play.open("middle", f"v2/reader/{play.topic}", f"messageId={quote(sent[0]['messageId'])}")
    play.messages("middle", 2)
    play.open("late", f"v2/reader/{play.topic}", "messageId=latest")
    play.open("default", f"v2/reader/{play.topic}", "messageId=")
    produce(play, "4")
    for name in ("early", "middle", "late", "default"):
        play.messages(name, 1)
    play.leave()
    for query in ("messageId=nothing", "messageId=%3F", f"messageId={b64(b'x')}", "receiverQueueSize=x"):
        play.open("r", f"v2/reader/{play.topic}", query)


@scenario
def reader_queue(play: Play) -> None:
    produce(play, *"1234")
    play.open("r", f"v2/reader/{play.topic}", "messageId=earliest&receiverQueueSize=2")
    found = play.messages("r", 2)
    play.ping("r")
    acknowledge(play, found[:1], "r")
    play.messages("r", 1)
    play.send("r", {"type": "permit"})
    play.messages("r", 1)
    play.leave("r")


@scenario
def reader_bad_frames(play: Play) -> None:
    play.open("r", f"v2/reader/{play.topic}", "messageId=earliest")
    play.send("r", "{")
    play.send("r", {"type": "isEndOfTopic"}, 1)
    play.send("r", "null", 1)
    play.open("r", "v2/reader/persistent/public/default")
    play.open("r", "v2/reader/persistent/public/nowhere/t")
    play.open("r", "v2/reader/persistent/public/default/t/more", "cryptoFailureAction=OTHER")


# kinds of topics


@scenario
def non_persistent(play: Play) -> None:
    topic = f"non-persistent/public/default/ws-{play.name}"
    play.open("c", f"v2/consumer/{topic}/sub")
    play.open("r", f"v2/reader/{topic}")
    play.open("p", f"v2/producer/{topic}")
    play.send("p", message("1", key="k"), 1)
    acknowledge(play, play.messages("c", 1))
    play.messages("r", 1)
    play.leave()


@scenario
def partitioned(play: Play) -> None:
    play.rest("PUT", f"/admin/v2/{play.topic}/partitions", 3)
    consumer(play, "subscriptionType=Shared")
    play.open("p", f"v2/producer/{play.topic}", "messageRoutingMode=SinglePartition&hashingScheme=Murmur3_32Hash")
    for key in "abcdef":
        play.send("p", message(key, key=key), 1)
        acknowledge(play, play.messages("c", 1))
    play.leave("p")
    play.open("p", f"v2/producer/{play.topic}", "messageRoutingMode=SinglePartition")
    for key in "abc":
        play.send("p", message(key, key=key), 1)
        acknowledge(play, play.messages("c", 1))
    play.leave()


@scenario
def partitioned_reader(play: Play) -> None:
    play.rest("PUT", f"/admin/v2/{play.topic}/partitions", 2)
    produce(play, "1", key="a")
    play.open("r", f"v2/reader/{play.topic}", "messageId=earliest")
    play.messages("r", 1)
    play.send("r", {"type": "isEndOfTopic"}, 1)
    play.open("one", f"v2/reader/{play.topic}-partition-0", "messageId=earliest")
    play.leave()


@scenario
def multi_topics(play: Play) -> None:
    first, second = (f"{play.topic}-{name}" for name in "ab")
    names = ",".join(f"persistent://{topic.partition('/')[2]}" for topic in (first, second))
    play.open("c", "v3/consumer/sub", f"topics={names}&subscriptionType=Shared")
    for topic in (first, second):
        produce(play, topic[-1], topic=topic)
        acknowledge(play, play.messages("c", 1))
    play.send("c", {"type": "isEndOfTopic"}, 1)
    play.leave()


@scenario
def topics_pattern(play: Play) -> None:
    topic = f"{play.topic}-one"
    produce(play, "before", topic=topic)
    pattern = quote(f"persistent://public/default/ws-{play.name}-.*")
    play.open("c", "v3/consumer/sub", f"topicsPattern={pattern}&subscriptionInitialPosition=Earliest")
    acknowledge(play, play.messages("c", 1))
    produce(play, "after", topic=topic)
    acknowledge(play, play.messages("c", 1))
    play.leave()


@scenario
def multi_topics_refused(play: Play) -> None:
    for path, query in (
        ("v3/consumer/sub", ""),
        ("v3/consumer/sub", "topics=a&topicsPattern=a.*"),
        ("v3/consumer/", "topics=a"),
        ("v3/consumer", "topics=a"),
        ("v3/consumer/sub", "topics="),
        ("v3/consumer/sub", "topics=persistent://public/nowhere/t"),
        ("v3/consumer/sub", "topicsPattern=persistent://public/default/["),
        ("v3/consumer/sub", "topics=other://public/default/t"),
    ):
        if play.open("c", path, query) == 101:
            play.leave("c")


# stats


@scenario
def proxy_stats(play: Play) -> None:
    play.asked("/admin/v2/proxy-stats/stats")
    play.asked(f"/admin/v2/proxy-stats/{play.topic}/stats")
    play.asked("/admin/v2/proxy-stats/metrics")
    consumer(play)
    play.open("r", f"v2/reader/{play.topic}")
    play.open("p", f"v2/producer/{play.topic}")
    play.send("p", message("x"), 1)
    acknowledge(play, play.messages("c", 1))
    play.messages("r", 1)
    play.asked(f"/admin/v2/proxy-stats/{play.topic}/stats")
    play.asked("/admin/v2/proxy-stats/stats")
    play.leave()
    play.asked(f"/admin/v2/proxy-stats/{play.topic}/stats")


@scenario
def admin_stats(play: Play) -> None:
    consumer(play, "receiverQueueSize=10&consumerName=named&priorityLevel=2")
    play.open("p", f"v2/producer/{play.topic}", "producerName=named")
    play.send("p", message("x"), 1)
    play.messages("c", 1)
    stats = play.rest("GET", f"/admin/v2/{play.topic}/stats")
    publisher, (reader,) = stats["publishers"][0], stats["subscriptions"]["sub"]["consumers"]
    names = ("accessMode", "producerName", "metadata", "supportsPartialProducer")
    others = ("consumerName", "availablePermits", "unackedMessages", "msgOutCounter", "metadata")
    play.lines.append({"publisher": {name: publisher.get(name) for name in names}})
    play.lines.append({"consumer": {name: reader.get(name) for name in others}})
    play.leave()


# the protocol


@scenario
def protocol(play: Play) -> None:
    for path in (f"v2/producer/{play.topic}", f"v2/consumer/{play.topic}/sub", f"v2/reader/{play.topic}"):
        answer = play.rest("GET", f"/ws/{path}")
        play.lines.append({"without upgrade": path.split("/")[1], "answer": answer})
    play.open("p", f"v2/producer/{play.topic}")
    play.ping("p")
    play.send("p", {"payload": "A" * 1_100_000}, 1)
