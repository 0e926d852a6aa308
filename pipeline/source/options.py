"""Options of reading."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from pulsarium.pipeline.options import ADMIN_URL, CONNECTION, BadOption, ConnectionOptions, Described, Options

if TYPE_CHECKING:  # `help` needs only the table
    from pulsarium.pipeline.columns.columns import Columns
    from pulsarium.pipeline.source.places import Places
    from pulsarium.pipeline.source.topics import SourceTopics

OPTIONS: Sequence[Described] = (
    Described(
        "admin.url",
        "",
        "both",
        "URL of the REST API, http://host:8080: without it partitions are not split, positions by index, "
        "maxBytesPerTrigger and maxMessagesPerTrigger are refused",
    ),
    Described(
        "topic",
        "",
        "both",
        "one topic, with all its partitions; exactly one of topic, topics and topicsPattern is required",
    ),
    Described("topics", "", "both", "several topics, separated by commas"),
    Described(
        "topicsPattern",
        "",
        "both",
        "all topics of a namespace whose names match a regular expression of Python: "
        "persistent://tenant/namespace/orders-.*, or orders-.* in public/default",
    ),
    Described(
        "startingOffsets",
        "earliest, of a stream latest",
        "both",
        "start of a read, and of a stream without checkpoint: earliest, latest, a message id (ledger:entry, "
        "ledger:entry:partition:batch index), index:N (PIP-415), a time, or JSON with one of these by topic, "
        '{"topic-1": "8:11"}, or with the bytes of an id as in StreamNative\'s connector; the named message is read',
    ),
    Described(
        "startingTime",
        "",
        "both",
        "instead of startingOffsets: milliseconds since the epoch, 2026-01-31T12:00:00Z (UTC), or JSON with one of "
        "these by topic",
    ),
    Described(
        "endingOffsets",
        "latest",
        "batch",
        "end of a read, in the forms of startingOffsets except earliest; a named message is read, a time or an index "
        "is excluded",
    ),
    Described("endingTime", "", "batch", "instead of endingOffsets, in the forms of startingTime"),
    Described(
        "minPartitions",
        "",
        "both",
        "about how many Spark partitions to make at least, when the topics have fewer partitions",
    ),
    Described(
        "maxRecordsPerPartition", "250000", "both", "about how many messages a Spark partition has at most; 0: no limit"
    ),
    Described(
        "maxBytesPerTrigger", "", "stream", "about how many stored bytes a micro-batch has at most; requires admin.url"
    ),
    Described(
        "maxMessagesPerTrigger",
        "",
        "stream",
        "about how many messages a micro-batch has at most, by the broker's indexes, or else by the number of messages "
        "in an entry; requires admin.url. Both limits may be given",
    ),
    Described(
        "failOnDataLoss",
        "true",
        "both",
        "whether a read fails when data of its range is gone (retention, TTL, a deleted topic of topicsPattern), also "
        "between the plan and a task; false: it continues with a warning. A read of a named topic that does not exist "
        "always fails",
    ),
    Described(
        "predefinedSubscription",
        "",
        "stream",
        "the durable subscription that retains unprocessed messages; without a checkpoint the stream begins "
        "where an existing subscription stands. No other query or consumer may use it at the same time",
    ),
    Described(
        "subscriptionPrefix",
        "spark-pulsar",
        "stream",
        "without predefinedSubscription: prefix of the subscription's name. The name ends with a digest of the topic "
        "options and a random part, and the checkpoint keeps it; `pulsarium abandon` deletes the subscription",
    ),
    Described(
        "allowDifferentTopicSchemas", "false", "both", "read topics of different schemas as bytes, in the column value"
    ),
    Described(
        "undecodable",
        "fail",
        "both",
        "what a message does that does not fit the schema of its topic: `fail` ends the query; with `null` its columns "
        "are null, and the column `__undecodable` has its bytes",
    ),
    Described(
        "pushFilters",
        "false",
        "batch",
        "skip topics, entries and rows that conditions on `__topic`, `__publishTime`, `__index` and `__key` exclude "
        "(`__index` needs admin.url); Spark then requires "
        "spark.sql.python.filterPushdown.enabled=true, which `session()` sets",
    ),
    Described(
        "waitingForNonExistedTopic",
        "false",
        "both",
        "whether `load()` waits until the topics exist, or the first topic of topicsPattern, and looks every "
        "topicDiscoveryIntervalMs; false: it fails, and a pattern without topics is read as bytes. A topic that has no "
        "schema when it appears is read as bytes",
    ),
    Described("pollTimeoutMs", "120000", "both", "how long a task waits for a message that the topic must have"),
    Described(
        "topicDiscoveryIntervalMs",
        "5000",
        "both",
        "how often a stream looks for new partitions, and for new topics of a pattern, and how often "
        "waitingForNonExistedTopic looks",
    ),
    Described("pulsar.reader.receiverQueueSize", "1000", "both", "messages that a task requests in advance"),
)


LEAST_PAUSE = 0.1
"""Seconds between two looks for a topic that does not exist."""


def described(options: Sequence[Described]) -> str:
    """Return the options' documentation for `help`, one line each."""
    return "".join(
        f"    {one.name}{f' (default {one.default})' if one.default else ''}: {one.meaning}\n" for one in options
    )


