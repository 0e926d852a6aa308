"""What both brokers are given where Pulsarium is measured against another: one broker.conf for the two."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.reference.conf import CONFIG, changed

SETTINGS = {
    "brokerEntryMetadataInterceptors": "",
    "exposingBrokerEntryMetadataToClientEnabled": "false",
    "transactionCoordinatorEnabled": "false",
    "acknowledgmentAtBatchIndexLevelEnabled": "false",
    "journalSyncData": "false",
}
"""Keys of broker.conf that change what a message costs, as Pulsar has them out of the box, but for the last."""

DURABILITY = {"true": "fsync", "false": "os"}[SETTINGS["journalSyncData"]]
"""Pulsarium's option for what journalSyncData says to a bookie."""

OWN_OPTIONS = ("--durability", DURABILITY)
"""What Pulsarium is told beside the file."""


def write(folder: Path) -> Path:
    """Write the broker.conf of both: the reference's, with SETTINGS."""
    file = folder / "broker.conf"
    file.write_text(changed(CONFIG.read_text(), SETTINGS))
    return file


def told(settings: Mapping[str, str]) -> str:
    """Return the settings for a reader, on one line."""
    return ", ".join(f"{key}={value}" for key, value in settings.items())
