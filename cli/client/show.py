"""A received message as pulsar-client prints it."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulsarium.client import Message

HEADING = "----- got message -----"


def shown(message: "Message", *, hexadecimal: bool, metadata: bool) -> str:
    """The heading, and one line of what it holds."""
    properties = ", ".join(f"{key}={value}" for key, value in message.properties().items())
    key = message.partition_key() if message.has_partition_key() else "null"
    parts = [
        f"publishTime:[{message.publish_timestamp()}]",
        f"eventTime:[{message.event_timestamp()}]",
        f"key:[{key}]",
        f"properties:[{properties}]",
        f"content:{_content(message, hexadecimal)}",
    ]
    if metadata:
        parts += _metadata(message)
    return f"{HEADING}\n{', '.join(parts)}"


def _content(message: "Message", hexadecimal: bool) -> str:
    if message.has_null_value():
        return "null"
    data = message.data()
    return data.hex(" ") if hexadecimal else data.decode(errors="replace")


def _metadata(message: "Message") -> list[str]:
    return [
        f"event-time:{_date(message.event_timestamp())}",
        f"message-id:{_id(message)}",
        f"producer-name:{message.producer_name()}",
        f"sequence-id:{message.sequence_id()}",
        "replicated-from:null",
        f"redelivery-count:{message.redelivery_count()}",
        f"ordering-key:{message.ordering_key()}",
        f"schema-version:{message.schema_version().hex()}",
    ]


def _id(message: "Message") -> str:
    """`ledger:entry:partition`, and the index of one in a batch."""
    found = message.message_id()
    batch = "" if found.batch_index == -1 else f":{found.batch_index}"
    return f"{found.ledger_id}:{found.entry_id}:{found.partition}{batch}"


def _date(milliseconds: int) -> str:
    """As Java writes an Instant: no fraction where there is none."""
    moment = datetime.fromtimestamp(milliseconds // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    fraction = milliseconds % 1000
    return f"{moment}.{fraction:03}Z" if fraction else f"{moment}Z"
