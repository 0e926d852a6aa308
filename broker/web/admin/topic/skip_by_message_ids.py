"""POST .../subscription/{subscription}/skipByMessageIds (PIP-423): acknowledge messages by their ids."""

from __future__ import annotations

import base64
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.model.errors import UnsupportedSubscriptionTypeError
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.subscription.skip import Skip, SkipEntry, batch_size
from pulsarium.broker.web.admin.topic.backlog import subscription_of
from pulsarium.broker.web.admin.topic.reading import entry_at, pause_after
from pulsarium.broker.web.admin.topic.topics import each
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import SUBSCRIPTION, route
from pulsarium.broker.web.http.reply import HttpReply, done
from pulsarium.proto.errors import InvalidMessageId
from pulsarium.proto.message_id import MessageId
from pulsarium.proto.numbers import INT_MAX, LONG_MAX
from pulsarium.proto.special_names import COMPACTION_CURSOR, REPLICATORS


@route(
    "POST",
    f"/admin/v2/persistent/{{tenant}}/{{namespace}}/{{topic}}{SUBSCRIPTION}/skipByMessageIds",
    needs=topic_operation("SKIP", forbidden=True),
    offered=lambda profile: profile.skip_by_message_ids,
)
async def skip_by_message_ids(call: Call) -> HttpReply:
    """Acknowledge entries, or single messages of batches, by their ids on each partition."""
    body = call.json()
    _skips(call, {})  # errors of the subscription come before errors of ids
    ids = read_message_ids(body)
    in_batches = call.broker.config.acknowledgmentAtBatchIndexLevelEnabled
    if not in_batches and any(message_id.batch_index >= 0 for message_id in ids):
        text = "Single messages of a batch cannot be skipped: acknowledgmentAtBatchIndexLevelEnabled is false"
        raise AdminError(405, text)
    asked: defaultdict[int, list[MessageId]] = defaultdict(list)
    for message_id in ids:
        asked[message_id.ledger_id].append(message_id)
    sizes: dict[Position, int] = {}
    while True:
        skips = _skips(call, asked)  # again, as anything may have changed while entries were read
        unknown = [(skip.ledger, position) for skip in skips for position in skip.partial if position not in sizes]
        if not unknown:
            break
        await _read(unknown, sizes)
    for skip in skips:
        skip.check(sizes)
    for skip in skips:
        skip.apply()
    return done()


def _skips(call: Call, asked: Mapping[int, Sequence[MessageId]]) -> list[Skip]:
    """Return the skips of each partition. `asked`: the ids in each ledger."""
    topics, name = list(each(call)), call.encoded_parameter("subscription")
    if name == COMPACTION_CURSOR or name.startswith(REPLICATORS):
        raise UnsupportedSubscriptionTypeError
    subscriptions = [subscription_of(call, topic, named=str(call.topic)) for topic in topics]
    return [Skip(found, _entries(found, asked)) for found in subscriptions]


def _entries(subscription: PersistentSubscription, asked: Mapping[int, Sequence[MessageId]]) -> list[SkipEntry]:
    """Return the entries of `asked` in a topic's ledgers: a topic may have many partitions, and a body many ids."""
    here = [message_id for ledger_id in subscription.cursor.ledger.ledgers for message_id in asked.get(ledger_id, ())]
    return skip_entries(here, subscription.topic.name.partition_index)


async def _read(entries: Sequence[tuple[ManagedLedger, Position]], sizes: dict[Position, int]) -> None:
    for number, (ledger, position) in enumerate(entries, 1):
        entry = await entry_at(ledger, position)
        if entry is not None:  # else it was trimmed while others were read
            sizes[position] = batch_size(entry)
        await pause_after(number)


DIGITS = re.compile(r"[0-9]{1,19}")


def read_message_ids(body: Any) -> list[MessageId]:
    """Return the ids of a parsed body. Null ids are ignored."""
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
    """Return the entries to skip on one partition, without ids of other partitions.

    An id of a whole entry includes its parts.
    """
    found: dict[Position, set[int] | None] = {}
    for asked in ids:
        if asked.partition >= 0 <= partition != asked.partition:
            continue
        position = Position(asked.ledger_id, asked.entry_id)
        indexes = found.setdefault(position, set())
        if asked.batch_index < 0:
            found[position] = None
        elif indexes is not None:
            indexes.add(asked.batch_index)
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
    """Return a number, or a string of digits.

    Refuse negative ones, as a negative batch index would mean the whole entry.
    """
    found = value.get(field)
    if found is None:
        raise ValueError(f"missing {field}")
    if isinstance(found, str) and DIGITS.fullmatch(found):
        found = int(found)
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= largest:
        raise ValueError(f"invalid {field} {found!r:.100}")
    return found


def _from_bytes(value: Any) -> MessageId:
    """Return the id of a MessageId.toByteArray() in base64, with or without padding."""
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
