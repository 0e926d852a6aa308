"""What tests of skipByMessageIds (PIP-423) call, and a topic with something to skip."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.message_id import MessageId
from tests.broker.admin.rest import TOPICS, Answer, Rest
from tests.broker.wire import Wire, batch_of

SKIP = f"{TOPICS}/t/subscription/sub/skipByMessageIds"


def triplet(position: Position, batch_index: int | None = None) -> dict[str, int]:
    """A message as format 1 names it."""
    found = {"ledgerId": position.ledger_id, "entryId": position.entry_id}
    return found if batch_index is None else {**found, "batchIndex": batch_index}


def format_1(ids: Iterable[Any]) -> dict[str, Any]:
    return {"type": "messageId", "messageIds": list(ids)}


def encoded(position: Position, partition: int = -1, batch_index: int = -1, batch_size: int = 0) -> str:
    """A message as format 2 names it: MessageId.toByteArray() in base64."""
    return base64.b64encode(MessageId(*position, partition, batch_index, batch_size).to_bytes()).decode()


async def skip(rest: Rest, *ids: Position | dict[str, int], url: str = SKIP) -> None:
    """Skip whole entries, or what `triplet` names."""
    await rest.done("POST", url, format_1(triplet(each) if isinstance(each, Position) else each for each in ids))


async def posted(rest: Rest, body: Any, url: str = SKIP) -> Answer:
    return await rest.call("POST", url, body)


async def send_batch(sender: Wire, size: int = 5, **metadata: Any) -> Position:
    """One batch, whose messages are their indexes."""
    batch = batch_of(*[b"%d" % index for index in range(size)], **metadata)
    (position,) = await sender.publish(batch, num_messages=size)
    return position


async def backlog(rest: Rest) -> int:
    """Entries, as stats show them."""
    count: int = (await rest.get(f"{TOPICS}/t/stats"))["subscriptions"]["sub"]["msgBacklog"]
    return count
