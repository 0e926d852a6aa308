"""What is tried with every client: a name, what it shows, and what keeps a client from it.

What each scenario does stands in `contract`; the programs of all languages do the same and check the same. A client
that has no such call says so here (`not_in`), so that "no such call" and "did not work" stay apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from fnmatch import fnmatchcase
from typing import Final


@dataclass(frozen=True)
class Scenario:
    """One row of the matrix.

    feature: the PIP or the command of the protocol it is about.
    partitions: the topic is made with so many partitions; 0: it is made by its first client.
    deduplication: the namespace deduplicates.
    secured: on a broker that asks for tokens and has a TLS port.
    protocol: the lowest version of the protocol it can work with; protocols: the same for some clients.
    not_in: client -> why its API has no such thing.
    compression: what messages are compressed with, by their capture: clients leave small ones as they are.
    not_as_released: client -> why it fails on a broker that does as the released one; there it is expected to.
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


_NO_RECEIPTS: Final = "acknowledgements without an answer only"
_NO_TRANSACTIONS: Final = {"python": "no transactions", "rust": "no transactions"}
# Java's letters go out by GET_OR_CREATE_SCHEMA.
_LETTERS: Final = {"java": 15}
_COMPRESSIONS: Final = ("lz4", "zlib", "zstd", "snappy")

