"""Brokers with transactions, which are off by default."""

from __future__ import annotations

from .broker_process import is_pulsarium

KEYS = ("transactionCoordinatorEnabled=true", "acknowledgmentAtBatchIndexLevelEnabled=true")


def switched_on() -> tuple[str, ...]:
    """The options of `BrokerProcess`; scripts/reference-pulsar has both keys in its configuration."""
    return tuple(word for key in KEYS for word in ("--set", key)) if is_pulsarium() else ()
