"""Options of `df.write` and `writeStream`, beside those of the connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pyspark.sql.types import StructType

from pulsarium.pipeline.columns.names import TOPIC
from pulsarium.pipeline.connector import PRODUCER
from pulsarium.pipeline.options import ADMIN_URL, CONNECTION, BadOption, ConnectionOptions, Described, Options
from pulsarium.proto.topic_name import SCALABLE

if TYPE_CHECKING:  # `help` needs only the table
    from pulsarium.client import HashingScheme


CHUNKING = f"{PRODUCER}chunkingEnabled"

OPTIONS: Sequence[Described] = (
    Described(
        ADMIN_URL,
        "",
        "both",
        "URL of the REST API, http://host:8080: without it the sink cannot check whether the topic deduplicates",
    ),
    Described(
        "topic",
        "",
        "both",
        "the topic of all rows, which overrides their column `__topic`, as in the JVM connector; without this option "
        "that column names the topic of each row",
    ),
    Described(
        "deduplication",
        "required; off in df.write",
        "both",
        "`required`: the topic must deduplicate, which is checked when `admin.url` is given; `off`: rows may "
        "be stored twice after a failure",
    ),
    Described(
        "producerName",
        "spark",
        "both",
        "prefix of the producers' names, followed by the id of a stream's query and the number of the Spark partition; "
        "in `df.write` only with batchId, and the two together must be new, or from a job that is repeated",
    ),
    Described(
        "batchId",
        "",
        "batch",
        "with producerName: number of the DataFrame among those of that name, as foreachBatch passes it; "
        "writing the same number again adds nothing",
    ),
    Described(
        "replayOrder",
        "input",
        "both",
        "`sorted`: for queries whose rows change their order in each attempt, as after a shuffle: a task collects its "
        "rows of a batch in memory and sends them in the order of their contents",
    ),
    Described(
        "schemaType",
        "avro",
        "both",
        "schema of a topic that has none yet: `avro` or `json` for records, `none` for no schema",
    ),
    Described(
        "deadLetterTopic",
        "",
        "both",
        "topic for rows that do not fit the schema of their topic: JSON, with the properties REAL_TOPIC and REASON. "
        "Without it, such a row fails the query",
    ),
    Described(
        "producerBusyTimeoutMs",
        "60000",
        "both",
        "how long a task waits until the producer of an earlier attempt is closed",
    ),
)

Reader: TypeAlias = Callable[[Options, str, str], Any]


# The names of the client's enums. The processes that plan and commit a write do not import the client.
SCHEMES = ("JavaStringHash", "Murmur3_32Hash")
COMPRESSIONS = ("NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY")


def _number(least: int = 0) -> Reader:
    return lambda options, name, default: options.number(name, int(default), least=least)


def _flag(options: Options, name: str, default: str) -> bool:
    return options.flag(name, default=default == "true")


def _waits(options: Options, name: str, default: str) -> bool:
    if not _flag(options, name, default):
        raise BadOption(f'option "{name}" must be true: a task waits while its queue is full')
    return True


def _among(names: Mapping[str, str]) -> Reader:
    return lambda options, name, default: options.choice(name, names, default)


class _Argument(NamedTuple):
    """An option of Java's producer, and its argument of `create_producer`, or "" when it is used otherwise."""

    name: str
    default: str
    argument: str
    read: Reader
    meaning: str


_ARGUMENTS = (
    _Argument(
        "sendTimeoutMs", "30000", "", _number(), "how long a task waits for a receipt before it fails; 0: forever"
    ),
    _Argument("blockIfQueueFull", "true", "", _waits, "must be true: a task waits while its queue is full"),
    _Argument(
        "hashingScheme",
        "JavaStringHash",
        "",
        _among({each: each for each in SCHEMES}),
        "hash function that assigns keys to partitions",
    ),
    _Argument(
        "maxPendingMessages",
        "20000",
        "max_pending_messages",
        _number(1),
        "messages without a receipt in a partition at which a task waits",
    ),
    _Argument(
        "maxPendingMessagesAcrossPartitions",
        "100000",
        "max_pending_messages_across_partitions",
        _number(1),
        "messages without a receipt in all partitions of a topic at which a task waits",
    ),
    _Argument("batchingEnabled", "true", "", _flag, "send several messages in one entry"),
    _Argument("batchingMaxMessages", "1000", "", _number(1), "most messages of one entry"),
    _Argument(
        "batchingMaxBytes",
        "131072",
        "",
        _number(1),
        "most payload bytes of an entry with several messages; never more than half of what the broker accepts",
    ),
    _Argument(
        "compressionType",
        "NONE",
        "",
        _among({each.upper(): each for each in COMPRESSIONS}),
        "NONE, LZ4, ZLIB, ZSTD or SNAPPY",
    ),
    _Argument(
        "chunkingEnabled",
        "false",
        "chunking_enabled",
        _flag,
        "send a row that is larger than the broker accepts in several entries; other rows still go in batches",
    ),
    _Argument(
        "chunkMaxMessageSize", "0", "chunk_max_message_size", _number(), "bytes of a chunk; 0: the broker's limit"
    ),
)
PRODUCER_OPTIONS: Sequence[Described] = tuple(
    Described(PRODUCER + each.name, each.default, "both", each.meaning) for each in _ARGUMENTS
)


