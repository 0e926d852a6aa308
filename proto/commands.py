"""Declare the commands of the protocol: their senders, versions and answers. Parse the bytes of a command.

A command's body is the field of BaseCommand whose number is its type's. The one registry, `COMMANDS`, feeds dispatch,
capability checks, generated pages and the capture format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from google.protobuf.message import DecodeError, EncodeError

from pulsarium.proto.errors import CommandError
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, CommandSend


class Direction(Enum):
    """The side that may send a command."""

    CLIENT = "client"
    BROKER = "broker"
    BOTH = "both"

    __hash__ = object.__hash__  # Enum hashes the name, in Python


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A command of the protocol.

    since: the first protocol version with the command. A broker does not send it to older clients unasked, and answers
        requests of every version.
    feature_flag: the field of FeatureFlags that a peer sets when it can take the command, or None.
    reply: the type of the usual answer, in whose place ERROR may come. None when there is no answer of one type.
    """

    type: int
    name: str
    field: str
    direction: Direction
    since: int
    feature_flag: str | None
    reply: int | None
    family: str


_OVERRUN = 16  # bytes: enough to complete a length word, and too few to be worth an attack

_T = BaseCommand
_CLIENT, _BROKER, _BOTH = Direction.CLIENT, Direction.BROKER, Direction.BOTH

