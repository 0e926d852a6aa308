"""Transactions, which this broker refuses; its linter knows their rules all the same."""

from __future__ import annotations

from tests.broker.wire import Type

from .program import Client, breaks, given, send


@breaks("coordinator-not-connected")
async def _(client: Client, mended: bool) -> None:
    """Before version 19 there was nothing to ask for."""
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
