"""Fresh `pulsarium serve` processes to replay against."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pulsarium.conformance.recordings.releases import PULSAR_4, Release
from pulsarium.conformance.recordings.replay import Broker, BrokerError
from tests.foreign.broker_process import BrokerProcess

DEFAULT = "pip"
"""The default profile of `pulsarium serve`."""


@contextmanager
def pulsarium(
    profile: str, folder: Path, name: str, release: Release = PULSAR_4, behaviour: str | None = None
) -> Iterator[Broker]:
    """Start a fresh broker with the settings of the recorded one; its log and ready file go to `folder`/`name`."""
    options = ["--profile", behaviour or release.behavior, "--config", str(release.config(profile))]
    try:
        process = BrokerProcess(folder / name, options)
    except AssertionError as error:
        raise BrokerError(str(error)) from None
    try:
        address = process.address
        yield Broker(address.service_url, address.admin_url, is_own=True, obituary=lambda: _obituary(process))
    finally:
        if process.running:
            process.stop(seconds=120)  # a kill would lose the coverage data


def _obituary(process: BrokerProcess) -> str | None:
    return None if process.running else f"the broker is gone; its log ends:\n{process.tail()}"
