"""The scenarios, by subject. Their numbers and slugs name the recordings and stay."""

from __future__ import annotations

from pulsarium.conformance.recordings.scenarios import (
    acknowledging,
    authentication,
    common,
    compaction,
    connecting,
    delayed_and_chunked,
    dispatching,
    entry_metadata,
    lookup,
    producing,
    schemas,
    seeking,
    subscribing,
    topics,
    transactions,
)

ALL = [each for _, each in sorted(common.SCENARIOS.items())]

__all__ = [
    "ALL",
    "acknowledging",
    "authentication",
    "compaction",
    "connecting",
    "delayed_and_chunked",
    "dispatching",
    "entry_metadata",
    "lookup",
    "producing",
    "schemas",
    "seeking",
    "subscribing",
    "topics",
    "transactions",
]
