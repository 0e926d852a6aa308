"""A message that the REST API returns in headers and body, and pulsar-admin's way to print it."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pulsarium.cli.admin.output import pairs
from pulsarium.rest.exchange import RestReply

_SEPARATOR = "-" * 73
_RULE = "+--------+-------------------------------------------------+----------------+"


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """A message. `batch_index` is None outside of a batch. Times are in milliseconds, 0 for none."""

    ledger_id: int
    entry_id: int
    batch_index: int | None
    headers: dict[str, str]
    properties: dict[str, str]
    payload: bytes
    event_time: int

    @property
    def message_id(self) -> str:
        batch = "" if self.batch_index is None else f":{self.batch_index}"
        return f"{self.ledger_id}:{self.entry_id}{batch}"

    def time(self, name: str) -> int:
        return _milliseconds(self.headers.get(f"x-pulsar-{name}"))

    def as_json(self) -> dict[str, Any]:
        """Return the message as JSON: with `payload` if the payload is text, else with `payloadBase64`."""
        index = self.headers.get("x-pulsar-broker-entry-metadata-index")
        timestamp = self.time("broker-entry-metadata-timestamp")
        found: dict[str, Any] = {
            "messageId": self.message_id,
            "publishTime": self.time("publish-time"),
            "eventTime": self.event_time,
            "producerName": self.headers.get("x-pulsar-producer-name"),
            "key": self.headers.get("x-pulsar-partition-key"),
            "index": None if index is None else int(index),
            "brokerTimestamp": timestamp or None,
            "properties": self.properties,
        }
        try:
            found["payload"] = self.payload.decode()
        except UnicodeDecodeError:
            found["payloadBase64"] = base64.b64encode(self.payload).decode()
        return {name: value for name, value in found.items() if value is not None}


def messages_of(reply: RestReply) -> list[ShownMessage]:
    """Return every message of the entry in a reply."""
    headers = dict(reply.headers)
    ledger_id, entry_id = (int(part) for part in headers["x-pulsar-message-id"].split(":")[:2])
    count = headers.get("x-pulsar-num-batch-message")
    if count is None:
        properties = json.loads(headers.get("x-pulsar-property", "{}"))
        event_time = _milliseconds(headers.get("x-pulsar-event-time"))
        return [ShownMessage(ledger_id, entry_id, None, headers, properties, reply.body, event_time)]
    from pulsarium.client.message_id import MOST_IN_BATCH
    from pulsarium.proto.batch import unpack

    found = []
    for index, (metadata, payload) in enumerate(unpack(reply.body, int(count), MOST_IN_BATCH)):
        properties = {pair.key: pair.value for pair in metadata.properties}
        own = dict(headers)
        own.pop("x-pulsar-partition-key", None)
        if metadata.HasField("partition_key"):
            own["x-pulsar-partition-key"] = metadata.partition_key
        found.append(ShownMessage(ledger_id, entry_id, index, own, properties, payload, metadata.event_time))
    return found


def show(messages: list[ShownMessage], values: object = None) -> str:
    return f"\n{_SEPARATOR}\n\n".join(map(_one, messages))


def show_by_id(messages: list[ShownMessage], values: object = None) -> str:
    """Return the messages as get-message-by-id prints them: with a redelivery count, which is 0 over REST."""
    return f"\n{_SEPARATOR}\n\n".join(_one(message, redeliveries=True) for message in messages)


def _one(message: ShownMessage, redeliveries: bool = False) -> str:
    lines = [
        f"{'Message ID' if message.batch_index is None else 'Batch Message ID'}: {message.message_id}",
        f"Publish time: {message.time('publish-time')}",
        f"Event time: {message.event_time}",
    ]
    if redeliveries:
        lines.append("Redelivery count: 0")
    if deliver_at := message.time("deliver-at-time"):
        lines.append(f"Deliver at time: {deliver_at}")
    if timestamp := message.time("broker-entry-metadata-timestamp"):
        lines.append(f"Broker entry metadata timestamp: {timestamp}")
    if (index := message.headers.get("x-pulsar-broker-entry-metadata-index")) is not None:
        lines.append(f"Broker entry metadata index: {index}")
    if message.properties:
        lines += ["Properties:", pairs(message.properties)]
    return "\n".join([*lines, hex_dump(message.payload)])


def hex_dump(data: bytes) -> str:
    """Return 16 bytes a line, as Netty prints them, or "" for no bytes."""
    if not data:
        return ""
    lines = [
        "         +-------------------------------------------------+",
        "         |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |",
        _RULE,
    ]
    for start in range(0, len(data), 16):
        row = data[start : start + 16]
        text = "".join(chr(byte) if 0x1F < byte < 0x7F else "." for byte in row)
        lines.append(f"|{start:08x}| {row.hex(' '):47} |{text:16}|")
    return "\n".join([*lines, _RULE])


def _milliseconds(moment: str | None) -> int:
    """Return the milliseconds of a time such as `2026-11-21T13:14:57.69Z`, 0 for None."""
    return 0 if moment is None else round(datetime.fromisoformat(moment).timestamp() * 1000)
