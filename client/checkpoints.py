"""The checkpoint of calls that an application makes for each message."""

from __future__ import annotations

import sys
from collections.abc import Awaitable
from typing import cast

import anyio.lowlevel


def checkpoint() -> Awaitable[None]:
    """Return the checkpoint of the running event loop, to be awaited.

    anyio looks up the loop in three calls, which take a sixth of a checkpoint of trio.
    """
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        return cast(Awaitable[None], trio.lowlevel.checkpoint())
    return anyio.lowlevel.checkpoint()
