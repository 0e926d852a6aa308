"""The columns that every topic has, as Pulsar's own connector for Spark names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pulsarium.client import Message
from pulsarium.pipeline.columns.message_ids import serialized

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
"""`__key`: also what was sent as bytes; null without one. `__topic`: in full, of a partitioned one the partition.
`__messageId`: as `MessageId.serialize` and Java's `toByteArray` write it. `__eventTime`: null where none was given.
`__index`: the number of the message in its topic or partition, null where the broker does not count."""

READ_ONLY = frozenset((MESSAGE_ID.lower(), PUBLISH_TIME.lower(), INDEX.lower()))
"""What a broker says of a message, and nobody can send."""

Messages: TypeAlias = Sequence[Message[Any]]

_MILLISECONDS = pa.timestamp("ms", tz="UTC")
_MICROSECONDS = pa.timestamp("us", tz="UTC")
_MOST_MILLISECONDS = (2**63 - 1) // 1000


def _moments(milliseconds: list[int]) -> pa.Array:
    """Null for 0, and for what a timestamp has no room for."""
    try:
        return pa.array([each or None for each in milliseconds], _MILLISECONDS).cast(_MICROSECONDS)
    except (OverflowError, pa.ArrowInvalid):
        kept = [each if 0 < each <= _MOST_MILLISECONDS else None for each in milliseconds]
        return pa.array(kept, _MILLISECONDS).cast(_MICROSECONDS)


EXTRACT: Mapping[str, Callable[[Messages], pa.Array | list[Any]]] = {
    KEY: lambda messages: [each.key_bytes() for each in messages],
    TOPIC: lambda messages: [each.topic_name() for each in messages],
    MESSAGE_ID: serialized,
    PUBLISH_TIME: lambda messages: _moments([each.publish_timestamp() for each in messages]),
    EVENT_TIME: lambda messages: _moments([each.event_timestamp() for each in messages]),
    PROPERTIES: lambda messages: [each.properties() for each in messages],
    INDEX: lambda messages: [each.index() for each in messages],
}
"""The whole column, or its values, by its name."""
