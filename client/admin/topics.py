"""Topics over REST, with messages and their ids as the client has them."""

from __future__ import annotations

from pulsarium.client.admin.entries import messages_of
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.rest import topics as rest
from pulsarium.rest.group import Topic
from pulsarium.rest.message_ids import MessageIdData


class Topics(rest.TopicsWithoutMessages):
    """`topics`, with messages and their ids as the client has them."""

    @property
    def _rest(self) -> rest.Topics:
        return rest.Topics(self._exchange)

    async def peek_messages(self, topic: Topic, subscription: str, count: int = 1) -> list[Message[bytes]]:
        """The messages of the first `count` entries that a subscription has yet to acknowledge, without taking them."""
        name = str(self._name(topic))
        replies = await self._rest.peek_messages(topic, subscription, count)
        return [message for reply in replies for message in messages_of(name, reply)]

    async def examine_message(
        self, topic: Topic, initial_position: str = "latest", message_position: int = 1
    ) -> list[Message[bytes]]:
        """The entry of message `message_position`, from 1, counted from "earliest" or "latest"."""
        reply = await self._rest.examine_message(topic, initial_position, message_position)
        return messages_of(str(self._name(topic)), reply)

    async def get_messages_by_id(self, topic: Topic, ledger_id: int, entry_id: int) -> list[Message[bytes]]:
        """The messages of an entry."""
        return messages_of(str(self._name(topic)), await self._rest.get_messages_by_id(topic, ledger_id, entry_id))

    async def get_last_message_id(self, topic: Topic) -> MessageId:
        """The last message that was published."""
        return message_id_of(await self._rest.get_last_message_id(topic))

    async def get_message_id_by_timestamp(self, topic: Topic, timestamp: int) -> MessageId:
        """The first message published at or after `timestamp`, milliseconds since the epoch."""
        return message_id_of(await self._rest.get_message_id_by_timestamp(topic, timestamp))

    async def get_message_id_by_index(self, topic: Topic, index: int) -> MessageId:
        """The entry that holds the message of this index, from 0; of a partitioned topic ask a partition (PIP-415).

        NotFound if there is none; PreconditionFailed where the broker does not count messages
        (brokerEntryMetadataInterceptors).
        """
        return message_id_of(await self._rest.get_message_id_by_index(topic, index))

    async def terminate_topic(self, topic: Topic) -> MessageId:
        """End a topic: nothing more is accepted. Gives its last message."""
        return message_id_of(await self._rest.terminate_topic(topic))

    async def terminate_partitioned_topic(self, topic: Topic) -> dict[int, MessageId]:
        """The same for all partitions; last messages by partition."""
        found = await self._rest.terminate_partitioned_topic(topic)
        return {int(index): message_id_of(data) for index, data in found.items()}


def message_id_of(data: MessageIdData) -> MessageId:
    return MessageId(
        data["ledgerId"],
        data["entryId"],
        data.get("partitionIndex", -1),
        data.get("batchIndex", -1),
        max(data.get("batchSize", 0), 0),
    )