# family: (type, direction, since, reply)
_ROWS: dict[str, tuple[tuple[int, Direction, int, int | None], ...]] = {
    "connection": (
        (_T.CONNECT, _CLIENT, 0, _T.CONNECTED),
        (_T.CONNECTED, _BROKER, 0, None),
        # The first challenge needs no flag: only a refresh in mid-session asks for supports_auth_refresh.
        (_T.AUTH_CHALLENGE, _BROKER, 14, _T.AUTH_RESPONSE),
        (_T.AUTH_RESPONSE, _CLIENT, 14, None),  # CONNECTED the first time, then silence
        (_T.PING, _BOTH, 1, _T.PONG),
        (_T.PONG, _BOTH, 1, None),
        (_T.SUCCESS, _BROKER, 0, None),
        (_T.ERROR, _BROKER, 0, None),
    ),
    "lookup": (
        (_T.PARTITIONED_METADATA, _CLIENT, 0, _T.PARTITIONED_METADATA_RESPONSE),
        (_T.PARTITIONED_METADATA_RESPONSE, _BROKER, 0, None),
        (_T.LOOKUP, _CLIENT, 7, _T.LOOKUP_RESPONSE),
        (_T.LOOKUP_RESPONSE, _BROKER, 7, None),
        (_T.GET_TOPICS_OF_NAMESPACE, _CLIENT, 12, _T.GET_TOPICS_OF_NAMESPACE_RESPONSE),
        (_T.GET_TOPICS_OF_NAMESPACE_RESPONSE, _BROKER, 12, None),
    ),
    "producer": (
        (_T.PRODUCER, _CLIENT, 0, _T.PRODUCER_SUCCESS),
        (_T.PRODUCER_SUCCESS, _BROKER, 0, None),
        (_T.SEND, _CLIENT, 0, _T.SEND_RECEIPT),
        (_T.SEND_RECEIPT, _BROKER, 0, None),
        (_T.SEND_ERROR, _BROKER, 0, None),
        (_T.CLOSE_PRODUCER, _BOTH, 0, _T.SUCCESS),  # from a broker since v5, and then without an answer
        (_T.TOPIC_MIGRATED, _BROKER, 20, None),  # PIP-188; a consumer's too
    ),
    "consumer": (
        (_T.SUBSCRIBE, _CLIENT, 0, _T.SUCCESS),
        (_T.FLOW, _CLIENT, 0, None),
        (_T.MESSAGE, _BROKER, 0, None),
        (_T.ACK, _CLIENT, 0, _T.ACK_RESPONSE),  # answered only if it has a request_id
        (_T.ACK_RESPONSE, _BROKER, 17, None),
        (_T.REDELIVER_UNACKNOWLEDGED_MESSAGES, _CLIENT, 2, None),
        (_T.NEGATIVE_ACK, _CLIENT, 0, None),
        (_T.UNSUBSCRIBE, _CLIENT, 0, _T.SUCCESS),
        (_T.SEEK, _CLIENT, 0, _T.SUCCESS),
        (_T.GET_LAST_MESSAGE_ID, _CLIENT, 12, _T.GET_LAST_MESSAGE_ID_RESPONSE),
        (_T.GET_LAST_MESSAGE_ID_RESPONSE, _BROKER, 12, None),
        (_T.CONSUMER_STATS, _CLIENT, 8, _T.CONSUMER_STATS_RESPONSE),
        (_T.CONSUMER_STATS_RESPONSE, _BROKER, 8, None),
        (_T.ACTIVE_CONSUMER_CHANGE, _BROKER, 12, None),
        (_T.REACHED_END_OF_TOPIC, _BROKER, 9, None),
        (_T.CLOSE_CONSUMER, _BOTH, 0, _T.SUCCESS),  # as CLOSE_PRODUCER
    ),
    "schema": (
        (_T.GET_SCHEMA, _CLIENT, 0, _T.GET_SCHEMA_RESPONSE),
        (_T.GET_SCHEMA_RESPONSE, _BROKER, 0, None),
        (_T.GET_OR_CREATE_SCHEMA, _CLIENT, 15, _T.GET_OR_CREATE_SCHEMA_RESPONSE),
        (_T.GET_OR_CREATE_SCHEMA_RESPONSE, _BROKER, 15, None),
    ),
    "transaction": (
        (_T.TC_CLIENT_CONNECT_REQUEST, _CLIENT, 19, _T.TC_CLIENT_CONNECT_RESPONSE),
        (_T.TC_CLIENT_CONNECT_RESPONSE, _BROKER, 19, None),
        (_T.NEW_TXN, _CLIENT, 0, _T.NEW_TXN_RESPONSE),
        (_T.NEW_TXN_RESPONSE, _BROKER, 0, None),
        (_T.ADD_PARTITION_TO_TXN, _CLIENT, 0, _T.ADD_PARTITION_TO_TXN_RESPONSE),
        (_T.ADD_PARTITION_TO_TXN_RESPONSE, _BROKER, 0, None),
        (_T.ADD_SUBSCRIPTION_TO_TXN, _CLIENT, 0, _T.ADD_SUBSCRIPTION_TO_TXN_RESPONSE),
        (_T.ADD_SUBSCRIPTION_TO_TXN_RESPONSE, _BROKER, 0, None),
        (_T.END_TXN, _CLIENT, 0, _T.END_TXN_RESPONSE),
        (_T.END_TXN_RESPONSE, _BROKER, 0, None),
        # From the broker that has the coordinator, which is a client of the others.
        (_T.END_TXN_ON_PARTITION, _CLIENT, 0, _T.END_TXN_ON_PARTITION_RESPONSE),
        (_T.END_TXN_ON_PARTITION_RESPONSE, _BROKER, 0, None),
        (_T.END_TXN_ON_SUBSCRIPTION, _CLIENT, 0, _T.END_TXN_ON_SUBSCRIPTION_RESPONSE),
        (_T.END_TXN_ON_SUBSCRIPTION_RESPONSE, _BROKER, 0, None),
    ),
    "watch": (
        (_T.WATCH_TOPIC_LIST, _CLIENT, 0, _T.WATCH_TOPIC_LIST_SUCCESS),
        (_T.WATCH_TOPIC_LIST_SUCCESS, _BROKER, 0, None),
        (_T.WATCH_TOPIC_UPDATE, _BROKER, 0, None),
        (_T.WATCH_TOPIC_LIST_CLOSE, _CLIENT, 0, _T.SUCCESS),
        (_T.WATCH_TC_ASSIGNMENTS, _CLIENT, 0, _T.WATCH_TC_ASSIGNMENTS_UPDATE),
        (_T.WATCH_TC_ASSIGNMENTS_UPDATE, _BROKER, 0, None),
        (_T.WATCH_TC_ASSIGNMENTS_CLOSE, _CLIENT, 0, None),
    ),
    "scalable": (
        (_T.SCALABLE_TOPIC_LOOKUP, _CLIENT, 0, _T.SCALABLE_TOPIC_UPDATE),
        (_T.SCALABLE_TOPIC_UPDATE, _BROKER, 0, None),
        (_T.SCALABLE_TOPIC_CLOSE, _CLIENT, 0, None),
        (_T.SCALABLE_TOPIC_SUBSCRIBE, _CLIENT, 0, _T.SCALABLE_TOPIC_SUBSCRIBE_RESPONSE),
        (_T.SCALABLE_TOPIC_SUBSCRIBE_RESPONSE, _BROKER, 0, None),
        (_T.SCALABLE_TOPIC_ASSIGNMENT_UPDATE, _BROKER, 0, None),
        (_T.SCALABLE_TOPIC_UNSUBSCRIBE, _CLIENT, 0, _T.SUCCESS),
        (_T.WATCH_SCALABLE_TOPICS, _CLIENT, 0, _T.WATCH_SCALABLE_TOPICS_UPDATE),
        (_T.WATCH_SCALABLE_TOPICS_UPDATE, _BROKER, 0, None),
        (_T.WATCH_SCALABLE_TOPICS_CLOSE, _CLIENT, 0, None),
    ),
}


