"""The brokers to replay against: one that runs somewhere, or fresh `pulsarium serve` processes of our own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.foreign.broker_process import Address, BrokerProcess
from yardsticks.recorder.releases import PULSAR_4, Release

DEFAULT = "pip"
"""The default profile of `pulsarium serve`."""


class BrokerError(RuntimeError):
    """A failure to get a broker for the replay, with the reason."""


@dataclass(frozen=True)
class Broker:
    """A broker to replay against. `process` is None when the replay did not start the broker."""

    address: Address
    process: BrokerProcess | None = None

    @property
    def binary(self) -> str:
        """Return the host and port of the binary protocol."""
        return self.address.service_url.removeprefix("pulsar://")

    def obituary(self) -> str | None:
        """Return the end of the log of a broker that has ended, or None while the broker runs."""
        if self.process is None or self.process.running:
            return None
        return f"the broker is gone; its log ends:\n{self.process.tail()}"


def foreign(urls: str) -> Broker:
    """Return the broker at `pulsar://host:port,http://host:port`. Raise `BrokerError` for another form."""
    service_url, comma, admin_url = (part.strip().rstrip("/") for part in urls.partition(","))
    if not service_url.startswith("pulsar://") or not comma or not admin_url.startswith("http"):
        raise BrokerError(f"{urls!r} is not of the form pulsar://HOST:PORT,http://HOST:PORT")
    return Broker(Address(service_url, admin_url))


@contextmanager
def pulsarium(
    profile: str, folder: Path, name: str, release: Release = PULSAR_4, behaviour: str | None = None
) -> Iterator[Broker]:
    """Start a fresh broker with the settings of the recorded one; its log and ready file go to `folder`/`name`."""
    options = ["--profile", behaviour or release.behavior, "--config", str(release.folder / release.configs[profile])]
    try:
        process = BrokerProcess(folder / name, options)
    except AssertionError as error:
        raise BrokerError(str(error)) from None
    try:
        yield Broker(process.address, process)
    finally:
        if process.running:
            process.stop(seconds=120)  # a kill would lose the coverage data


@contextmanager
def as_is(broker: Broker) -> Iterator[Broker]:
    """Yield a running broker, and do not stop the broker afterwards."""
    yield broker
