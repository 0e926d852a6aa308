"""Topics over REST, with messages and ids as in the client."""

from __future__ import annotations

from pulsarium.client.admin.entries import messages_of
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.rest import topics as rest
from pulsarium.rest.group import Topic
from pulsarium.rest.message_ids import MessageIdData


class Topics(rest.TopicsWithoutMessages):
    """Calls about topics, with messages and ids as in the client."""

    @property
    def _rest(self) -> rest.Topics:
        return rest.Topics(self._exchange)

    async def peek_messages(self, topic: Topic, subscription: str, count: int = 1) -> list[Message[bytes]]:
        """Return the messages of the first `count` entries of a subscription's backlog, without acknowledging them."""
        name = str(self._name(topic))
        replies = await self._rest.peek_messages(topic, subscription, count)
        return [message for reply in replies for message in messages_of(name, reply)]

    async def examine_message(
        self, topic: Topic, initial_position: str = "latest", message_position: int = 1
    ) -> list[Message[bytes]]:
        """Return the messages of the entry that holds one message.

        Args:
            topic: The topic.
            initial_position: "earliest" or "latest", where counting begins.
            message_position: The number of the message, from 1.
        """
        reply = await self._rest.examine_message(topic, initial_position, message_position)
        return messages_of(str(self._name(topic)), reply)

    async def get_messages_by_id(self, topic: Topic, ledger_id: int, entry_id: int) -> list[Message[bytes]]:
        """Return the messages of an entry."""
        return messages_of(str(self._name(topic)), await self._rest.get_messages_by_id(topic, ledger_id, entry_id))

    async def get_last_message_id(self, topic: Topic) -> MessageId:
        """Return the id of the last published message."""
        return message_id_of(await self._rest.get_last_message_id(topic))

    async def get_message_id_by_timestamp(self, topic: Topic, timestamp: int) -> MessageId:
        """Return the id of the first message published at or after `timestamp`, in milliseconds since the epoch."""
        return message_id_of(await self._rest.get_message_id_by_timestamp(topic, timestamp))

    async def get_message_id_by_index(self, topic: Topic, index: int) -> MessageId:
        """Return the id of the entry that holds the message with this index, from 0 (PIP-415).

        Pass a partition of a partitioned topic.

        Raises:
            NotFound: No message has this index.
            PreconditionFailed: The broker does not count messages (brokerEntryMetadataInterceptors).
        """
        return message_id_of(await self._rest.get_message_id_by_index(topic, index))

    async def terminate_topic(self, topic: Topic) -> MessageId:
        """Terminate a topic, which accepts no more messages then. Return the id of its last message."""
        return message_id_of(await self._rest.terminate_topic(topic))

    async def terminate_partitioned_topic(self, topic: Topic) -> dict[int, MessageId]:
        """Terminate all partitions of a topic.

        Return the id of the last message of each partition, by partition index.
        """
        found = await self._rest.terminate_partitioned_topic(topic)
        return {int(index): message_id_of(data) for index, data in found.items()}


def message_id_of(data: MessageIdData) -> MessageId:
    """Return the message id of an answer."""
    return MessageId(
        data["ledgerId"],
        data["entryId"],
        data.get("partitionIndex", -1),
        data.get("batchIndex", -1),
        max(data.get("batchSize", 0), 0),
    )
