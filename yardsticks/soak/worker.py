"""Process of loads. Its arguments are URLs, seed, prefix and seconds, and its output is lines of JSON.

After the given seconds, the process publishes no more messages, and accounts for all of them.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

import anyio

from pulsarium.client import connect, connect_admin

from .account import Account, tell
from .compacted import Compacted
from .guests import Clients, Expiring, Topics
from .history import History
from .letters import DeadLetters, Delayed
from .load import Load, Site
from .streams import streams
from .transactional import Transactions
from .websockets import WebSockets

TELL_SECONDS = 1.0
KINDS = (DeadLetters, Delayed, Transactions, Compacted, History, Topics, Expiring, Clients, WebSockets)


def accounts_of(loads: Sequence[Load]) -> list[Account]:
    return [account for load in loads for account in load.accounts]


async def guarded(load: Load) -> None:
    """Run a load, and record an exception as a violation, so that the other loads go on."""
    try:
        await load.run()
    except Exception as error:
        load.accounts[0].violate("".join(traceback.format_exception(error))[-3000:])


async def telling(loads: Sequence[Load]) -> None:
    while True:
        await anyio.sleep(TELL_SECONDS)
        tell(accounts_of(loads))


async def main(service_url: str, admin_url: str, seed: int, prefix: str, seconds: float) -> None:
    async with (
        connect(service_url, admin_url=admin_url) as client,
        connect_admin(admin_url) as admin,
        anyio.create_task_group() as around,
    ):
        site = Site(client, admin, service_url, admin_url, seed, prefix)
        loads = [*streams(site), *(kind(site) for kind in KINDS)]
        around.start_soon(telling, loads)
        async with anyio.create_task_group() as tasks:
            for load in loads:
                tasks.start_soon(guarded, load)
            await anyio.sleep(seconds)
            site.stop()
        around.cancel_scope.cancel()
    tell(accounts_of(loads), finished=True)


if __name__ == "__main__":
    urls, numbers = sys.argv[1:3], sys.argv[3:]
    anyio.run(main, urls[0], urls[1], int(numbers[0]), numbers[1], float(numbers[2]), backend="trio")
