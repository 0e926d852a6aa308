"""Preview an act: which messages it touches, what cannot be undone, and why it would be refused. Nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.broker.model.ledger.position import EARLIEST, LATEST, Position
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.net.slices import Slice
from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.web.admin.topic.message_ids import PEEK
from pulsarium.broker.web.console.messages import parts_of
from pulsarium.broker.web.console.reading import FoundMessage, Part, Place, opened_at
from pulsarium.broker.web.console.rows import Rows
from pulsarium.broker.web.console.touching import (
    Touched,
    cleared,
    expired,
    expired_through,
    skipped,
    skipped_alone,
    sought,
)
from pulsarium.broker.web.http.call import Call, whole
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, json_reply

COUNTED: Final = 500  # entries whose messages are counted; more are counted as entries

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """An act with its values, as the console sends them."""

    act: str
    count: int
    seconds: int
    place: Place
    batch_index: int
    now_ms: int

    @classmethod
    def read(cls, call: Call) -> Asked:
        """Return the act in the body. Raise `AdminError` 400 for another body."""
        body = call.json()
        if not isinstance(body, dict) or not isinstance(body.get("act"), str):
            raise AdminError(400, 'The body must be a JSON object with an act: {"act": "skip", "subscription": "sub"}')
        text = str(body.get("position") or "earliest")
        place = _PLACES.get(text) or Place.parse(text)
        return cls(
            body["act"],
            _whole(body, "count", 1),
            _whole(body, "seconds", 0),
            place,
            place.batch_index if text.count(":") == 2 else -1,
            call.broker.clock_of(call.topic_anywhere).now_ms(),
        )


_PLACES: Final[Mapping[str, Place]] = {"earliest": Place(EARLIEST), "latest": Place(LATEST)}


def _whole(body: Json, name: str, default: int) -> int:
    return whole(name, str(body.get(name, default)).strip() or str(default), 9)


OnSubscription = Callable[[Asked, PersistentSubscription], Touched]
ON_SUBSCRIPTION: Final[Mapping[str, OnSubscription]] = {
    "skip": lambda asked, its: skipped(its, asked.count),
    "skip-message": lambda asked, its: skipped_alone(its, asked.place.position, asked.batch_index),
    "clear": lambda asked, its: cleared(its),
    "expire": lambda asked, its: expired(its, asked.seconds),
    "expire-to": lambda asked, its: expired_through(its, asked.place.position),
    "seek": lambda asked, its: sought(its, asked.place.position),
    "rewind": lambda asked, its: sought(its, its.topic.position_at(asked.now_ms - asked.seconds * 1000)),
    "unsubscribe": lambda asked, its: _unsubscribed(its, force=False),
    "unsubscribe-force": lambda asked, its: _unsubscribed(its, force=True),
}
ON_TOPIC: Final = ("truncate", "delete", "delete-force", "delete-partitioned", "delete-partitioned-force")
"""The acts that delete all messages."""
UNLESS_USED: Final = ("delete", "delete-partitioned")
DONE: Final[Mapping[str, str]] = {
    "skip": "acknowledged without being processed",
    "skip-message": "acknowledged without being processed",
    "clear": "acknowledged without being processed",
    "expire": "acknowledged without being processed",
    "expire-to": "acknowledged without being processed",
    "seek": "passed without being processed",
    "rewind": "passed without being processed",
    "unsubscribe": "no longer kept for the subscription",
    "unsubscribe-force": "no longer kept for the subscription",
}
DELETED: Final = "deleted for all subscriptions"


@route("POST", "/pulsarium/preview/{domain}/{tenant}/{namespace}/{topic}", needs=PEEK)
async def preview(call: Call) -> HttpReply:
    """Return what an act would touch: how many messages, the first and the last of them, and how to undo it.

    The body has the `act` by the id of its button, the `subscription`, and the values that the act takes: `count`,
    `seconds`, or a `position` (earliest, latest or LEDGER:ENTRY[:BATCH]). `unit` says whether `touched` counts
    messages, or entries where they are too many. `refused` is why the broker would refuse the act, or null.
    """
    asked, slice_ = Asked.read(call), Slice()
    parts = await parts_of(call, slice_)
    if asked.act in ON_TOPIC:
        found = [(part, _of_topic(call, part, asked.act)) for part in parts]
        return json_reply(await _told(call, asked, found, "", slice_))
    if asked.act not in ON_SUBSCRIPTION:
        known = ", ".join([*ON_SUBSCRIPTION, *ON_TOPIC])
        raise AdminError(400, f"There is no preview of {asked.act}; there is one of {known}")
    name = str((call.json() or {}).get("subscription") or "")
    having = [part for part in parts if name in part.topic.subscriptions]
    if not having:
        raise AdminError(404, f"Subscription {name} not found for topic {call.topic_anywhere}")
    found = []
    for part in _concerned(asked, having):
        found.append((part, _on_subscription(asked, part.topic.subscriptions[name])))
        await slice_.pause()
    return json_reply(await _told(call, asked, found, name, slice_))


def _concerned(asked: Asked, parts: list[Part]) -> list[Part]:
    """Return the parts that the act concerns: the owner of the message that it names, or all of them."""
    if asked.act not in ("skip-message", "expire-to", "seek") or asked.place.position in (EARLIEST, LATEST):
        return parts
    owners = [part for part in parts if asked.place.position.ledger_id in part.topic.ledger.ledgers]
    return owners or parts[:1]


def _on_subscription(asked: Asked, subscription: PersistentSubscription) -> Touched:
    try:
        return ON_SUBSCRIPTION[asked.act](asked, subscription)
    except StorageError as error:
        return Touched(refused=f"an entry cannot be read: {error}")


def _unsubscribed(subscription: PersistentSubscription, *, force: bool) -> Touched:
    if subscription.consumers and not force:
        return Touched(
            refused=f"{len(subscription.consumers)} consumers are connected; close them, or delete with them"
        )
    return cleared(subscription)


def _of_topic(call: Call, part: Part, act: str) -> Touched:
    if act in UNLESS_USED:
        try:
            part.topic.check_unused(call.broker.topics.policies_of)
        except BrokerServiceError as error:
            return Touched(refused=error.text)
    if not part.entries:
        return Touched()
    return Touched(part.entries[0], part.topic.ledger.last_confirmed, len(part.entries))


async def _told(call: Call, asked: Asked, found: list[tuple[Part, Touched]], name: str, slice_: Slice) -> Json:
    """Return the answer for all parts."""
    refusals = [each.refused for _, each in found if each.refused]
    refused = refusals[0] if len(refusals) == len(found) and refusals else None
    touched = [(part, each) for part, each in found if each.count]
    unit, count = await _counted(asked, touched, name, slice_)
    rows = Rows(call.broker, name)
    first = [await _row(rows, part, each.first, slice_, last=False) for part, each in touched]
    last = [await _row(rows, part, each.last, slice_, last=True) for part, each in touched]
    undo = [(part, each.undo) for part, each in found if each.undo is not None]
    return {
        "touched": count,
        "unit": unit,
        "first": min(filter(None, first), key=_published, default=None),
        "last": max(filter(None, last), key=_published, default=None),
        "text": refused or _text(asked, found, count, unit),
        "undo": _undo(undo),
        "refused": refused,
    }


def _published(row: Json) -> int:
    return int(row.get("publishMs", 0))


def _undo(positions: list[tuple[Part, Position]]) -> Json | None:
    """Return the former position of a seek: of one topic, or of each partition."""
    if not positions:
        return None
    if len(positions) == 1 and positions[0][0].index < 0:
        return {"position": str(positions[0][1])}
    return {"positions": {str(part.topic.name): str(position) for part, position in positions}}


async def _row(rows: Rows, part: Part, position: Position | None, slice_: Slice, *, last: bool) -> Json | None:
    entry = None if position is None else await opened_at(part, position, slice_)
    if entry is None:
        return None
    return rows.row(FoundMessage(entry, -1 if not entry.is_batch else len(entry.singles) - 1 if last else 0))


async def _counted(asked: Asked, touched: list[tuple[Part, Touched]], name: str, slice_: Slice) -> tuple[str, int]:
    """Return the number of messages that the act touches, or of entries when these are many."""
    entries = sum(each.count for _, each in touched)
    if asked.act == "skip-message" and asked.batch_index >= 0:
        return "messages", entries
    if entries > COUNTED:
        return "entries", entries
    return "messages", sum([await _messages(part, each, name, slice_) for part, each in touched])


async def _messages(part: Part, touched: Touched, name: str, slice_: Slice) -> int:
    subscription = part.topic.subscriptions.get(name)
    ledger, found, position = part.topic.ledger, 0, touched.first
    while position is not None and touched.last is not None and position <= touched.last and ledger.is_valid(position):
        acked = subscription is not None and subscription.cursor.is_acked(position)
        if subscription is None or acked is touched.again:
            entry = await opened_at(part, position, slice_)
            left = None if subscription is None or touched.again else subscription.cursor.left_of(position)
            found += 0 if entry is None else left.bit_count() if left is not None else max(1, len(entry.singles))
        position = ledger.next(position)
        await slice_.pause()
    return found


def _text(asked: Asked, found: list[tuple[Part, Touched]], count: int, unit: str) -> str:
    """Return what the act does, as one sentence."""
    if not count:
        text = "Nothing is touched: no message fits"
    else:
        noun = unit if count != 1 else {"messages": "message", "entries": "entry"}[unit]
        again = any(each.again and each.count for _, each in found)
        done = "delivered again" if again else DONE.get(asked.act, DELETED)
        text = f"{count:,} {noun} {'are' if count != 1 else 'is'} {done}"
    parts = sum(1 for _, each in found if each.count)
    if parts > 1:
        text += f", in {parts} partitions"
    restored = sum(each.restored for _, each in found)
    if restored:
        text += f"; {restored:,} individually acknowledged entries are delivered again too, which no seek undoes"
    refused = next((each.refused for _, each in found if each.refused), "")
    return f"{text}; not on every partition: {refused}" if refused else text
