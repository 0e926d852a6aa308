"""Options of brokers whose entries have an index."""

from __future__ import annotations

INTERCEPTORS = ",".join(
    f"org.apache.pulsar.common.intercept.Append{what}MetadataInterceptor" for what in ("BrokerTimestamp", "Index")
)

STAMPING = ("--set", f"brokerEntryMetadataInterceptors={INTERCEPTORS}")
"""Options of a broker whose entries have an index."""
