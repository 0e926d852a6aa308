"""Several messages at once (PIP-51)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel

from pulsarium.client.consumer.inbox import Inbox
from pulsarium.client.consumer.policies import ConsumerBatchReceivePolicy
from pulsarium.client.message import Message


async def batch_receive(
    inbox: Inbox, policy: ConsumerBatchReceivePolicy, take: Callable[[], Message[Any]]
) -> list[Message[Any]]:
    """What the policy has enough of; after its timeout what there is, perhaps nothing. `take` gives the next message
    of the inbox; what it raises comes alone.

    Nothing is taken before the end, so that nothing is lost by cancelling it.
    """
    await anyio.lowlevel.checkpoint()
    with anyio.move_on_after(policy.timeout if policy.timeout > 0 else None):
        while not _is_enough(inbox, policy):
            await inbox.another()
    if len(inbox):
        await inbox.filled()  # the first one's schema may have to be asked for
    taken: list[Message[Any]] = []
    size = 0
    most, most_bytes = _limit(policy.max_num_message), _limit(policy.max_num_bytes)
    while len(taken) < most and inbox:
        following = inbox.head
        size += len(following.data()) if isinstance(following, Message) else 0
        if taken and (size > most_bytes or not isinstance(following, Message)):
            break
        taken.append(take())
    return taken


def _is_enough(inbox: Inbox, policy: ConsumerBatchReceivePolicy) -> bool:
    if inbox.is_full or len(inbox) >= _limit(policy.max_num_message):
        return True
    return policy.max_num_bytes > 0 and inbox.size() >= policy.max_num_bytes


def _limit(number: int) -> float:
    return number if number > 0 else math.inf
