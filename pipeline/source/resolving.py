"""From places to positions."""

from __future__ import annotations

from pulsarium.client import Client, MessageId
from pulsarium.client.admin.errors import NotFound, PreconditionFailed
from pulsarium.client.bulk import message_at
from pulsarium.client.errors import InvalidConfiguration
from pulsarium.pipeline.options import ADMIN_URL, BadOption
from pulsarium.pipeline.source.places import AtIndex, AtMessage, AtTime, Earliest, Latest, Place
from pulsarium.pipeline.source.position import FIRST, Position


async def position_of(client: Client, topic: str, place: Place, *, is_end: bool = False) -> Position:
    """Where a place is in a topic without partitions, or in a partition; `is_end`: reading stops there.

    BadOption for an index without admin.url, or of a broker that does not count.
    """
    match place:
        case Earliest():
            return FIRST
        case Latest():
            return await _end(client, topic)
        case AtMessage(message_id):
            return Position.behind(message_id) if is_end else Position.of(message_id.first_chunk or message_id)
        case AtTime(milliseconds):
            return await _at_time(client, topic, milliseconds)
        case AtIndex(index):
            return await _at_index(client, topic, index)


def end_of(last: MessageId) -> Position | None:
    """Behind the entry of the last message; None if there is no message."""
    return Position(*last.entry).next_entry if last.entry_id >= 0 else None


async def _end(client: Client, topic: str) -> Position:
    async with client.create_reader(topic, MessageId.latest) as reader:
        [last] = await reader.get_last_message_ids()
    return end_of(last) or FIRST


async def _at_time(client: Client, topic: str, milliseconds: int) -> Position:
    """A seek by time finds an entry; all messages of a batch have one publish time."""
    async with client.create_reader(topic, MessageId.earliest, receiver_queue_size=1) as reader:
        await reader.seek(milliseconds)
        while await reader.has_message_available():
            message = await reader.read_next()
            if message.publish_timestamp() >= milliseconds:
                message_id = message.message_id()
                return Position.of(message_id.first_chunk or message_id)
        [last] = await reader.get_last_message_ids()
    return end_of(last) or FIRST


async def _at_index(client: Client, topic: str, index: int) -> Position:
    try:
        found = await message_at(client.admin.topics, topic, index)
    except InvalidConfiguration:
        raise BadOption(f'index:{index} needs .option("{ADMIN_URL}", ...)') from None
    except PreconditionFailed as error:
        raise BadOption(f"index:{index}: the broker does not number the messages of {topic}: {error}") from error
    except NotFound:  # not there yet
        return await _end(client, topic)
    return FIRST if found == MessageId.earliest else Position.of(found)
