"""Find the id of a message by its index (PIP-415). Brokers offer this over REST only, and for entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsarium.client.message_id import MessageId

if TYPE_CHECKING:
    from pulsarium.client.admin.topics import Topics


async def message_at(topics: Topics, topic: str, index: int) -> MessageId:
    """Return the id of the message with this index, in a topic without partitions or in one partition.

    Return the earliest message if the message is deleted already. Raise `NotFound` for an unknown index, and
    `PreconditionFailed` when the broker does not count messages (brokerEntryMetadataInterceptors), both of
    admin.errors.
    """
    found = await topics.get_message_id_by_index(topic, index)
    # a broker answers -1:-1 for a deleted message, and 4.2.4 also for a message in the first entry
    told = found.entry_id >= 0
    if told:
        messages = await topics.get_messages_by_id(topic, *found.entry)
    else:
        found, messages = MessageId.earliest, await topics.examine_message(topic, "earliest")
    if not messages or not messages[0].entry_metadata().HasField("num_messages_in_batch"):
        return found
    size, last = messages[0].entry_metadata().num_messages_in_batch, messages[0].broker_metadata()
    if last is None:
        return found
    first = last.index - size + 1  # the index of an entry is that of its last message
    if not told and not first <= index <= last.index:
        return found
    # the difference is negative for the index of a system message: return the message after it
    return MessageId(*messages[0].message_id().entry, found.partition, max(index - first, 0), size)