SCENARIOS: Final[Sequence[Scenario]] = (
    Scenario(
        "produce-consume",
        "10 messages with a key and a property, one an entry, in order; acknowledged ones do not come again",
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
        not_in={"rust": "neither sends chunks nor puts them together"},
    ),
    Scenario("delayed", "on Shared a message due in 1 s comes behind one without delay", "PIP-26"),
    Scenario("non-persistent", "10 messages through a non-persistent topic", "non-persistent"),
    Scenario(
        "message-index",
        "the broker's index of 5 messages counts from 0",
        "PIP-70",
        protocol=16,
        not_in={"python": "messages do not tell it", "rust": "messages do not tell it"},
    ),
    Scenario(
        "encryption",
        "3 messages encrypted with an RSA key; who has no key is not given their text",
        "PIP-4",
        not_in={"rust": "not implemented"},
    ),
    Scenario("batch-receive", "10 messages at once", "PIP-38", not_in={"go": "no such call", "rust": "no such call"}),
    Scenario("shared-nack", "of 10 messages the one refused comes again, and no other", "Shared"),
    Scenario(
        "redelivery-count",
        "a message refused twice counts 0, 1, 2",
        "Shared",
        not_in={"rust": "messages do not tell it"},
    ),
    Scenario(
        "ack-timeout",
        "a message that is not acknowledged comes again by itself",
        "REDELIVER_UNACKNOWLEDGED_MESSAGES",
        seconds=60.0,
        not_in={"go": "no such option"},
    ),
    Scenario("cumulative-ack", "the 6th of 10 acknowledged cumulatively: 4 are left", "ACK"),
    Scenario(
        "batch-index-ack",
        "every second message of a batch acknowledged: the others come again, and only they",
        "PIP-54",
        not_in={"rust": "acknowledges whole batches"},
    ),
    Scenario(
        "ack-receipt",
        "5 of 10 acknowledged with a receipt each: 5 are left",
        "ACK_RESPONSE",
        protocol=17,
        not_in={"python": _NO_RECEIPTS, "rust": _NO_RECEIPTS},
    ),
    Scenario("dead-letter", "refused 3 times, a message is in the dead letter topic", "PIP-22", protocols=_LETTERS),
    Scenario(
        "retry-letter",
        "a message to be consumed later comes again through the retry letter topic",
        "PIP-58",
        protocols=_LETTERS,
        not_in={"python": "no reconsume_later", "rust": "no such call"},
    ),
    Scenario("unsubscribe", "a subscription is gone, a new one begins at the beginning", "UNSUBSCRIBE"),
    Scenario("exclusive-busy", "a second exclusive consumer is refused until the first one closes", "Exclusive"),
    Scenario("failover", "the second consumer goes on where the first one closed", "Failover"),
    Scenario("shared", "20 messages are shared by two consumers, each message once", "Shared"),
    Scenario("key-shared", "5 keys of 10 messages: each key to one of two consumers, in order", "PIP-34"),
    Scenario("partitioned", "30 messages through 3 partitions, all of them used", "partitions", partitions=3),
    Scenario("pattern", "a pattern takes the two topics that match and not the third", "PIP-145"),
    Scenario("multi-topics", "one consumer on two topics", "SUBSCRIBE"),
    Scenario(
        "unload",
        "producer and consumer go on after their topic was unloaded: nothing lost",
        "CLOSE_PRODUCER, CLOSE_CONSUMER",
    ),
    Scenario("brokers", "8 topics spread over two brokers, found from either of them", "LOOKUP"),
    Scenario("http-lookup", "the service URL is http://", "HTTP lookup", not_in={"rust": "binary lookup only"}),
    Scenario("token", "in with a token, refused with a wrong one", "PIP-25", secured=True),
    Scenario("tls", "over TLS with a private authority, and a token", "TLS", secured=True),
    Scenario(
        "zero-queue",
        "10 messages to a consumer that asks for one at a time",
        "FLOW",
        not_in={"rust": "takes 0 for 1000"},
    ),
    Scenario(
        "seek-id",
        "back to the 5th of 10 messages: it or the next one comes first, as the client has it, then the rest",
        "SEEK",
    ),
    Scenario("seek-time", "back to a time: only what was published since", "SEEK"),
    Scenario(
        "reader",
        "from the earliest message, and from a given one: it or the next comes first, as the client has it",
        "Reader",
    ),
    Scenario(
        "has-message-available",
        "true, at the end false, and true again",
        "GET_LAST_MESSAGE_ID",
        protocol=12,
        not_in={"rust": "no such call"},
    ),
    Scenario("last-message-id", "the id of the last of 5 messages", "GET_LAST_MESSAGE_ID", protocol=12),
    Scenario("compaction", "of 2 messages for each of 3 keys the newer ones, after compaction", "PIP-14"),
    Scenario(
        "compaction-batch",
        "of a batch of 2 messages for each of 5 keys the newer ones, after compaction, and no empty ones",
        "PIP-14",
        not_in=dict.fromkeys(("python", "go", "rust"), "shows what compaction took out of a batch as empty messages"),
    ),
    Scenario(
        "table-view",
        "the newest value of each key, and what comes later",
        "PIP-104",
        protocol=12,
        not_in={"rust": "no such call"},
    ),
    Scenario(
        "deduplication",
        "sequence ids sent once more by a producer of the same name are dropped",
        "PIP-6",
        deduplication=True,
        not_in={"rust": "chooses sequence ids itself"},
    ),
    Scenario("producer-name", "a second producer of the same name is refused until the first one closes", "PRODUCER"),
    Scenario("exclusive-producer", "whoever has the topic for itself keeps others out", "PIP-68"),
    Scenario("wait-for-exclusive", "a producer that waits has the topic when the first one closes", "PIP-68"),
    Scenario("terminated", "a terminated topic is read to its end and takes nothing more", "TopicTerminated"),
    Scenario(
        "transactions",
        "of two transactions the committed one is visible",
        "PIP-31",
        seconds=40.0,
        not_in=_NO_TRANSACTIONS,
        not_as_released={"go": "messages do not say which transaction they are of: one that is aborted is seen"},
    ),
    Scenario(
        "transaction-ack",
        "of 2 messages acknowledged in transactions the one whose transaction is aborted comes again",
        "PIP-31",
        seconds=40.0,
        not_in=_NO_TRANSACTIONS,
    ),
    Scenario("schema-string", "a text, with the version of its schema", "schemas"),
    Scenario("schema-json", "a JSON record", "schemas"),
    Scenario("schema-avro", "an Avro record", "schemas", not_in={"rust": "the application's own work"}),
    Scenario("schema-incompatible", "a topic of JSON records refuses a producer of texts", "schemas"),
)


def matching(patterns: Sequence[str]) -> list[Scenario]:
    """The scenarios that these names and globs name, without any all. Raises LookupError for one that names none."""
    for pattern in patterns:
        if not any(fnmatchcase(scenario.name, pattern) for scenario in SCENARIOS):
            raise LookupError(f"no scenario {pattern}; there are {', '.join(one.name for one in SCENARIOS)}")
    return [
        scenario
        for scenario in SCENARIOS
        if not patterns or any(fnmatchcase(scenario.name, pattern) for pattern in patterns)
    ]
