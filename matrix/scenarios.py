"""What is tried with every client: a name, what it shows, and what keeps a client from it.

What each scenario does stands in `contract`; the programs of all languages do the same and check the same. A client
that has no such call says so here (`not_in`), so that "no such call" and "did not work" stay apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final


@dataclass(frozen=True, kw_only=True)
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
        name="produce-consume",
        contract="10 messages with a key and a property, one an entry, in order; acknowledged ones do not come again",
        feature="SEND",
    ),
    Scenario(name="batching", contract="10 messages of one batch: one entry, batch indexes 0 to 9", feature="SEND"),
    *(
        Scenario(
            name=f"compression-{name}",
            contract=f"10 messages compressed with {name}",
            feature="SEND",
            compression=name,
        )
        for name in _COMPRESSIONS
    ),
    Scenario(
        name="chunking",
        contract="6 MB in chunks, between two small messages",
        feature="PIP-37",
        not_in={"rust": "neither sends chunks nor puts them together"},
    ),
    Scenario(
        name="delayed", contract="on Shared a message due in 1 s comes behind one without delay", feature="PIP-26"
    ),
    Scenario(name="non-persistent", contract="10 messages through a non-persistent topic", feature="non-persistent"),
    Scenario(
        name="message-index",
        contract="the broker's index of 5 messages counts from 0",
        feature="PIP-70",
        protocol=16,
        not_in={"python": "messages do not tell it", "rust": "messages do not tell it"},
    ),
    Scenario(
        name="encryption",
        contract="3 messages encrypted with an RSA key; who has no key is not given their text",
        feature="PIP-4",
        not_in={"rust": "not implemented"},
    ),
    Scenario(
        name="batch-receive",
        contract="10 messages at once",
        feature="PIP-38",
        not_in={"go": "no such call", "rust": "no such call"},
    ),
    Scenario(name="shared-nack", contract="of 10 messages the one refused comes again, and no other", feature="Shared"),
    Scenario(
        name="redelivery-count",
        contract="a message refused twice counts 0, 1, 2",
        feature="Shared",
        not_in={"rust": "messages do not tell it"},
    ),
    Scenario(
        name="ack-timeout",
        contract="a message that is not acknowledged comes again by itself",
        feature="REDELIVER_UNACKNOWLEDGED_MESSAGES",
        seconds=60.0,
        not_in={"go": "no such option"},
    ),
    Scenario(name="cumulative-ack", contract="the 6th of 10 acknowledged cumulatively: 4 are left", feature="ACK"),
    Scenario(
        name="batch-index-ack",
        contract="every second message of a batch acknowledged: the others come again, and only they",
        feature="PIP-54",
        not_in={"rust": "acknowledges whole batches"},
    ),
    Scenario(
        name="ack-receipt",
        contract="5 of 10 acknowledged with a receipt each: 5 are left",
        feature="ACK_RESPONSE",
        protocol=17,
        not_in={"python": _NO_RECEIPTS, "rust": _NO_RECEIPTS},
    ),
    Scenario(
        name="dead-letter",
        contract="refused 3 times, a message is in the dead letter topic",
        feature="PIP-22",
        protocols=_LETTERS,
    ),
    Scenario(
        name="retry-letter",
        contract="a message to be consumed later comes again through the retry letter topic",
        feature="PIP-58",
        protocols=_LETTERS,
        not_in={"python": "no reconsume_later", "rust": "no such call"},
    ),
    Scenario(
        name="unsubscribe", contract="a subscription is gone, a new one begins at the beginning", feature="UNSUBSCRIBE"
    ),
    Scenario(
        name="exclusive-busy",
        contract="a second exclusive consumer is refused until the first one closes",
        feature="Exclusive",
    ),
    Scenario(name="failover", contract="the second consumer goes on where the first one closed", feature="Failover"),
    Scenario(name="shared", contract="20 messages are shared by two consumers, each message once", feature="Shared"),
    Scenario(
        name="key-shared",
        contract="5 keys of 10 messages: each key to one of two consumers, in order",
        feature="PIP-34",
    ),
    Scenario(
        name="partitioned",
        contract="30 messages through 3 partitions, all of them used",
        feature="partitions",
        partitions=3,
    ),
    Scenario(name="pattern", contract="a pattern takes the two topics that match and not the third", feature="PIP-145"),
    Scenario(name="multi-topics", contract="one consumer on two topics", feature="SUBSCRIBE"),
    Scenario(
        name="unload",
        contract="producer and consumer go on after their topic was unloaded: nothing lost",
        feature="CLOSE_PRODUCER, CLOSE_CONSUMER",
    ),
    Scenario(name="brokers", contract="8 topics spread over two brokers, found from either of them", feature="LOOKUP"),
    Scenario(
        name="http-lookup",
        contract="the service URL is http://",
        feature="HTTP lookup",
        not_in={"rust": "binary lookup only"},
    ),
    Scenario(name="token", contract="in with a token, refused with a wrong one", feature="PIP-25", secured=True),
    Scenario(name="tls", contract="over TLS with a private authority, and a token", feature="TLS", secured=True),
    Scenario(
        name="zero-queue",
        contract="10 messages to a consumer that asks for one at a time",
        feature="FLOW",
        not_in={"rust": "takes 0 for 1000"},
    ),
    Scenario(
        name="seek-id",
        contract="back to the 5th of 10 messages: it or the next one comes first, as the client has it, then the rest",
        feature="SEEK",
    ),
    Scenario(name="seek-time", contract="back to a time: only what was published since", feature="SEEK"),
    Scenario(
        name="reader",
        contract="from the earliest message, and from a given one: it or the next comes first, as the client has it",
        feature="Reader",
    ),
    Scenario(
        name="has-message-available",
        contract="true, at the end false, and true again",
        feature="GET_LAST_MESSAGE_ID",
        protocol=12,
        not_in={"rust": "no such call"},
    ),
    Scenario(
        name="last-message-id", contract="the id of the last of 5 messages", feature="GET_LAST_MESSAGE_ID", protocol=12
    ),
    Scenario(
        name="compaction",
        contract="of 2 messages for each of 3 keys the newer ones, after compaction",
        feature="PIP-14",
    ),
    Scenario(
        name="compaction-batch",
        contract="of a batch of 2 messages for each of 5 keys the newer ones, after compaction, and no empty ones",
        feature="PIP-14",
        not_in=dict.fromkeys(("python", "go", "rust"), "shows what compaction took out of a batch as empty messages"),
    ),
    Scenario(
        name="table-view",
        contract="the newest value of each key, and what comes later",
        feature="PIP-104",
        protocol=12,
        not_in={"rust": "no such call"},
    ),
    Scenario(
        name="deduplication",
        contract="sequence ids sent once more by a producer of the same name are dropped",
        feature="PIP-6",
        deduplication=True,
        not_in={"rust": "chooses sequence ids itself"},
    ),
    Scenario(
        name="producer-name",
        contract="a second producer of the same name is refused until the first one closes",
        feature="PRODUCER",
    ),
    Scenario(name="exclusive-producer", contract="whoever has the topic for itself keeps others out", feature="PIP-68"),
    Scenario(
        name="wait-for-exclusive",
        contract="a producer that waits has the topic when the first one closes",
        feature="PIP-68",
    ),
    Scenario(
        name="terminated",
        contract="a terminated topic is read to its end and takes nothing more",
        feature="TopicTerminated",
    ),
    Scenario(
        name="transactions",
        contract="of two transactions the committed one is visible",
        feature="PIP-31",
        seconds=40.0,
        not_in=_NO_TRANSACTIONS,
        not_as_released={"go": "messages do not say which transaction they are of: one that is aborted is seen"},
    ),
    Scenario(
        name="transaction-ack",
        contract="of 2 messages acknowledged in transactions the one whose transaction is aborted comes again",
        feature="PIP-31",
        seconds=40.0,
        not_in=_NO_TRANSACTIONS,
    ),
    Scenario(name="schema-string", contract="a text, with the version of its schema", feature="schemas"),
    Scenario(name="schema-json", contract="a JSON record", feature="schemas"),
    Scenario(
        name="schema-avro", contract="an Avro record", feature="schemas", not_in={"rust": "the application's own work"}
    ),
    Scenario(
        name="schema-incompatible",
        contract="a topic of JSON records refuses a producer of texts",
        feature="schemas",
    ),
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
