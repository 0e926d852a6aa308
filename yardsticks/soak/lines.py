"""Report on a process of loads in lines of JSON on its standard output."""

from __future__ import annotations

import json
from collections.abc import Sequence

from .account import Account


def tell(accounts: Sequence[Account], *, finished: bool = False) -> None:
    """Print the figures of all streams together. With `finished`, include each stream: this is the last line."""
    told = {
        "sent": sum(account.confirmed for account in accounts),
        "seen": sum(account.seen for account in accounts),
        "again": sum(account.again for account in accounts),
        "violations": [violation for account in accounts for violation in account.violations],
        "streams": [[each.name, each.confirmed, each.seen, each.again] for each in accounts] if finished else [],
    }
    print(json.dumps(told), flush=True)
