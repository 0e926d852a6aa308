"""The options of reading: what each means, and all of them together."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pulsarium.pipeline.options import ADMIN_URL, BadOption, Connection, Described, Options
from pulsarium.pipeline.source.places import Earliest, Latest, Places, ending, starting
from pulsarium.pipeline.source.topics import Topics

OPTIONS: Sequence[Described] = (
    Described(
        "admin.url",
        "",
        "both",
        "their REST API, http://host:8080: without it one partition of a topic is not split, nothing is read by index, "
        "maxBytesPerTrigger cannot be given, and lost data is not noticed",
    ),
    Described("topic", "", "both", "one topic, with all its partitions; one of topic, topics, topicsPattern is needed"),
    Described("topics", "", "both", "several, with commas between"),
    Described(
        "topicsPattern",
        "",
        "both",
        "all of a namespace whose names match a regular expression: persistent://tenant/namespace/orders-.*, or "
        "orders-.* in public/default",
    ),
    Described(
        "startingOffsets",
        "earliest, of a stream latest",
        "both",
        "where a read begins, and a stream without checkpoint: earliest, latest, a message id (ledger:entry, "
        "ledger:entry:partition:batch index), index:N (PIP-415), a time, or JSON with one of these by topic, "
        '{"topic-1": "8:11"}, or with the bytes of an id as in Pulsar\'s connector; a message named is read',
    ),
    Described(
        "startingTime",
        "",
        "both",
        "in its place: milliseconds since the epoch, 2026-01-31T12:00:00Z (UTC), or JSON with one of these by topic",
    ),
    Described(
        "endingOffsets",
        "latest",
        "batch",
        "where reading ends, in the forms of startingOffsets but earliest; a message named is read, a time or an index "
        "is not reached",
    ),
    Described("endingTime", "", "batch", "in its place, in the forms of startingTime"),
    Described(
        "minPartitions",
        "",
        "both",
        "into how many Spark partitions to split at least, about, where there are fewer partitions of topics",
    ),
    Described(
        "maxRecordsPerPartition", "250000", "both", "how many messages, about, one Spark partition may have; 0: any"
    ),
    Described(
        "maxBytesPerTrigger", "", "stream", "how many stored bytes, about, one micro-batch may have; needs admin.url"
    ),
    Described(
        "failOnDataLoss",
        "true",
        "both",
        "whether a read fails when data between its start and its end is gone (retention, TTL, a deleted topic); "
        "false: it goes on with a warning",
    ),
    Described(
        "predefinedSubscription",
        "",
        "stream",
        "the durable subscription that holds what is not processed yet; where there is no checkpoint the stream begins "
        "at its place, if it is there already",
    ),
    Described(
        "subscriptionPrefix",
        "spark-pulsar",
        "stream",
        "without predefinedSubscription: the subscription is called so, and by a digest of the topic options. Two "
        "queries on the same topics need different ones; a query that is given up leaves its subscription behind, to "
        "be deleted",
    ),
    Described(
        "allowDifferentTopicSchemas", "false", "both", "read topics of different schemas as bytes, in the column value"
    ),
    Described("pollTimeoutMs", "120000", "both", "how long a task waits for a message that should be there"),
    Described(
        "topicDiscoveryIntervalMs", "5000", "stream", "how often to look for new partitions and, by pattern, topics"
    ),
    Described("pulsar.reader.receiverQueueSize", "1000", "both", "messages that a task has asked for and not read yet"),
)


def described(options: Sequence[Described]) -> str:
    """A line for each, for `help`."""
    return "".join(
        f"    {one.name}{f' (default {one.default})' if one.default else ''}: {one.meaning}\n" for one in options
    )


@dataclass(frozen=True)
class SourceOptions:
    """What a reader is told; picklable, and shows no secret."""

    connection: Connection
    topics: Topics
    start: Places
    end: Places
    min_partitions: int
    max_records: int
    max_bytes: int
    """0: any number."""
    fail_on_data_loss: bool
    subscription: str
    is_predefined: bool
    """The subscription was named."""
    bytes_only: bool
    poll_timeout: float
    discovery_interval: float
    """Seconds, both."""
    receiver_queue_size: int

    @staticmethod
    def of(given: Mapping[str, str], *, streaming: bool = False) -> SourceOptions:
        """BadOption, InvalidTopicName."""
        options = Options(given)
        connection = Connection.of(options)
        topics = Topics.of(options)
        end = ending(options)
        if streaming and (options.text("endingOffsets") or options.text("endingTime")):
            raise BadOption('options "endingOffsets" and "endingTime" are for spark.read: a stream has no end')
        max_bytes = options.number("maxBytesPerTrigger", 0, least=1)
        if max_bytes and connection.admin_url is None:
            raise BadOption(
                f'option "maxBytesPerTrigger" needs .option("{ADMIN_URL}", ...): it is held against the stats'
            )
        named = options.text("predefinedSubscription")
        return SourceOptions(
            connection,
            topics,
            starting(options, Latest() if streaming else Earliest()),
            end,
            options.number("minPartitions", 0, least=1),
            options.number("maxRecordsPerPartition", 250_000),
            max_bytes,
            options.flag("failOnDataLoss", default=True),
            named or f"{options.text('subscriptionPrefix', 'spark-pulsar')}-{_digest(topics)}",
            bool(named),
            options.flag("allowDifferentTopicSchemas", default=False),
            options.number("pollTimeoutMs", 120_000, least=1) / 1000,
            options.number("topicDiscoveryIntervalMs", 5000) / 1000,
            options.number("pulsar.reader.receiverQueueSize", 1000, least=1),
        )

    @property
    def has_admin(self) -> bool:
        return self.connection.admin_url is not None


def _digest(topics: Topics) -> str:
    """The same for each run of a query: nothing in it that a restart may change."""
    return hashlib.sha256(repr((sorted(topics.names), topics.pattern)).encode()).hexdigest()[:12]
