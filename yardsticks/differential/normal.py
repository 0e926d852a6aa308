"""Replace names and times that a broker makes up, in frames and in REST answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from pulsarium.proto import entry
from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.errors import EntryError
from pulsarium.proto.generated import PulsarApi_pb2 as pb

MADE_UP = frozenset({"server_version", "broker_timestamp", "connectedSince"})
NO_ENTRY = 2**64 - 1
SPECIAL = frozenset({-1, 2**64 - 1, 2**63 - 1})
ADDRESS = re.compile(r"(/?127\.0\.0\.1|localhost):\d+")
GENERATED = re.compile(r"\bstandalone-\d+-\d+\b")
WHERE = re.compile(r"\b(\d+):(-?\d+)\b")

WHOLE_POSITION = re.compile(r"(-?\d+):(-?\d+)")
RATE = re.compile(r".*Rate(In|Out|Expired|Redeliver)?|msgThroughput(In|Out)|averageMsgSize|.*AgeSeconds")
"""Keys of values that change from moment to moment, and are not compared."""

TIME = re.compile(r".*(Time|Time[Ss]tamp|Since|PublishTimeInBacklogs?)")
"""Keys of times. Only whether a time is set is compared."""

NEVER = (0, -1, "1970-01-01T00:00:00Z")
"""Values of a time that is not set."""

_PRODUCER = frozenset({pb.BaseCommand.SEND_RECEIPT, pb.BaseCommand.SEND_ERROR})
_CONSUMER = frozenset(
    {pb.BaseCommand.MESSAGE, pb.BaseCommand.ACTIVE_CONSUMER_CHANGE, pb.BaseCommand.REACHED_END_OF_TOPIC}
)


@dataclass
class Names:
    """Names for a broker's ledger ids and generated names, by the order in which a program met them."""

    _ledgers: dict[int, str] = field(default_factory=dict)
    _generated: dict[str, str] = field(default_factory=dict)

    def ledger(self, number: int, entry: int = NO_ENTRY) -> int | str:
        """Return a name for the ledger of an entry. Without an entry, a ledger gets no new name.

        So an empty ledger may be reused when its topic is loaded again, where Pulsar makes a new one
        (docs/differences.md).
        """
        if number in SPECIAL:
            return number
        if entry == NO_ENTRY:
            return self._ledgers.get(number, "a ledger")
        return self._ledgers.setdefault(number, f"L{len(self._ledgers)}")

    def text(self, text: str) -> str:
        """Replace known ledgers, addresses and generated names."""

        def generated(found: re.Match[str]) -> str:
            return self._generated.setdefault(found[0], f"generated-{len(self._generated)}")

        def position(found: re.Match[str]) -> str:
            return f"{self._ledgers.get(int(found[1]), found[1])}:{found[2]}"

        return WHERE.sub(position, GENERATED.sub(generated, ADDRESS.sub("ADDRESS", text)))


def message_facts(message: Message, names: Names) -> dict[str, Any]:
    """Return the set fields of a protobuf message."""
    facts: dict[str, Any] = {}
    if isinstance(message, pb.MessageIdData):
        facts["ledgerId"] = names.ledger(message.ledgerId, message.entryId)
    for descriptor, value in message.ListFields():
        if descriptor.name in facts:
            continue
        if descriptor.name in MADE_UP:
            facts[descriptor.name] = "..."
        elif descriptor.is_repeated:
            facts[descriptor.name] = [_value(descriptor, each, names) for each in value]
        else:
            facts[descriptor.name] = _value(descriptor, value, names)
    return facts


def _value(descriptor: FieldDescriptor, value: Any, names: Names) -> Any:
    if descriptor.type == FieldDescriptor.TYPE_MESSAGE:
        return message_facts(value, names)
    if descriptor.enum_type is not None:
        return descriptor.enum_type.values_by_number[value].name
    if descriptor.type == FieldDescriptor.TYPE_BYTES:
        return value.hex()
    return names.text(value) if descriptor.type == FieldDescriptor.TYPE_STRING else value


def frame_facts(command: pb.BaseCommand, trailing: bytes, names: Names) -> tuple[str, str]:
    """Return the stream to which a frame belongs, and the frame as text.

    Frames of one stream have an order. The streams of a connection are the receipts of each producer, the messages of
    each consumer, the updates of each watcher, the answers to producers that were admitted, and all other frames.
    """
    spec = COMMANDS[command.type]
    body = getattr(command, spec.field)
    facts = message_facts(body, names)
    stream = ""
    if command.type in _PRODUCER:
        stream = f"producer {body.producer_id}"
    elif command.type in _CONSUMER:
        stream = f"consumer {body.consumer_id}"
    elif command.type == pb.BaseCommand.PRODUCER_SUCCESS:
        stream = "producers"  # a waiting producer is admitted before or after the answer to a CLOSE_PRODUCER
    elif command.type == pb.BaseCommand.WATCH_TOPIC_UPDATE:
        stream = f"watcher {body.watcher_id}"
    text = f"{spec.name} {json.dumps(facts)}"
    if trailing:
        text += f" {entry_facts(trailing, names)}"
    return stream, text


def entry_facts(data: bytes, names: Names) -> str:
    """Return a delivered entry as text: the broker entry metadata, and the bytes that the producer sent."""
    try:
        added = entry.parse_broker_metadata(data)
    except EntryError:
        added = None
    facts = message_facts(added, names) if added is not None else {}
    return f"{json.dumps(facts)} {entry.strip_broker_metadata(data).hex()}"


def rest_facts(status: int, body: Any, names: Names) -> list[str]:
    """Return the status and the values of a REST answer, one line for each value, in the order of their names."""
    return [f"status {status}", *_leaves("", body, names)]


def _leaves(path: str, value: Any, names: Names) -> Iterator[str]:
    if isinstance(value, dict):
        for key in sorted(value):
            there = f"{path}/{names.text(key)}"
            if RATE.fullmatch(key):
                yield f"{there} ..."
            elif TIME.fullmatch(key):
                yield f"{there} {'never' if value[key] in NEVER else '...'}"
            else:
                yield from _leaves(there, value[key], names)
    elif isinstance(value, list):
        yield f"{path} {len(value)} of them"
        for number, each in enumerate(value):
            yield from _leaves(f"{path}/{number}", each, names)
    elif isinstance(value, str):
        found = WHOLE_POSITION.fullmatch(value)
        yield f"{path} {names.ledger(int(found[1]))}:{found[2]}" if found else f"{path} {names.text(value)}"
    elif path.lower().endswith(("ledgerid", "cursorledger")) and isinstance(value, int):
        yield f"{path} {names.ledger(value)}"
    else:
        yield f"{path} {value}"
