"""Convert messages to rows, and rows to messages.

Each schema of Pulsar has one form in Spark:

| schema of the topic | columns |
|---|---|
| none, BYTES, PROTOBUF and all others not listed here | `value` binary: the bytes |
| STRING, BOOLEAN, INT8 to INT64, FLOAT, DOUBLE | `value` of the same type |
| TIMESTAMP, DATE (a moment too), INSTANT | `value` timestamp |
| LOCAL_DATE, LOCAL_TIME and TIME, LOCAL_DATE_TIME | `value` date, time, timestamp_ntz |
| AVRO, JSON | the record's fields at top level, as Spark's own Avro reader has them (`kinds.py`) |
| PROTOBUF_NATIVE | the message's fields at top level (`protobuf.py`) |
| KEY_VALUE | `key` and `value`, each of the type of its half: a record is a struct (`records.py`) |

`value` holds the bytes, too, for records that contain themselves, because Spark has no type for them, for those with
too many fields or levels (`kinds.check_extent`), and for definitions that cannot be parsed. The columns of `METADATA`
follow those of the value. Every column may be null. A message without a value, which deletes its key in a compacted
topic, has null in all columns of the value. Such a row is written as a message without a value.
"""
