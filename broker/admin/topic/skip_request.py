"""The body of skipByMessageIds (PIP-423, SkipMessageIdsRequest), in each of its forms."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from typing import Any

from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.skip import SkipEntry
from pulsarium.proto.errors import InvalidMessageId
from pulsarium.proto.message_id import MessageId

DIGITS = re.compile(r"[0-9]{1,19}")
LONG_MAX, INT_MAX = 2**63 - 1, 2**31 - 1


def read_message_ids(body: Any) -> list[MessageId]:
    """The ids of a body that was JSON. Nulls among them are passed over."""
    if isinstance(body, list):
        return _each(body, _from_bytes)
    if not isinstance(body, dict):
        raise _invalid("empty body" if body is None else "neither an object nor an array")
    if "messageIds" not in body:
        raise _invalid("missing messageIds")
    values, kind = body["messageIds"], body.get("type")
    if not isinstance(values, list):
        raise _invalid("messageIds is not an array")
    match kind.lower() if isinstance(kind, str) else kind:
        case None | "" | "bytearray":
            return _each(values, _from_bytes)
        case "messageid":
            return _each(values, _from_fields)
    raise _invalid(f"unsupported type {kind!r:.100}")


def skip_entries(ids: Sequence[MessageId], partition: int) -> list[SkipEntry]:
    """What of them a topic is asked for; an id of another partition is not for it. The whole entry wins over parts."""
    found: dict[Position, set[int] | None] = {}
    for each in ids:
        if each.partition >= 0 <= partition != each.partition:
            continue
        position = Position(each.ledger_id, each.entry_id)
        indexes = found.setdefault(position, set())
        if each.batch_index < 0:
            found[position] = None
        elif indexes is not None:
            indexes.add(each.batch_index)
    return [SkipEntry(*position, sorted(indexes or ())) for position, indexes in found.items()]


def _each(values: list[Any], read: Callable[[Any], MessageId]) -> list[MessageId]:
    found = []
    for number, value in enumerate(values):
        if value is None:
            continue
        try:
            found.append(read(value))
        except ValueError as error:
            raise _invalid(f"messageIds[{number}]: {error}") from None
    return found


def _from_fields(value: Any) -> MessageId:
    if not isinstance(value, dict):
        raise ValueError("not an object with ledgerId and entryId")
    batch_index = value.get("batchIndex")
    return MessageId(
        _number(value, "ledgerId", LONG_MAX),
        _number(value, "entryId", LONG_MAX),
        batch_index=-1 if batch_index is None else _number(value, "batchIndex", INT_MAX),
    )


def _number(value: dict[str, Any], field: str, largest: int) -> int:
    """A number, or a text of digits; nothing below zero, for a negative batch index would mean the whole entry."""
    found = value.get(field)
    if found is None:
        raise ValueError(f"missing {field}")
    if isinstance(found, str) and DIGITS.fullmatch(found):
        found = int(found)
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= largest:
        raise ValueError(f"invalid {field} {found!r:.100}")
    return found


def _from_bytes(value: Any) -> MessageId:
    """MessageId.toByteArray() in base64, with or without padding."""
    if not isinstance(value, str):
        raise ValueError('not a text in base64; objects need "type":"messageId"')
    padding = "" if value.endswith("=") else "=" * (-len(value) % 4)
    try:
        found = MessageId.from_bytes(base64.b64decode(value + padding, validate=True))
    except InvalidMessageId:
        raise ValueError("not a serialized message id") from None
    except ValueError:
        raise ValueError("not base64") from None
    if found.ledger_id < 0 or found.entry_id < 0 or found.batch_index < -1:
        raise ValueError(f"{found} names no message")
    return found


def _invalid(what: str) -> AdminError:
    return AdminError(400, f"Invalid skipByMessageIds payload: {what}")
