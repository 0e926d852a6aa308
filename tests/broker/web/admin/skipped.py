"""Helpers of tests of skipByMessageIds (PIP-423), and a secured topic with a message to skip."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.message_id import MessageId
from tests.broker.auth.secured import bearer, token
from tests.broker.web.admin.rest import NAMESPACES, TOPICS, Answer, Rest, rest_of
from tests.broker.wire import Bed, Shared, Wire, batch_of, plain

SKIP = f"{TOPICS}/t/subscription/sub/skipByMessageIds"


def triplet(position: Position, batch_index: int | None = None) -> dict[str, int]:
    """Return a message id in format 1."""
    found = {"ledgerId": position.ledger_id, "entryId": position.entry_id}
    return found if batch_index is None else {**found, "batchIndex": batch_index}


def format_1(ids: Iterable[Any]) -> dict[str, Any]:
    return {"type": "messageId", "messageIds": list(ids)}


def encoded(position: Position, partition: int = -1, batch_index: int = -1, batch_size: int = 0) -> str:
    """Return a message id in format 2: MessageId.toByteArray() in base64."""
    return base64.b64encode(MessageId(*position, partition, batch_index, batch_size).to_bytes()).decode()


async def skip(rest: Rest, *ids: Position | dict[str, int], url: str = SKIP) -> None:
    """Skip entries by their positions, or messages that `triplet` names."""
    await rest.done("POST", url, format_1(triplet(each) if isinstance(each, Position) else each for each in ids))


async def posted(rest: Rest, body: Any, url: str = SKIP) -> Answer:
    return await rest.call("POST", url, body)


async def send_batch(sender: Wire, size: int = 5, **metadata: Any) -> Position:
    """Publish one batch. The payload of each message is its batch index."""
    batch = batch_of(*[b"%d" % index for index in range(size)], **metadata)
    (position,) = await sender.publish(batch, num_messages=size)
    return position


async def backlog(rest: Rest) -> int:
    """Return the backlog in entries, as stats show it."""
    count: int = (await rest.get(f"{TOPICS}/t/stats"))["subscriptions"]["sub"]["msgBacklog"]
    return count


class Secured:
    """A topic with one message, and roles that may produce and consume."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed
        self.rest = rest_of(bed)

    async def fill(self) -> None:
        sender = await self.bed.connect(auth_method_name="token", auth_data=token("admin").encode())
        await sender.producer()
        await sender.subscribe(type=Shared)
        (self.position,) = await sender.publish(plain(b"0"))
        for role, actions in {"consumer": ["consume"], "producer": ["produce", "functions"]}.items():
            url = f"{NAMESPACES}/public/default/permissions/{role}"
            answer = await self.rest.call("POST", url, actions, **bearer("admin"))
            assert answer.status == 204, answer

    async def post(self, url: str = SKIP, **headers: str) -> Answer:
        return await self.rest.call("POST", url, format_1([triplet(self.position)]), **headers)

    @property
    def backlog(self) -> int:
        return self.bed.subscription().cursor.backlog()
