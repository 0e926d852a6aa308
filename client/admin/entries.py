"""Decode entries that the REST API sends as headers and body."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from datetime import datetime

from pulsarium.client.admin.errors import UnexpectedAnswer
from pulsarium.client.entry.decoding import Decoded, UnreadableEntry, messages
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.numbers import unsigned
from pulsarium.rest.exchange import RestReply

# Fields of the metadata, each in a header of the same name.
_TEXTS = ("producer_name", "replicated_from", "partition_key", "uuid")
_UNSIGNED = ("sequence_id", "highest_sequence_id")
_NUMBERS = ("marker_type", "num_chunks_from_msg", "chunk_id")
_FLAGS = ("partition_key_b64_encoded", "null_partition_key", "null_value")
_BYTES = ("schema_version", "ordering_key")
_TIMES = ("publish_time", "event_time", "deliver_at_time")


def messages_of(topic: str, reply: RestReply) -> list[Message[bytes]]:
    """Return the messages of an entry. A chunk or an encrypted entry is returned as it is.

    Raise `UnexpectedAnswer` if the entry cannot be read.
    """
    try:
        headers = reply.headers
        ledger_id, entry_id = (int(part) for part in headers["x-pulsar-message-id"].split(":")[:2])
        decoded = Decoded(
            _metadata(headers), reply.body, _stamp(headers), headers.get("x-pulsar-is-encrypted", "false") == "true"
        )
        size = decoded.metadata.num_messages_in_batch if decoded.metadata.HasField("num_messages_in_batch") else 0
        return [
            Message(
                topic,
                MessageId(ledger_id, entry_id, batch_index=index, batch_size=size if index >= 0 else 0),
                decoded.metadata,
                single,
                data,
                broker_metadata=decoded.broker_metadata,
            )
            for index, single, data in messages(decoded)
        ]
    except (KeyError, ValueError, UnreadableEntry) as error:
        raise UnexpectedAnswer(f"the broker's answer holds no message: {error}", reply.status) from error


def _metadata(headers: Mapping[str, str]) -> pb.MessageMetadata:
    metadata = pb.MessageMetadata()
    for names, read in _FIELDS:
        for name in names:
            if (text := headers.get(_header(name))) is not None:
                setattr(metadata, name, read(text))
    for name in _BYTES:
        if (text := headers.get(f"x-pulsar-base64-{name.replace('_', '-')}")) is not None:
            setattr(metadata, name, base64.b64decode(text))
    if (text := headers.get("x-pulsar-num-batch-message")) is not None:
        metadata.num_messages_in_batch = int(text)
    for key, value in json.loads(headers.get("x-pulsar-property", "{}")).items():
        metadata.properties.add(key=key, value=value)
    return metadata


def _stamp(headers: Mapping[str, str]) -> pb.BrokerEntryMetadata | None:
    stamp = pb.BrokerEntryMetadata()
    if (text := headers.get("x-pulsar-broker-entry-metadata-timestamp")) is not None:
        stamp.broker_timestamp = _milliseconds(text)
    if (text := headers.get("x-pulsar-broker-entry-metadata-index")) is not None:
        stamp.index = int(text)
    return stamp if stamp.ByteSize() else None


def _header(field: str) -> str:
    return f"x-pulsar-{field.replace('_', '-')}"


def _unsigned(text: str) -> int:
    """Convert an unsigned number that Java prints as a signed one."""
    return unsigned(int(text))


def _milliseconds(moment: str) -> int:
    """Convert an ISO date, such as `2026-11-21T13:14:57.69Z`, to milliseconds since the epoch."""
    return max(round(datetime.fromisoformat(moment).timestamp() * 1000), 0)


_FIELDS: tuple[tuple[tuple[str, ...], Callable[[str], object]], ...] = (
    (_TEXTS, str),
    (_NUMBERS, int),
    (_UNSIGNED, _unsigned),
    (_FLAGS, lambda text: text == "true"),
    (_TIMES, _milliseconds),
)
