"""Options that enable transactions, which are off by default."""

from __future__ import annotations

from .broker_process import is_pulsarium

KEYS = ("transactionCoordinatorEnabled=true", "acknowledgmentAtBatchIndexLevelEnabled=true")


def switched_on() -> tuple[str, ...]:
    """Return the options for `BrokerProcess`. A real broker needs none: scripts/reference-pulsar sets both keys."""
    return tuple(word for key in KEYS for word in ("--set", key)) if is_pulsarium() else ()