def _feature_flag(name: str) -> str | None:
    """Return the feature flag of a command, for those that came without a new protocol version."""
    if "SCALABLE_TOPIC" in name:
        return "supports_scalable_topics"  # PIP-460
    if name.startswith("WATCH_TC_"):
        return "supports_tc_metadata_discovery"  # PIP-473
    if name.startswith("WATCH_TOPIC_"):
        return "supports_topic_watchers"  # PIP-145
    if name == "NEGATIVE_ACK":
        return "supports_key_ordered_negative_ack"  # PIP-493
    return None


def _specs() -> Iterator[tuple[int, CommandSpec]]:
    fields = BaseCommand.DESCRIPTOR.fields_by_number
    for family, rows in _ROWS.items():
        for number, direction, since, reply in rows:
            name = BaseCommand.Type.Name(BaseCommand.Type.ValueType(number))
            flag = _feature_flag(name)
            yield number, CommandSpec(number, name, fields[number].name, direction, since, flag, reply, family)


_BY_TYPE = dict(sorted(_specs()))

#: Every BaseCommand.Type, by number.
COMMANDS: Mapping[int, CommandSpec] = MappingProxyType(_BY_TYPE)


def parse(command: bytes, into: BaseCommand, trailing: bytes = b"") -> CommandSpec:
    """Parse the command of a frame into the message `into`, and return the command's row.

    Raise `CommandError` where Pulsar closes the connection: bytes that are no BaseCommand, an unknown or absent type,
    an absent body or required field. Unknown fields are ignored.

    `trailing` is the rest of the frame. Pulsar's parser looks only at the start of a field, so the last field may run
    over the end of the command.

    `into` frees the memory of earlier commands only with itself: pass a new one for each read from the socket.
    """
    try:
        into.ParseFromString(command)
    except DecodeError:
        _parse_beyond(command, into, trailing[:_OVERRUN])
    try:
        into.SerializeToString()  # fails where a required field is absent; a third of the cost of IsInitialized
    except EncodeError as error:
        # proto2 drops an unknown value of an enum, so an unknown type looks absent.
        known = into.HasField("type")
        raise CommandError(str(error) if known else "a command of an unknown type, or of none") from None
    spec = _BY_TYPE[into.type]
    if not into.HasField(spec.field):
        raise CommandError(f"{spec.name} without its body")
    return spec


# type SEND, and a body of under 128 bytes with producer_id, sequence_id and perhaps num_messages and
# highest_sequence_id, in this order
_PLAIN_SEND = re.compile(
    rb"\x08\x06\x32[\0-\x7f]\x08[\x80-\xff]{0,8}+[\0-\x7f]\x10[\x80-\xff]{0,8}+[\0-\x7f]"
    rb"(?:\x18[\x80-\xff]{0,8}+[\0-\x7f])?(?:\x30[\x80-\xff]{0,8}+[\0-\x7f])?"
).fullmatch


def parse_plain_send(command: bytes, into: CommandSend) -> bool:
    """Parse a SEND that has no rare fields. Return False for other commands, which `parse` judges.

    Most SENDs say only whose message, which ids and how many messages. This takes half of the time of `parse` and of a
    look at all fields, because no required field can be absent, and no rare field present.
    """
    if _PLAIN_SEND(command) is None or command[3] != len(command) - 4:
        return False
    into.ParseFromString(command[4:])
    return True


def start_of_sequence_id(command: bytes) -> int:
    """Return where the sequence id of a plain SEND begins. Its lowest seven bits are in this byte."""
    at = 5  # the producer id
    while command[at] > 0x7F:
        at += 1
    return at + 2


def _parse_beyond(command: bytes, into: BaseCommand, trailing: bytes) -> None:
    for size in range(1, len(trailing) + 1):
        try:
            into.ParseFromString(command + trailing[:size])
        except DecodeError:
            continue
        return
    raise CommandError("not a command") from None
