"""The scenarios of scalable topics, by subject. Their numbers and slugs name the recordings in ../pulsar-5 and stay."""

from __future__ import annotations

from pulsarium.conformance.recordings.scalable import (
    common,
    controller,
    legacy,
    lists,
    lookup,
    rest,
    scaling,
    segments,
    stats,
    transactions,
)

ALL = [each for _, each in sorted(common.SCENARIOS.items())]

__all__ = ["ALL", "controller", "legacy", "lists", "lookup", "rest", "scaling", "segments", "stats", "transactions"]
