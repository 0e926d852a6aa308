"""Messages of topics and where they stand: `topics` in part. Answers are as the broker gives them."""

from __future__ import annotations

from typing import cast

from pulsarium.rest.exchange import Reply, Request
from pulsarium.rest.group import Group, Topic, segment, twice
from pulsarium.rest.message_ids import MessageIdData


class Messages(Group):
    """Entries come as answers, whose headers and body hold them."""

    async def peek_messages(self, topic: Topic, subscription: str, count: int) -> list[Reply]:
        """The first `count` entries that a subscription has yet to acknowledge, or as many as there are."""
        path = f"{self._topic(topic)}/subscription/{twice(subscription)}/position"
        found: list[Reply] = []
        for position in range(1, count + 1):
            reply = await self._exchange.send(Request("GET", f"{path}/{position}", known=(404,)))
            if reply.status == 404:
                if not found and not reply.reason.startswith("Message not found"):
                    raise self._exchange.refused(reply)
                break
            found.append(reply)
        return found

    async def examine_message(self, topic: Topic, initial_position: str, message_position: int) -> Reply:
        """The entry of message `message_position`, from 1, counted from `earliest` or `latest`."""
        query = {"initialPosition": initial_position, "messagePosition": message_position}
        return await self._exchange.send(Request("GET", f"{self._topic(topic)}/examinemessage", query))

    async def get_messages_by_id(self, topic: Topic, ledger_id: int, entry_id: int) -> Reply:
        """An entry."""
        path = f"{self._topic(topic)}/ledger/{segment(ledger_id)}/entry/{segment(entry_id)}"
        return await self._exchange.send(Request("GET", path))

    async def get_last_message_id(self, topic: Topic) -> MessageIdData:
        """The last message that was published."""
        return await self._get(MessageIdData, f"{self._topic(topic)}/lastMessageId")

    async def get_message_id_by_timestamp(self, topic: Topic, timestamp: int) -> MessageIdData:
        """The first message published at or after `timestamp`, milliseconds since the epoch."""
        return await self._get(MessageIdData, f"{self._topic(topic)}/messageid/{timestamp}")

    async def get_message_id_by_index(self, topic: Topic, index: int) -> MessageIdData:
        """The entry that holds the message of this index, from 0 (PIP-415)."""
        return await self._get(MessageIdData, f"{self._topic(topic)}/getMessageIdByIndex", {"index": index})

    async def terminate_topic(self, topic: Topic) -> MessageIdData:
        """End a topic: nothing more is accepted. Gives its last message."""
        return cast(MessageIdData, await self._post(f"{self._topic(topic)}/terminate"))

    async def terminate_partitioned_topic(self, topic: Topic) -> dict[str, MessageIdData]:
        """The same for all partitions; last messages by partition."""
        return cast("dict[str, MessageIdData]", await self._post(f"{self._topic(topic)}/terminate/partitions"))
