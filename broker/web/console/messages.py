"""Browse the messages of a topic or of all its partitions, and search them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import trio

from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.sequence import Reading, newest_position
from pulsarium.broker.model.topic.backlog import published_before, published_ms
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.net.slices import Slice
from pulsarium.broker.storage.interface import DamagedEntriesError
from pulsarium.broker.web.admin.topic.message_ids import PEEK
from pulsarium.broker.web.admin.topic.reading import follow
from pulsarium.broker.web.console.condition import condition_of
from pulsarium.broker.web.console.reading import NEWER, OLDER, Cursor, FoundMessage, Merge, Part, Place
from pulsarium.broker.web.console.rows import Rows
from pulsarium.broker.web.http.call import Call, whole
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, json_reply
from pulsarium.proto.topic_name import SCALABLE

MESSAGES: Final = 50  # in one answer, without ?limit=
MOST: Final = 200
BYTES: Final = 4 << 20  # of payloads, keys and properties in one answer, and a message more
SECONDS: Final = 2.0  # of one search
SCANNED: Final = 50_000  # messages of one search
STRAY_MS: Final = 60_000  # how far the publish times of one partition may be out of order for a search by time
OLDEST_FIRST: Final = "oldest"
NEWEST_FIRST: Final = "newest"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of messages. None and "" ask for nothing."""

    from_ms: int | None
    to_ms: int | None
    key: str | None
    containing: str
    where: Callable[[FoundMessage], bool] | None

    def is_beyond(self, found: FoundMessage, direction: str) -> bool:
        """Return whether nothing behind the message, in this direction, has a time that is asked for."""
        if found.entry.metadata is None:
            return False
        if direction == OLDER:
            return self.from_ms is not None and found.entry.publish_ms < self.from_ms - STRAY_MS
        return self.to_ms is not None and found.entry.publish_ms > self.to_ms + STRAY_MS

    def meets(self, found: FoundMessage, rows: Rows) -> bool:
        """Return whether a message meets it, the cheapest question first."""
        ms = found.entry.publish_ms
        if (self.from_ms is not None and ms < self.from_ms) or (self.to_ms is not None and ms > self.to_ms):
            return False
        if self.key is not None and _text_of(rows.key_of(found)) != self.key:
            return False
        if self.containing and not self._contains(found, rows):
            return False
        return self.where is None or self.where(found)

    def _contains(self, found: FoundMessage, rows: Rows) -> bool:
        texts = [_text_of(rows.value_of(found)), _text_of(rows.key_of(found))]
        if found.single is not None:
            texts += [str(pair.value) for pair in found.single.properties]
        return any(self.containing in text.lower() for text in texts)


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


@route("GET", "/pulsarium/messages/{domain}/{tenant}/{namespace}/{topic}", needs=PEEK)
async def get_messages(call: Call) -> HttpReply:
    """Return messages, of a partitioned topic those of all partitions by their publish times, or of ?partition=.

    ?start= is latest, earliest, LEDGER:ENTRY[:BATCH], or `next` or `previous` of another answer. ?order= is newest or
    oldest first; without it, latest is newest first, and any other start oldest first. ?limit= messages are returned
    that meet ?fromMs=, ?toMs=, ?key=, ?containing= and ?where=. A search ends after some time with `complete` false,
    and `next` continues it. With ?subscription=, say of each message what became of it there. ?full=true cuts payloads
    at 1 MiB only.
    """
    slice_ = Slice()
    parts = await parts_of(call, slice_)
    rows = Rows(call.broker, call.query.get("subscription", ""), full=call.flag("full"))
    filter_, limit = _filter(call, rows), _number(call, "limit", MESSAGES)
    if not 0 < limit <= MOST:
        raise AdminError(400, f"limit is {limit}; it must be a number of messages, 1 to {MOST}")
    order, direction = await _begin(call, parts, filter_)
    merge = Merge(parts, direction, slice_)
    page = _Page(merge, rows, filter_)
    with trio.move_on_after(SECONDS) as time:
        await page.fill(limit, slice_)
    return json_reply(page.told(order, timed_out=time.cancelled_caught))


class _Page:
    """The messages of one answer."""

    def __init__(self, merge: Merge, rows: Rows, filter_: Filter) -> None:
        self._merge = merge
        self._rows = rows
        self._filter = filter_
        self._began = trio.current_time()
        self._scanned = 0
        self._found: list[Json] = []
        self._has_more = True
        self._stopped = False

    async def fill(self, limit: int, slice_: Slice) -> None:
        """Find messages until the page, its bytes or its time are used up."""
        merge, left = self._merge, BYTES
        until = self._began + SECONDS
        while len(self._found) < limit and left > 0:
            if self._scanned >= SCANNED or trio.current_time() >= until:
                self._stopped = True
                return
            found = await merge.next()
            if found is None:
                break
            self._scanned += 1
            if self._filter.is_beyond(found, merge.direction):
                merge.skip_part()
            elif self._filter.meets(found, self._rows):
                self._found.append(self._rows.row(found))
                left -= self._rows.size(found)
            await slice_.pause()
        self._has_more = merge.has_more

    def told(self, order: str, *, timed_out: bool) -> Json:
        """Return the answer, in the order of the page."""
        merge, stopped = self._merge, self._stopped or timed_out
        direction, back = merge.direction, NEWER if merge.direction == OLDER else OLDER
        on = str(Cursor(direction, merge.places)) if self._has_more else None
        starts = [part.start for part in merge.parts]
        there = any(part.has_messages(back, part.start) for part in merge.parts)
        off = str(Cursor(back, starts)) if there else None
        forward = direction == (OLDER if order == NEWEST_FIRST else NEWER)
        return {
            "messages": self._found if forward else self._found[::-1],
            "next": on if forward else off,
            "previous": off if forward else on,
            "end": str(Cursor(NEWER, [part.end for part in merge.parts])),
            "total": sum(len(part.entries) for part in merge.parts),
            "scanned": self._scanned,
            "scannedMs": round((trio.current_time() - self._began) * 1000),
            "complete": not stopped,
        }


