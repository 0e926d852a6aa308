"""Places that options name, and the positions in topics that they stand for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias

from pulsarium.client import Client, MessageId
from pulsarium.client.admin.errors import NotFound, PreconditionFailed
from pulsarium.client.bulk import message_at
from pulsarium.client.errors import InvalidConfiguration
from pulsarium.client.topics import full_name, parse
from pulsarium.pipeline.options import ADMIN_URL, BadOption, Options
from pulsarium.proto.errors import InvalidMessageId
from pulsarium.proto.message_id import MessageId as WireMessageId
from pulsarium.proto.numbers import LONG_MAX

_WHOLE = -1


class ReadPosition(NamedTuple):
    """Position of the next message to read.

    A range [a, b) excludes b, and b need not exist yet, or any more.
    """

    ledger: int
    entry: int
    batch_index: int = 0

    @staticmethod
    def parse(text: str) -> ReadPosition:
        """Return the position of a text that `str` wrote, a message id in Pulsar's form.

        Raise `InvalidMessageId` (a `ValueError`) for any other text.
        """
        return ReadPosition.of(MessageId.from_wire(WireMessageId.parse(text)))

    @staticmethod
    def of(message_id: MessageId) -> ReadPosition:
        """Return the position of a message.

        For a chunked message it is that of the last chunk, with which the message arrives.
        """
        return ReadPosition(message_id.ledger_id, message_id.entry_id, max(message_id.batch_index, 0))

    @staticmethod
    def behind(message_id: MessageId) -> ReadPosition:
        """Return the position after the message, or after the entry for an id without batch index."""
        at = ReadPosition.of(message_id)
        if message_id.batch_index > _WHOLE and message_id.batch_index + 1 != message_id.batch_size:
            return at._replace(batch_index=at.batch_index + 1)
        return at.next_entry

    @property
    def next_entry(self) -> ReadPosition:
        return ReadPosition(self.ledger, self.entry + 1)

    def message_id(self) -> MessageId:
        """Return the id at which to begin, inclusively. The id of a whole entry has no batch index."""
        return MessageId(self.ledger, self.entry, batch_index=self.batch_index or _WHOLE)

    def __str__(self) -> str:
        """Return `ledger:entry`, or `ledger:entry:-1:batch index`."""
        return f"{self.ledger}:{self.entry}" + (f":-1:{self.batch_index}" if self.batch_index else "")


FIRST = ReadPosition(-1, -1)
"""Before every message."""
LAST = ReadPosition(LONG_MAX + 1, 0)
"""Behind every message."""


@dataclass(frozen=True)
class Earliest:
    """The first message that still exists."""


@dataclass(frozen=True)
class EndOfTopic:
    """The end of the topic."""


@dataclass(frozen=True)
class AtMessage:
    """Start or end at this message. It is read in either case, as by Pulsar's connector."""

    message_id: MessageId


@dataclass(frozen=True)
class AtTime:
    """Start or end at the first message that was published at this time or later."""

    milliseconds: int


@dataclass(frozen=True)
class AtIndex:
    """Start or end at the message with this index, counted from 0 (PIP-70)."""

    index: int


Place: TypeAlias = Earliest | EndOfTopic | AtMessage | AtTime | AtIndex
_Read: TypeAlias = Callable[[object, str], Place]


@dataclass(frozen=True)
class Places:
    """A place for all topics, and exceptions for some topics."""

    everywhere: Place
    by_topic: Mapping[str, Place] = field(default_factory=dict)
    """Places by full names of topics, partitioned topics or partitions."""

    def of(self, topic: str) -> Place:
        """Return the place of a topic without partitions, or of one partition."""
        whole = str(parse(topic).partitioned_name)
        return self.by_topic.get(topic) or self.by_topic.get(whole) or self.everywhere

    def check(self, topics: Iterable[str], option: str) -> None:
        """Raise `BadOption` when a place is for a topic that is not read."""
        found = set(topics) | {str(parse(topic).partitioned_name) for topic in topics}
        for name in self.by_topic:
            if name not in found:
                raise BadOption(
                    f'option "{option}" names {name}, which is not read: the topics are {", ".join(sorted(found))}'
                )


def starting(options: Options, default: Place) -> Places:
    """Return the places of startingOffsets or startingTime."""
    return _places(options, "startingOffsets", "startingTime", default)


def ending(options: Options) -> Places:
    """Return the places of endingOffsets or endingTime, by default `EndOfTopic`."""
    places = _places(options, "endingOffsets", "endingTime", EndOfTopic())
    if Earliest() in (places.everywhere, *places.by_topic.values()):
        raise BadOption('option "endingOffsets" cannot be earliest: no message is before it')
    return places


def _places(options: Options, by_offset: str, by_time: str, default: Place) -> Places:
    offsets, times = options.text(by_offset), options.text(by_time)
    if offsets is not None and times is not None:
        raise BadOption(f'give only one of the options "{by_offset}" and "{by_time}"')
    if offsets is not None:
        return _read(offsets.strip(), by_offset, _offset, default)
    if times is not None:
        return _read(times.strip(), by_time, _time, default)
    return Places(default)


