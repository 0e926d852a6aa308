"""Fault programs: what happens to which frame between a client and its broker."""

from __future__ import annotations

import enum
import random
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.framing import frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import frame_of
from tests.client.peer import Type


class Action(enum.Enum):
    """An action on a frame. The first ones keep the promises of TCP: bytes are late, or the stream ends."""

    CUT = "cut"
    CLOSE_AFTER = "close after"
    TRUNCATE = "truncate"
    DELAY = "delay"
    STALL = "stall"
    GARBAGE = "garbage"
    OVERSIZE = "oversize"

    DUPLICATE = "duplicate"
    REORDER = "reorder"
    DROP = "drop"
    CORRUPT = "corrupt"
    REQUEST_ID = "request id"
    OWNER_ID = "owner id"
    SEQUENCE_ID = "sequence id"
    ERROR = "error"


HONEST = (
    Action.CUT,
    Action.CLOSE_AFTER,
    Action.TRUNCATE,
    Action.DELAY,
    Action.STALL,
    Action.GARBAGE,
    Action.OVERSIZE,
)
TO_CLIENT_ONLY = (Action.GARBAGE, Action.OVERSIZE, Action.ERROR)  # another suite tests the broker with them

_IDS = {
    Action.REQUEST_ID: ("request_id",),
    Action.OWNER_ID: ("producer_id", "consumer_id"),
    Action.SEQUENCE_ID: ("sequence_id", "highest_sequence_id"),
}


@dataclass(frozen=True)
class Fault:
    """A fault of `times` frames of one direction and type, from number `occurrence` on. The type None matches all."""

    to_client: bool
    type: int | None
    occurrence: int
    action: Action
    amount: int = 0
    times: int = 1

    def __repr__(self) -> str:
        what = "frame" if self.type is None else COMMANDS[self.type].name
        where = "broker" if self.to_client else "client"
        return f"<{self.action.value} {self.amount}: {what} {self.occurrence} (x{self.times}) of the {where}>"


_FROM_CLIENT = [
    None,
    Type.CONNECT,
    Type.LOOKUP,
    Type.PARTITIONED_METADATA,
    Type.PRODUCER,
    Type.SEND,
    Type.SUBSCRIBE,
    Type.FLOW,
    Type.ACK,
    Type.SEEK,
    Type.GET_LAST_MESSAGE_ID,
    Type.CLOSE_CONSUMER,
    Type.CLOSE_PRODUCER,
    Type.UNSUBSCRIBE,
    Type.REDELIVER_UNACKNOWLEDGED_MESSAGES,
    Type.PING,
    Type.PONG,
]
_FROM_BROKER = [
    None,
    Type.CONNECTED,
    Type.LOOKUP_RESPONSE,
    Type.PARTITIONED_METADATA_RESPONSE,
    Type.PRODUCER_SUCCESS,
    Type.SEND_RECEIPT,
    Type.SUCCESS,
    Type.ERROR,
    Type.MESSAGE,
    Type.ACK_RESPONSE,
    Type.GET_LAST_MESSAGE_ID_RESPONSE,
    Type.CLOSE_CONSUMER,
    Type.PING,
    Type.PONG,
]


@st.composite
def faults(draw: st.DrawFn, *, honest: bool) -> Fault:
    to_client = draw(st.booleans())
    actions = [action for action in (HONEST if honest else Action) if to_client or action not in TO_CLIENT_ONLY]
    return Fault(
        to_client,
        draw(st.sampled_from(_FROM_BROKER if to_client else _FROM_CLIENT)),
        draw(st.integers(0, 6)),
        draw(st.sampled_from(actions)),
        draw(st.integers(0, 1000)),
        draw(st.sampled_from([1, 1, 1, 2, 5, 1000])),
    )


def changed(fault: Fault, encoded: bytes, trailing: bytes) -> list[bytes]:
    """Return the pieces that replace a frame on the wire, for the actions that only change bytes."""
    whole = frame(encoded, trailing)
    noise = random.Random(fault.amount)
    if fault.action is Action.DUPLICATE:
        return [whole, whole]
    if fault.action is Action.DROP:
        return []
    if fault.action is Action.GARBAGE:
        return [noise.randbytes(fault.amount % 60 + 1), whole]
    if fault.action is Action.OVERSIZE:
        return [(2**31 - 1 - fault.amount).to_bytes(4, "big"), whole]
    if fault.action is Action.CORRUPT:
        at = noise.randrange(len(whole))
        return [whole[:at] + bytes([whole[at] ^ (1 << noise.randrange(8))]) + whole[at + 1 :]]
    if fault.action is Action.ERROR:
        return _refusal(encoded, fault.amount)
    return [_renumbered(encoded, trailing, _IDS[fault.action], fault.amount - 500)]


def _body(base: pb.BaseCommand) -> Any:
    return getattr(base, COMMANDS[base.type].field)


def _renumbered(encoded: bytes, trailing: bytes, names: tuple[str, ...], by: int) -> bytes:
    base = pb.BaseCommand.FromString(encoded)
    body = _body(base)
    for name in names:
        if name in body.DESCRIPTOR.fields_by_name and body.HasField(name):
            setattr(body, name, (getattr(body, name) + by) % 2**63)
    return frame(base.SerializeToString(), trailing)


def _refusal(encoded: bytes, amount: int) -> list[bytes]:
    """Return an error in place of an answer, and nothing in place of any other command."""
    base = pb.BaseCommand.FromString(encoded)
    codes = pb.ServerError.values()
    code = codes[amount % len(codes)]
    if base.type == Type.SEND_RECEIPT:
        receipt = base.send_receipt
        ids: dict[str, Any] = {"producer_id": receipt.producer_id, "sequence_id": receipt.sequence_id}
        return [frame_of(Type.SEND_ERROR, error=code, message="no", **ids)]
    if base.type == Type.CONNECTED:
        return [frame_of(Type.ERROR, request_id=2**64 - 1, error=code, message="no")]
    body = _body(base)
    if "request_id" in body.DESCRIPTOR.fields_by_name:
        return [frame_of(Type.ERROR, request_id=body.request_id, error=code, message="no")]
    return []
