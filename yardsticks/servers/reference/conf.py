"""Provide the broker.conf of a real Pulsar, and copies of it with other values."""

from __future__ import annotations

from collections.abc import Mapping

from pulsarium.conformance.recordings.releases import PULSAR_4

CONFIG = PULSAR_4.folder / "standalone.conf"
"""The configuration of the transcripts' broker."""

WITHOUT_TRANSACTIONS: Mapping[str, object] = {"transactionCoordinatorEnabled": "false"}
"""Settings for many topics at once: a broker that makes their transaction topics may deliver late, or never."""


def changed(text: str, settings: Mapping[str, object]) -> str:
    """Return a broker.conf in which these values replace its own."""
    kept = [line for line in text.splitlines() if line.partition("=")[0] not in settings]
    return "\n".join([*kept, *(f"{key}={value}" for key, value in settings.items()), ""])
