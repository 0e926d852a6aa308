"""Measure how far a stream is behind the end of a topic, for the progress of its query."""

from __future__ import annotations

import time
from typing import NamedTuple

from pulsarium.client import Client, Message
from pulsarium.client.admin.errors import AdminError
from pulsarium.pipeline.source import ledgers as in_ledgers
from pulsarium.pipeline.source.ledgers import Ledgers
from pulsarium.pipeline.source.places import ReadPosition


class Lag(NamedTuple):
    """Messages that wait in a topic. Their number is that of the broker's indexes, or else an estimate."""

    messages: int
    bytes: int
    seconds: float
    """Since the first of them was published."""

    def encode(self) -> dict[str, str]:
        """Return the lag in the form of an offset, which has only texts."""
        return {
            "lagMessages": str(self.messages),
            "lagBytes": str(self.bytes),
            "lagSeconds": f"{self.seconds:.1f}",
        }


NONE = Lag(0, 0, 0.0)


async def lag_of(client: Client, topic: str, start: ReadPosition, end: ReadPosition, ledgers: Ledgers) -> Lag:
    """Return the lag of a stream that has read up to `start` of a topic with this end."""
    runs = ledgers.runs(start, end)
    if not runs:
        return NONE
    entries, size = in_ledgers.count(runs), round(in_ledgers.size(runs))
    try:
        first = await _messages(client, topic, runs[0].ledger, runs[0].start)
        last = await _messages(client, topic, runs[-1].ledger, runs[-1].end - 1)
    except AdminError:  # such as a topic that was deleted meanwhile
        return Lag(entries, size, 0.0)
    if not first:
        return Lag(entries, size, 0.0)
    in_first = max(first[0].entry_metadata().num_messages_in_batch, 1)
    messages = entries * in_first
    begin, until = first[0].broker_metadata(), last[0].broker_metadata() if last else None
    if begin is not None and until is not None and begin.HasField("index") and until.HasField("index"):
        messages = until.index - begin.index + in_first
    return Lag(messages, size, max(0.0, time.time() - first[0].publish_timestamp() / 1000))


async def _messages(client: Client, topic: str, ledger: int, entry: int) -> list[Message[bytes]]:
    return await client.admin.topics.get_messages_by_id(topic, ledger, entry)
