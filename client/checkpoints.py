"""The checkpoint of calls that an application makes for each message."""

from __future__ import annotations

import sys
from collections.abc import Awaitable
from typing import cast


def checkpoint() -> Awaitable[None]:
    """Return the checkpoint of the running event loop, to be awaited.

    anyio finds the loop and the same checkpoint with three more calls, which take a sixth of a checkpoint of trio.
    """
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        return cast(Awaitable[None], trio.lowlevel.checkpoint())
    asyncio = sys.modules["asyncio"]  # anyio has no third loop
    return cast(Awaitable[None], asyncio.sleep(0))