@dataclass(frozen=True)
class SourceOptions:
    """Validated options of reading. They can be pickled, and their `repr` shows no secret."""

    connection: ConnectionOptions
    topics: SourceTopics
    start: Places
    end: Places
    min_partitions: int
    max_records: int
    max_bytes: int
    """In bytes, or 0 for no limit."""
    max_messages: int
    """0 for no limit."""
    fail_on_data_loss: bool
    subscription: str
    """The subscription that the user named. Otherwise the first part of the names of subscriptions of queries."""
    is_predefined: bool
    """Whether the user named the subscription."""
    bytes_only: bool
    poll_timeout: float
    discovery_interval: float
    """Both in seconds."""
    receiver_queue_size: int
    push_filters: bool
    waits_for_topics: bool
    keeps_undecodable: bool
    """Whether a message that does not fit its schema is a row."""

    @staticmethod
    def of(given: Mapping[str, str], *, streaming: bool = False) -> SourceOptions:
        """Return the options, or raise `BadOption` or `InvalidTopicName`."""
        from pulsarium.pipeline.source.places import Earliest, EndOfTopic, ending, starting
        from pulsarium.pipeline.source.topics import SourceTopics

        options = Options(given)
        options.refuse_unknown(each.name for each in (*CONNECTION, *OPTIONS))
        connection = ConnectionOptions.of(options)
        topics = SourceTopics.of(options)
        end = ending(options)
        if streaming and (options.text("endingOffsets") or options.text("endingTime")):
            raise BadOption('options "endingOffsets" and "endingTime" are for spark.read: a stream has no end')
        limits = {name: options.number(name, 0, least=1) for name in ("maxBytesPerTrigger", "maxMessagesPerTrigger")}
        for name, most in limits.items():
            if most and connection.admin_url is None:
                raise BadOption(f'option "{name}" needs .option("{ADMIN_URL}", ...): the stats tell the sizes')
        named = options.text("predefinedSubscription")
        return SourceOptions(
            connection,
            topics,
            starting(options, EndOfTopic() if streaming else Earliest()),
            end,
            options.number("minPartitions", 0, least=1),
            options.number("maxRecordsPerPartition", 250_000),
            limits["maxBytesPerTrigger"],
            limits["maxMessagesPerTrigger"],
            options.flag("failOnDataLoss", default=True),
            named or f"{options.text('subscriptionPrefix', 'spark-pulsar')}-{_digest(topics)}",
            bool(named),
            options.flag("allowDifferentTopicSchemas", default=False),
            options.number("pollTimeoutMs", 120_000, least=1) / 1000,
            options.number("topicDiscoveryIntervalMs", 5000) / 1000,
            options.number("pulsar.reader.receiverQueueSize", 1000, least=1),
            options.flag("pushFilters", default=False),
            options.flag("waitingForNonExistedTopic", default=False),
            options.choice("undecodable", {"fail": False, "null": True}, "fail"),
        )

    @property
    def has_admin(self) -> bool:
        return self.connection.admin_url is not None

    def columns(self) -> Columns:
        """Return the columns of the schema that all topics share.

        Raise `NoSuchTopic`, and `BadOption` when the schemas differ.
        """
        from pulsarium.pipeline.source.topics import columns_of

        look_again = max(self.discovery_interval, LEAST_PAUSE) if self.waits_for_topics else None
        found = columns_of(self.connection, self.topics, bytes_only=self.bytes_only, look_again=look_again)
        return found.with_undecodable() if self.keeps_undecodable else found

    def new_subscription(self) -> str:
        """Return the subscription of a query without checkpoint. No other query has the same."""
        return self.subscription if self.is_predefined else f"{self.subscription}-{uuid4().hex[:12]}"


def _digest(topics: SourceTopics) -> str:
    """Return a digest of the topics, which stays the same when the query restarts."""
    return hashlib.sha256(repr((sorted(topics.names), topics.pattern)).encode()).hexdigest()[:12]
