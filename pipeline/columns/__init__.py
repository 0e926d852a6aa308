"""What messages are as rows, and rows as messages.

Each schema of Pulsar has one form in Spark:

| schema of the topic | columns |
|---|---|
| none, BYTES, KEY_VALUE, PROTOBUF, PROTOBUF_NATIVE, all that is in no other line | `value` binary: the bytes |
| STRING, BOOLEAN, INT8 to INT64, FLOAT, DOUBLE | `value` of the same type |
| TIMESTAMP, DATE (a moment too), INSTANT | `value` timestamp |
| LOCAL_DATE, LOCAL_TIME and TIME, LOCAL_DATE_TIME | `value` date, time, timestamp_ntz |
| AVRO, JSON | the record's fields at top level, as Spark's own Avro reader has them (`kinds.py`) |

Of records that contain themselves, which Spark has no type for, and of definitions that nobody can read, `value` is the
bytes. Behind the columns of the value come those of `METADATA`. Every column may be null: a message without a value
(which deletes its key in a compacted topic) has null in all columns of the value, and a row like that becomes one.
"""

from pulsarium.pipeline.columns.columns import Columns
from pulsarium.pipeline.columns.derived import info_for
from pulsarium.pipeline.columns.kinds import BadColumns, BadMessage, BadRow
from pulsarium.pipeline.columns.metadata import METADATA
from pulsarium.pipeline.columns.reading import BatchBuilder
from pulsarium.pipeline.columns.writing import Outgoing, RowReader

__all__ = [
    "METADATA",
    "BadColumns",
    "BadMessage",
    "BadRow",
    "BatchBuilder",
    "Columns",
    "Outgoing",
    "RowReader",
    "info_for",
]