async def parts_of(call: Call, slice_: Slice) -> list[Part]:
    """Return the topic of the path, or the partitions or segments that are asked for."""
    broker, name = call.broker, call.topic_anywhere
    scalable = broker.cluster.scalable.find(name) if name.domain == SCALABLE and not name.is_segment else None
    if scalable is not None:
        names = {each.id: scalable.segment_topic(each) for each in scalable.layout.assignable()}
    else:
        names = {index: name.partition(index) for index in range(broker.metadata.partitions_of(name))}
    asked = _number(call, "partition", -1)
    if asked >= 0 and names and asked not in names:
        raise AdminError(404, f"{name} has no partition {asked}; it has {len(names)}")
    found: list[Part] = []
    for index, each in ({asked: names[asked]} if asked >= 0 and names else names or {-1: name}).items():
        if names and not broker.topics.exists(each):
            continue
        topic = broker.topics.find(each)
        if not isinstance(topic, PersistentTopic):
            raise AdminError(405, "A non-persistent topic keeps no messages; watch its consumers instead")
        found.append(Part(topic, index))
        await slice_.pause()
    return found


def _filter(call: Call, rows: Rows) -> Filter:
    where, newest = call.query.get("where", "").strip(), call.broker.schemas.latest(call.topic_anywhere)
    return Filter(
        _time(call, "fromMs"),
        _time(call, "toMs"),
        call.query.get("key"),
        call.query.get("containing", "").lower(),
        condition_of(where, rows, None if newest is None else newest.schema) if where else None,
    )


def _number(call: Call, name: str, default: int) -> int:
    text = call.query.get(name, "")
    return whole(name, text, 9) if text else default


def _time(call: Call, name: str) -> int | None:
    text = call.query.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 17):
        raise AdminError(400, f"{name} is {text!r}; it must be a time in milliseconds since the epoch")
    return int(text)


async def _begin(call: Call, parts: list[Part], filter_: Filter) -> tuple[str, str]:
    """Set the start of each part. Return the order of the page, and the direction of reading."""
    start, order = call.query.get("start", ""), call.query.get("order", "")
    if order not in ("", NEWEST_FIRST, OLDEST_FIRST):
        raise AdminError(400, f"order is {order!r}; it must be {NEWEST_FIRST} or {OLDEST_FIRST}")
    cursor = Cursor.parse(start)
    if cursor is not None:
        if len(cursor.places) != len(parts):
            raise AdminError(400, "The topic has other partitions now; begin again without start")
        for part, place in zip(parts, cursor.places, strict=True):
            part.begin(place)
        return order or (NEWEST_FIRST if cursor.direction == OLDER else OLDEST_FIRST), cursor.direction
    if start in ("", "latest"):
        order = order or NEWEST_FIRST
        if start or order == NEWEST_FIRST or filter_.from_ms is None:
            if filter_.to_ms is not None:
                await _begin_at(parts, filter_.to_ms + STRAY_MS + 1)
            return order, OLDER
        await _begin_at(parts, filter_.from_ms - STRAY_MS)
        return order, NEWER
    order = order or OLDEST_FIRST
    if start == "earliest":
        for part in parts:
            part.begin(Place(part.entries[0]) if part.entries else part.end)
        return order, NEWER
    await _begin_with(parts, Place.parse(start), order)
    return order, NEWER if order == OLDEST_FIRST else OLDER


async def _begin_with(parts: list[Part], place: Place, order: str) -> None:
    """Begin each part at a message, and other partitions at its publish time."""
    owner = next((part for part in parts if place.position.ledger_id in part.topic.ledger.ledgers), None)
    if owner is None and len(parts) != 1:
        raise AdminError(404, f"No partition has ledger {place.position.ledger_id}")
    owner = owner or parts[0]
    if len(parts) > 1:
        published = owner.topic.ledger
        position = published.clamp(place.position)
        if published.is_valid(position):
            ms = await follow(owner.topic, lambda: _published(position))
            await _begin_at([part for part in parts if part is not owner], ms)
    behind = order == NEWEST_FIRST
    owner.begin(Place(place.position, place.batch_index + 1) if behind else place)


async def _begin_at(parts: list[Part], ms: int) -> None:
    """Begin each part with the first message at or after a time."""
    for part in parts:
        topic = part.topic
        ledgers, older = topic.ledger.ledgers, published_before(ms)
        last = await follow(topic, partial(newest_position, ledgers.values(), older, skips_damaged=True))
        part.begin(Place(topic.ledger.next(last or topic.ledger.first_position())))


def _published(position: Position) -> Reading[int]:
    """Return the publish time of an entry, or 0 for one that cannot be read."""
    try:
        entry = yield position
    except DamagedEntriesError:
        return 0
    return published_ms(entry) or 0
