"""Programs that break rules about transactions. Their broker has no transaction coordinator, but its linter knows the
rules."""

from __future__ import annotations

from tests.broker.wire import Type

from .program import Client, breaks, given, send


@breaks("coordinator-not-connected")
async def _(client: Client, mended: bool) -> None:
    """Send NEW_TXN without TC_CLIENT_CONNECT_REQUEST. Clients before version 19 cannot send that request."""
    wire = await client.connected(version=18 if mended else 21)
    await wire.request(Type.NEW_TXN, tc_id=0)


@breaks("transaction-not-open")
async def _(client: Client, mended: bool) -> None:
    wire = await client.producing()
    await send(wire, **given(not mended, txnid_most_bits=0, txnid_least_bits=5))


@breaks("transaction-half-named")
async def _(client: Client, mended: bool) -> None:
    wire = await client.producing()
    await send(wire, **given(not mended, txnid_most_bits=1))