def _read(text: str, option: str, read: _Read, default: Place) -> Places:
    if not text.startswith("{"):
        return Places(read(text, option))
    try:
        given = json.loads(text)
    except ValueError as error:
        raise BadOption(f'option "{option}" is not valid JSON: {error}') from None
    return Places(default, {full_name(topic): read(place, option) for topic, place in given.items()})


def _offset(given: object, option: str) -> Place:
    if isinstance(given, list):  # Java's signed bytes, as JsonUtils.topicOffsets of Pulsar's connector writes them
        return _message(given, option)
    text = str(given).strip()
    if text.lower() in ("earliest", "latest"):
        return Earliest() if text.lower() == "earliest" else EndOfTopic()
    kind, _, rest = text.partition(":")
    if kind.lower() == "index" and rest.isdecimal():
        return AtIndex(int(rest))
    try:
        return AtMessage(MessageId.from_wire(WireMessageId.parse(text)))
    except InvalidMessageId:
        pass
    try:
        return _moment(text)
    except ValueError:
        raise BadOption(
            f'option "{option}" must be earliest, latest, a message id (ledger:entry[:partition[:batch index]]), '
            f"index:N, a time (2026-01-31T12:00:00Z), or JSON with one of these for each topic; not {given!r}"
        ) from None


def _message(given: list[object], option: str) -> Place:
    try:
        message_id = MessageId.deserialize(bytes(int(str(one)) % 256 for one in given))
    except ValueError as error:
        raise BadOption(f'option "{option}": {given} is not the bytes of a message id: {error}') from None
    if message_id.entry == MessageId.earliest.entry:
        return Earliest()
    return EndOfTopic() if message_id.entry == MessageId.latest.entry else AtMessage(message_id)


def _time(given: object, option: str) -> Place:
    try:
        return _moment(str(given).strip())
    except ValueError:
        raise BadOption(
            f'option "{option}" must be a time in milliseconds since the epoch or like 2026-01-31T12:00:00Z, or JSON '
            f"that has one for each topic; not {given!r}"
        ) from None


def _moment(text: str) -> AtTime:
    """Return the time of milliseconds, or of ISO text, in UTC unless the text has a zone. Raise `ValueError`."""
    if text.isdecimal():
        if int(text) > LONG_MAX:
            raise ValueError("time out of range")
        return AtTime(int(text))
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return AtTime(round(moment.timestamp() * 1000))


async def position_of(client: Client, topic: str, place: Place, *, is_end: bool = False) -> ReadPosition:
    """Return the position of a place in a topic without partitions, or in one partition.

    With `is_end`, reading stops at the position. Raise `BadOption` for an index without admin.url, or when the broker
    assigns no indexes.
    """
    match place:
        case Earliest():
            return FIRST
        case EndOfTopic():
            return await _end(client, topic)
        case AtMessage(message_id):
            return ReadPosition.behind(message_id) if is_end else ReadPosition.of(message_id.first_chunk or message_id)
        case AtTime(milliseconds):
            return await _at_time(client, topic, milliseconds)
        case AtIndex(index):
            return await _at_index(client, topic, index)


def end_of(last: MessageId) -> ReadPosition | None:
    """Return the position after the entry of the last message, or None when there is no message."""
    return ReadPosition(*last.entry).next_entry if last.entry_id >= 0 else None


async def _end(client: Client, topic: str) -> ReadPosition:
    async with client.create_reader(topic, MessageId.latest) as reader:
        [last] = await reader.get_last_message_ids()
    return end_of(last) or FIRST


async def _at_time(client: Client, topic: str, milliseconds: int) -> ReadPosition:
    """Return the position of the first message from a time on.

    A seek by time finds an entry: all messages of a batch have one publish time.
    """
    async with client.create_reader(topic, MessageId.earliest, receiver_queue_size=1) as reader:
        await reader.seek(milliseconds)
        while await reader.has_message_available():
            message = await reader.read_next()
            if message.publish_timestamp() >= milliseconds:
                message_id = message.message_id()
                return ReadPosition.of(message_id.first_chunk or message_id)
        [last] = await reader.get_last_message_ids()
    return end_of(last) or FIRST


async def _at_index(client: Client, topic: str, index: int) -> ReadPosition:
    try:
        found = await message_at(client.admin.topics, topic, index)
    except InvalidConfiguration:
        raise BadOption(f'index:{index} needs .option("{ADMIN_URL}", ...)') from None
    except PreconditionFailed as error:
        raise BadOption(f"index:{index}: the broker assigns no indexes to messages of {topic}: {error}") from error
    except NotFound:  # no message has this index yet
        return await _end(client, topic)
    return FIRST if found == MessageId.earliest else ReadPosition.of(found)
