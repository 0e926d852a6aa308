"""Message ids in bodies, as Pulsar's ResetCursorData has them, and in answers."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from pulsarium.broker.http.call import Call, texts_of, wrong_type
from pulsarium.broker.http.errors import UnreadableBody, unexpected_body
from pulsarium.broker.jackson import place
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.ledger.position import EARLIEST, LATEST, Position
from pulsarium.broker.model.subscription.skip import LARGEST_BATCH, batch_size
from pulsarium.proto.message_id import words_of

LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
NUMBER = re.compile(r"[+-]?[0-9]{1,19}")  # as Java reads a long, and an int
RESET_CURSOR_DATA = "org.apache.pulsar.client.impl.ResetCursorData"
MESSAGE_ID = "org.apache.pulsar.client.impl.MessageIdImpl"


@dataclass(frozen=True, slots=True)
class Place:
    """A message id in the body of a request. `excluded` means the message after it."""

    position: Position
    partition: int = -1
    batch_index: int = -1
    excluded: bool = False

    def in_ledger(self, ledger: ManagedLedger) -> tuple[Position, list[int]]:
        """Return the entry, and the ack set of the first message if it is inside a batch."""
        size = _batch_size(ledger, self.position) if self.batch_index >= 0 else 0
        first = self.batch_index + 1 if self.excluded else self.batch_index
        if 0 < first < size:
            return self.position, words_of((1 << size) - (1 << first))
        if self.excluded and self.position not in (EARLIEST, LATEST):
            return Position(self.position.ledger_id, self.position.entry_id + 1), []
        return self.position, []


def _batch_size(ledger: ManagedLedger, position: Position) -> int:
    """Return the number of messages in a batch; 0 for an entry that is none, or claims more than LARGEST_BATCH."""
    size = batch_size(ledger.read_now(position)) if ledger.is_valid(position) else 0
    return size if size <= LARGEST_BATCH else 0


def read_place(call: Call) -> Place:
    """Return the message id of a body. Raise `AdminError` without a body."""
    value: Any = call.json()
    if value is None:
        why = 'because "resetCursorData" is null'
        raise unexpected_body(f'Cannot invoke "org.apache.pulsar.client.impl.ResetCursorData.getLedgerId()" {why}')
    return _place(value)


def read_start(call: Call) -> tuple[Position, dict[str, str]]:
    """Return the start position of a subscription, by default the end, and the subscription's properties."""
    value: Any = call.json()
    if value is None:
        return LATEST, {}
    found = _place(value)
    properties = texts_of(value.get("properties")) or {} if isinstance(value, dict) else {}
    position = found.position
    if found.excluded and position != EARLIEST and position.ledger_id != LATEST.ledger_id:
        position = Position(position.ledger_id, position.entry_id + 1)
    return position, properties


def read_message_id(call: Call) -> Position | None:
    """Return the message id of a body (MessageIdImpl), or None without a body."""
    value: Any = call.json()
    if value is None:
        return None
    if isinstance(value, dict):
        return Position(_long(value, "ledgerId"), _long(value, "entryId"))
    if not isinstance(value, str):
        raise wrong_type(MESSAGE_ID, value)
    why = f"no String-argument constructor/factory method to deserialize from String value ('{value}')"
    raise UnreadableBody(
        f"Cannot construct instance of `{MESSAGE_ID}` (although at least one Creator exists): {why}{place(1, 1)}"
    )


def message_id_json(position: Position, partition: int) -> dict[str, int]:
    """Return a message id as Pulsar's answers have it."""
    return {
        "ledgerId": position.ledger_id,
        "entryId": position.entry_id,
        "partitionIndex": partition,
        "batchSize": 0,
        "batchIndex": -1,
    }


def _place(value: Any) -> Place:
    if value in ("earliest", "latest"):
        return Place(EARLIEST if value == "earliest" else LATEST)
    if isinstance(value, list):
        raise wrong_type(RESET_CURSOR_DATA, value)
    if not isinstance(value, dict):
        text = f"problem: Invalid value {value} for the position. Allowed values are [latest, earliest]"
        whole = f"Cannot construct instance of `{RESET_CURSOR_DATA}`, {text}"
        raise UnreadableBody(whole + place(1, 1))
    return Place(
        Position(_long(value, "ledgerId"), _long(value, "entryId")),
        partition=_long(value, "partitionIndex", -1),
        batch_index=_long(value, "batchIndex", -1),
        excluded=bool(value.get("excluded")),
    )


def _long(value: dict[str, Any], field: str, default: int = 0) -> int:
    """Return a long as Jackson reads it: also from strings of digits, and from fractions, which it cuts off."""
    found = value.get(field, default)
    if found is None:
        return 0
    number = math.trunc(found) if isinstance(found, float) and math.isfinite(found) else found
    if isinstance(number, str) and NUMBER.fullmatch(number.strip()):
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int) or not LONG_MIN <= number <= LONG_MAX:
        raise wrong_type("long", found)
    return number
