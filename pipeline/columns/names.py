"""Names of columns, and the columns that every topic has, named as in Pulsar's own Spark connector.

The module imports little, because Spark starts a process of Python that needs only these.
"""

from __future__ import annotations

from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

VALUE = "value"
"""Column of values that are no records."""
KEY, TOPIC, MESSAGE_ID, PUBLISH_TIME = "__key", "__topic", "__messageId", "__publishTime"
EVENT_TIME, PROPERTIES, INDEX = "__eventTime", "__messageProperties", "__index"

METADATA = StructType(
    [
        StructField(KEY, BinaryType()),
        StructField(TOPIC, StringType()),
        StructField(MESSAGE_ID, BinaryType()),
        StructField(PUBLISH_TIME, TimestampType()),
        StructField(EVENT_TIME, TimestampType()),
        StructField(PROPERTIES, MapType(StringType(), StringType())),
        StructField(INDEX, LongType()),
    ]
)
"""Columns of every topic.

`__key` may be bytes, and is null without a key. `__topic` is the full name, with the partition. `__messageId` is what
`MessageId.serialize` and Java's `toByteArray` write. `__eventTime` is null when the message has none. `__index` is the
message's number in its topic or partition, and null when the broker assigns no index.
"""

MESSAGE_ID_PARTS = StructType(
    [
        StructField("ledgerId", LongType()),
        StructField("entryId", LongType()),
        StructField("partition", IntegerType()),
        StructField("batchIndex", IntegerType()),
    ]
)
"""`__messageId` as a struct, where `.schema(...)` asks for one. `partition` and `batchIndex` may be -1."""

UNDECODABLE = "__undecodable"
"""Column with the bytes of messages that do not fit their schema, where a read asks for it."""

READ_ONLY = frozenset((MESSAGE_ID.lower(), PUBLISH_TIME.lower(), INDEX.lower()))
"""Columns that a broker sets and a producer cannot."""
