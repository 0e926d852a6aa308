"""Settings of both brokers when Pulsarium is compared with another: one broker.conf for the two."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from yardsticks.servers.reference.conf import CONFIG, changed

SETTINGS = {
    "brokerEntryMetadataInterceptors": "",
    "exposingBrokerEntryMetadataToClientEnabled": "false",
    "transactionCoordinatorEnabled": "false",
    "acknowledgmentAtBatchIndexLevelEnabled": "false",
    "journalSyncData": "false",
}
"""Keys of broker.conf that change the cost of a message. The first three have Pulsar's defaults."""

DURABILITY = {"true": "fsync", "false": "os"}[SETTINGS["journalSyncData"]]
"""Pulsarium's option that corresponds to journalSyncData of a bookie."""

OWN_OPTIONS = ("--durability", DURABILITY)
"""Options of Pulsarium beside the file."""


def write(folder: Path) -> Path:
    """Write the broker.conf of both: the reference's, with SETTINGS."""
    file = folder / "broker.conf"
    file.write_text(changed(CONFIG.read_text(), SETTINGS))
    return file


def told(settings: Mapping[str, str]) -> str:
    """Return the settings for a reader, on one line."""
    return ", ".join(f"{key}={value}" for key, value in settings.items())
