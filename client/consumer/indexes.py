"""From the index of a message to its id (PIP-415): the broker knows the entry, over REST only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsarium.client.message_id import MessageId

if TYPE_CHECKING:
    from pulsarium.client.admin.topics import Topics


async def message_at(topics: Topics, topic: str, index: int) -> MessageId:
    """The id of the message with this index in a topic without partitions, or in one partition.

    MessageId.earliest if it is deleted already. Raises what
    the broker refuses it with: admin.errors.NotFound where there is no such index, PreconditionFailed where the broker
    does not count messages (brokerEntryMetadataInterceptors).
    """
    found = await topics.get_message_id_by_index(topic, index)
    # -1:-1 is what a broker says of a message that is deleted; 4.2.4 also of one inside the first entry
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
    first = last.index - size + 1  # an entry's index is its last message's
    if not told and not first <= index <= last.index:
        return found
    # below it where the index is a system message's: this is what follows
    return MessageId(*messages[0].message_id().entry, found.partition, max(index - first, 0), size)
