"""Message ids in bodies, as Pulsar's ResetCursorData has them, and in answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pulsarium.broker.jackson.errors import JsonError, place
from pulsarium.broker.jackson.kinds import BOOL, INT, LONG, STRINGS, JavaType, record
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.ledger.position import EARLIEST, LATEST, Position
from pulsarium.broker.model.subscription.skip import LARGEST_BATCH, batch_size
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import unexpected_body
from pulsarium.proto.message_id import words_of


@dataclass(frozen=True, slots=True)
class RequestedPosition:
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


_FIELDS = record(
    "org.apache.pulsar.client.impl.ResetCursorData",
    {
        **dict.fromkeys(("ledgerId", "entryId"), LONG),
        **dict.fromkeys(("partitionIndex", "batchIndex"), INT),
        "excluded": BOOL,
        "properties": STRINGS,
    },
    {"partitionIndex": -1, "batchIndex": -1},
)
MESSAGE_ID = record("org.apache.pulsar.client.impl.MessageIdImpl", {"ledgerId": LONG, "entryId": LONG})


def _reset_cursor_data(value: Any) -> dict[str, Any]:
    if not isinstance(value, str):
        found: dict[str, Any] = _FIELDS.of(value)
        return {**found, "position": Position(found["ledgerId"], found["entryId"])}
    if value not in ("earliest", "latest"):
        text = f"problem: Invalid value {value} for the position. Allowed values are [latest, earliest]"
        raise JsonError(f"Cannot construct instance of `{_FIELDS.java_type}`, {text}{place(1, 1)}")
    return {**_FIELDS.of({}), "position": EARLIEST if value == "earliest" else LATEST}


RESET_CURSOR_DATA = JavaType(_FIELDS.java_type, _reset_cursor_data)


def read_place(call: Call) -> RequestedPosition:
    """Return the message id of a body. Raise `AdminError` without a body."""
    found = call.read(RESET_CURSOR_DATA)
    if found is None:
        why = 'because "resetCursorData" is null'
        raise unexpected_body(f'Cannot invoke "{_FIELDS.java_type}.getLedgerId()" {why}')
    return RequestedPosition(found["position"], found["partitionIndex"], found["batchIndex"], found["excluded"])


def read_start(call: Call) -> tuple[Position, dict[str, str]]:
    """Return the start position of a subscription, by default the end, and the subscription's properties."""
    found = call.read(RESET_CURSOR_DATA)
    if found is None:
        return LATEST, {}
    position: Position = found["position"]
    if found["excluded"] and position != EARLIEST and position.ledger_id != LATEST.ledger_id:
        position = Position(position.ledger_id, position.entry_id + 1)
    return position, found.get("properties", {})


def read_message_id(call: Call) -> Position | None:
    """Return the message id of a body (MessageIdImpl), or None without a body."""
    found = call.read(MESSAGE_ID)
    return None if found is None else Position(found["ledgerId"], found["entryId"])


def message_id_json(position: Position, partition: int) -> dict[str, int]:
    """Return a message id as Pulsar's answers have it."""
    return {
        "ledgerId": position.ledger_id,
        "entryId": position.entry_id,
        "partitionIndex": partition,
        "batchSize": 0,
        "batchIndex": -1,
    }
