"""Helpers for tests of compaction with the asynchronous client."""

from __future__ import annotations

from pulsarium.client import LastEntry, MessageId, Reader
from pulsarium.client.consumer.last_entry import DefaultPayloadToMessageIdConverter

from .admin import Admin
from .deadline import eventually


def compact(admin: Admin, topic: str) -> None:
    admin.compact(topic)
    eventually(lambda: admin.compaction(topic)["status"] == "SUCCESS", what="the compaction")


class Counting(DefaultPayloadToMessageIdConverter):
    """A converter that counts its calls. A call shows that the broker left the work to the client."""

    def __init__(self) -> None:
        self.calls = 0

    def convert(self, last_entry: LastEntry) -> MessageId:
        self.calls += 1
        return super().convert(last_entry)


async def all_of(reader: Reader) -> list[tuple[str, bytes]]:
    found = []
    while await reader.has_message_available():
        message = await reader.read_next()
        found.append((message.partition_key(), message.data()))
    return found