@dataclass(frozen=True)
class SinkOptions:
    """Validated options of a sink. The workers get them."""

    connection: ConnectionOptions
    topic: str | None
    required: bool | None
    """Whether the topic must deduplicate, or None for the default."""
    producer_name: str | None
    batch_id: int | None
    is_sorted: bool
    schema_type: str
    """avro, json or none."""
    dead_letter_topic: str | None
    """The topic of rows that do not fit, or None: such a row is an error."""
    busy_timeout: float
    """In seconds."""
    send_timeout: float | None
    """In seconds, or None for no limit."""
    most_messages: int
    most_bytes: int
    """Of one batch."""
    scheme: str
    """Name of the hash function that assigns keys to partitions."""
    compression: str
    arguments: Mapping[str, Any]
    """Arguments of `create_producer` without the compression."""

    @staticmethod
    def of(given: Mapping[str, str]) -> SinkOptions:
        """Return the options, or raise `BadOption` for an invalid value or an unknown option."""
        options = Options(given)
        options.refuse_unknown(each.name for each in (*CONNECTION, *OPTIONS, *PRODUCER_OPTIONS))
        read = {each.name: each.read(options, PRODUCER + each.name, each.default) for each in _ARGUMENTS}
        words: dict[str, bool | None] = {"required": True, "off": False}
        required = None if options.text("deduplication") is None else options.choice("deduplication", words, "required")
        return SinkOptions(
            connection=ConnectionOptions.of(options),
            topic=options.text("topic") or None,
            required=required,
            producer_name=options.text("producerName") or None,
            batch_id=None if options.text("batchId") is None else options.number("batchId", 0),
            is_sorted=options.choice("replayOrder", {"input": False, "sorted": True}, "input"),
            schema_type=options.choice("schemaType", {each: each for each in ("avro", "json", "none")}, "avro"),
            dead_letter_topic=options.text("deadLetterTopic") or None,
            busy_timeout=options.number("producerBusyTimeoutMs", 60_000) / 1000,
            send_timeout=read["sendTimeoutMs"] / 1000 or None,
            most_messages=read["batchingMaxMessages"] if read["batchingEnabled"] else 1,
            most_bytes=read["batchingMaxBytes"],
            scheme=read["hashingScheme"],
            compression=read["compressionType"],
            arguments={
                "batching_enabled": False,  # the sink packs batches itself
                **{each.argument: read[each.name] for each in _ARGUMENTS if each.argument},
            },
        )

    @property
    def hashing_scheme(self) -> HashingScheme:
        """Return the hash function that assigns keys to partitions."""
        from pulsarium.client import HashingScheme

        return HashingScheme[self.scheme]

    @property
    def producer(self) -> Mapping[str, Any]:
        """Return the arguments of `create_producer`."""
        from pulsarium.client import CompressionType

        return {**self.arguments, "compression_type": CompressionType[self.compression]}

    def check(self, schema: StructType, *, overwrite: bool) -> None:
        """Raise `BadOption` for errors that are visible before the first row."""
        if overwrite:
            raise BadOption(
                'topics are append-only: use .mode("append"), and for streams .outputMode("append") or "update"'
            )
        for topic in (self.topic, self.dead_letter_topic):
            if topic is not None and topic.lower().startswith(f"{SCALABLE}://"):
                raise BadOption(f"{topic} is scalable, and the sink cannot write to it: use pulsarium.client.scalable")
        if self.topic is None and topic_column(schema) is None:
            raise BadOption(f'set .option("topic", ...), or add a column {TOPIC}')


def topic_column(schema: StructType) -> str | None:
    """Return the name of the topic column. Spark does not distinguish upper and lower case."""
    return next((each for each in schema.fieldNames() if each.lower() == TOPIC.lower()), None)
