"""Define the scenarios that every client runs: a name, a contract, and reasons why a client cannot run it.

`contract` says what a scenario does. The programs of all languages do the same and check the same. A client without
such a call says so in `not_in`, which keeps "no such call" and "did not work" apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from fnmatch import fnmatchcase
from typing import Final


@dataclass(frozen=True)
class Scenario:
    """A row of the matrix.

    feature: PIP or command of the protocol.
    partitions: number of partitions of the topic; 0 for a topic that the first client creates.
    deduplication: whether the namespace deduplicates.
    secured: whether the broker has token authentication and a TLS port.
    protocol: lowest protocol version for all clients; protocols: the same for some clients.
    not_in: reasons why a client's API lacks the feature, by client.
    compression: expected compression of messages in the capture, because clients do not compress small messages.
    not_as_released: reasons why a client is expected to fail on a broker that behaves like the released one, by client.
    """

    name: str
    contract: str
    feature: str = ""
    _: KW_ONLY
    partitions: int = 0
    deduplication: bool = False
    secured: bool = False
    compression: str = ""
    protocol: int = 0
    protocols: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 30.0
    not_in: Mapping[str, str] = field(default_factory=dict)
    not_as_released: Mapping[str, str] = field(default_factory=dict)


def _web(reason: str) -> Mapping[str, str]:
    """Return one reason for both clients of the WebSocket API, which can do what this API offers."""
    return dict.fromkeys(("websocket", "node"), reason)


_EMPTY_MESSAGES: Final = "shows removed messages of a compacted batch as empty messages"
_NO_RECEIPTS: Final = "only acknowledgements without a response"
_NO_TRANSACTIONS: Final = {"python": "no transactions", "rust": "no transactions", **_web("no transactions")}
# Java uses GET_OR_CREATE_SCHEMA for dead letter topics.
_LETTERS: Final = {"java": 15}
_COMPRESSIONS: Final = ("lz4", "zlib", "zstd", "snappy")

SCENARIOS: Final[Sequence[Scenario]] = (
    Scenario(
        "produce-consume",
        "10 messages with a key and a property, one an entry, in order; acknowledged messages are not redelivered",
        "SEND",
    ),
    Scenario("batching", "10 messages of one batch: one entry, batch indexes 0 to 9", "SEND"),
    *(
        Scenario(f"compression-{name}", f"10 messages compressed with {name}", "SEND", compression=name)
        for name in _COMPRESSIONS
    ),
    Scenario(
        "chunking",
        "6 MB in chunks, between two small messages",
        "PIP-37",
        not_in={"rust": "neither sends nor joins chunks", **_web("takes a message as one frame")},
    ),
    Scenario("delayed", "on Shared, a message with a delay of 1 s arrives after a message without delay", "PIP-26"),
    Scenario("non-persistent", "10 messages through a non-persistent topic", "non-persistent"),
    Scenario(
        "message-index",
        "the broker's index of 5 messages counts from 0",
        "PIP-70",
        protocol=16,
        not_in={"python": "messages have no index", "rust": "messages have no index", **_web("messages have no index")},
    ),
    Scenario(
        "encryption",
        "3 messages encrypted with an RSA key; a consumer without the key does not get their text",
        "PIP-4",
        not_in={"rust": "not implemented"},
    ),
    Scenario(
        "batch-receive",
        "10 messages at once",
        "PIP-38",
        not_in={"go": "no such call", "rust": "no such call", **_web("no such call")},
    ),
    Scenario("shared-nack", "of 10 messages only the negatively acknowledged one is redelivered", "Shared"),
    Scenario(
        "redelivery-count",
        "the redelivery counts of a message that is negatively acknowledged twice are 0, 1 and 2",
        "Shared",
        not_in={"rust": "messages have no redelivery count"},
    ),
    Scenario(
        "ack-timeout",
        "an unacknowledged message is redelivered after the timeout",
        "REDELIVER_UNACKNOWLEDGED_MESSAGES",
        seconds=60.0,
        not_in={"go": "no such option"},
    ),
    Scenario(
        "cumulative-ack",
        "a cumulative acknowledgement of the 6th of 10 messages leaves 4",
        "ACK",
        not_in=_web("acknowledges single messages"),
    ),
    Scenario(
        "batch-index-ack",
        "with every second message of a batch acknowledged, only the others are redelivered",
        "PIP-54",
        not_in={"rust": "acknowledges whole batches", **_web("acknowledges whole batches")},
    ),
    Scenario(
        "ack-receipt",
        "5 acknowledgements with a receipt leave 5 of 10 messages",
        "ACK_RESPONSE",
        protocol=17,
        not_in={"python": _NO_RECEIPTS, "rust": _NO_RECEIPTS, **_web(_NO_RECEIPTS)},
    ),
    Scenario(
        "dead-letter",
        "a message that is negatively acknowledged 3 times is in the dead letter topic",
        "PIP-22",
        protocols=_LETTERS,
    ),
    Scenario(
        "retry-letter",
        "a message to consume later is redelivered through the retry letter topic",
        "PIP-58",
        protocols=_LETTERS,
        not_in={"python": "no reconsume_later", "rust": "no such call", **_web("no such call")},
    ),
    Scenario("unsubscribe", "a new subscription of the same name begins at the earliest message", "UNSUBSCRIBE"),
    Scenario("exclusive-busy", "a second exclusive consumer is refused until the first one closes", "Exclusive"),
    Scenario("failover", "the second consumer continues where the first one closed", "Failover"),
    Scenario("shared", "20 messages are shared by two consumers, each message once", "Shared"),
    Scenario("key-shared", "10 messages for each of 5 keys: each key goes to one of two consumers, in order", "PIP-34"),
    Scenario("partitioned", "30 messages through 3 partitions, all of which are used", "partitions", partitions=3),
    Scenario("pattern", "a pattern subscribes to two matching topics, and not to a third one", "PIP-145"),
    Scenario("multi-topics", "one consumer on two topics", "SUBSCRIBE"),
    Scenario(
        "unload",
        "producer and consumer continue after an unload of their topic, without losing a message",
        "CLOSE_PRODUCER, CLOSE_CONSUMER",
    ),
    Scenario("brokers", "8 topics on two brokers are found from either broker", "LOOKUP"),
    Scenario(
        "http-lookup",
        "the service URL is http://",
        "HTTP lookup",
        not_in={"rust": "binary lookup only", **_web("looks up no topics")},
    ),
    Scenario(
        "token", "a client with a token is accepted, and one with a wrong token is refused", "PIP-25", secured=True
    ),
    Scenario("tls", "a connection over TLS with a private certificate authority, and a token", "TLS", secured=True),
    Scenario(
        "zero-queue",
        "10 messages to a consumer that requests one at a time",
        "FLOW",
        not_in={"rust": "treats 0 as 1000"},
    ),
    Scenario(
        "seek-id",
        "a seek to the 5th of 10 messages: this one or (in some clients) the next one arrives first, then the rest",
        "SEEK",
        not_in=_web("no such call"),
    ),
    Scenario("seek-time", "a seek to a time: only later messages arrive", "SEEK", not_in=_web("no such call")),
    Scenario(
        "reader",
        "readers from the earliest message and from a given one: this or (in some clients) the next one arrives first",
        "Reader",
    ),
    Scenario(
        "has-message-available",
        "true, false at the end, and true again after another message",
        "GET_LAST_MESSAGE_ID",
        protocol=12,
        not_in={"rust": "no such call", **_web("no such call")},
    ),
    Scenario(
        "last-message-id",
        "the id of the last of 5 messages",
        "GET_LAST_MESSAGE_ID",
        protocol=12,
        not_in=_web("no such call"),
    ),
    Scenario(
        "compaction",
        "after compaction, the newer of 2 messages for each of 3 keys",
        "PIP-14",
        not_in=_web("reads the whole topic, compacted or not"),
    ),
    Scenario(
        "compaction-batch",
        "after compaction of a batch, the newer of 2 messages for each of 5 keys, and no empty messages",
        "PIP-14",
        not_in={
            **dict.fromkeys(("python", "go", "rust"), _EMPTY_MESSAGES),
            **_web("reads the whole topic, compacted or not"),
        },
    ),
    Scenario(
        "table-view",
        "the newest value of each key, and later changes",
        "PIP-104",
        protocol=12,
        not_in={"rust": "no such call", **_web("no such call")},
    ),
    Scenario(
        "deduplication",
        "repeated sequence ids of a producer of the same name are dropped",
        "PIP-6",
        deduplication=True,
        not_in={"rust": "chooses sequence ids itself"},
    ),
    Scenario("producer-name", "a second producer of the same name is refused until the first one closes", "PRODUCER"),
    Scenario("exclusive-producer", "an exclusive producer keeps others out", "PIP-68", not_in=_web("no such option")),
    Scenario(
        "wait-for-exclusive",
        "a waiting producer opens when the first one closes",
        "PIP-68",
        not_in=_web("no such option"),
    ),
    Scenario("terminated", "a terminated topic can be read to its end, and refuses messages", "TopicTerminated"),
    Scenario(
        "transactions",
        "only the committed one of two transactions is visible",
        "PIP-31",
        seconds=40.0,
        not_in=_NO_TRANSACTIONS,
        not_as_released={"go": "messages do not name their transaction, so that aborted ones are delivered"},
    ),
    Scenario(
        "transaction-ack",
        "of 2 messages acknowledged in transactions, the one in the aborted transaction is redelivered",
        "PIP-31",
        seconds=40.0,
        not_in=_NO_TRANSACTIONS,
    ),
    Scenario(
        "schema-string",
        "a text, with its schema version",
        "schemas",
        not_in=_web("schemas are left to the application"),
    ),
    Scenario("schema-json", "a JSON record", "schemas", not_in=_web("schemas are left to the application")),
    Scenario(
        "schema-avro",
        "an Avro record",
        "schemas",
        not_in={"rust": "left to the application", **_web("schemas are left to the application")},
    ),
    Scenario(
        "schema-incompatible",
        "a topic of JSON records refuses a producer of text",
        "schemas",
        not_in=_web("schemas are left to the application"),
    ),
)


def matching(patterns: Sequence[str]) -> list[Scenario]:
    """Return the scenarios that match names and globs, or all scenarios without any.

    Raise `LookupError` for a pattern without a match.
    """
    for pattern in patterns:
        if not any(fnmatchcase(scenario.name, pattern) for scenario in SCENARIOS):
            raise LookupError(
                f"no scenario matches {pattern}: the scenarios are {', '.join(one.name for one in SCENARIOS)}"
            )
    return [
        scenario
        for scenario in SCENARIOS
        if not patterns or any(fnmatchcase(scenario.name, pattern) for pattern in patterns)
    ]
