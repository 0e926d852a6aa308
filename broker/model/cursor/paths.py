"""The places of cursors in the metadata store."""

from __future__ import annotations

from urllib.parse import quote


def ledger_path(ledger_id: int) -> str:
    """Return the folder of a cursor's ledger."""
    return f"/cursor-ledgers/{ledger_id}"


def entry_path(ledger_id: int, entry_id: int) -> str:
    """Return the metadata path of an entry in a cursor's ledger."""
    return f"{ledger_path(ledger_id)}/{entry_id}"


def pending_acks_path(managed_ledger: str, cursor: str) -> str:
    """Return the folder of acknowledgements that open transactions made on a subscription."""
    return f"/transactions/pending-acks/{managed_ledger}/{quote(cursor, safe='')}"
