"""Start the brokers that cells run against: `pulsarium serve` in a process of its own, or a given broker."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

# Scenarios need these settings, which are off by default: transactions, acknowledged batch indexes, message indexes for
# clients, and short delays.
_METADATA: Final = "org.apache.pulsar.common.intercept.Append{}MetadataInterceptor"
SETTINGS: Final = {
    "transactionCoordinatorEnabled": "true",
    "acknowledgmentAtBatchIndexLevelEnabled": "true",
    "brokerEntryMetadataInterceptors": f"{_METADATA.format('BrokerTimestamp')},{_METADATA.format('Index')}",
    "exposingBrokerEntryMetadataToClientEnabled": "true",
    "delayedDeliveryTickTimeMillis": "100",
    "allowAutoTopicCreation": "true",
}
_START_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Mask:
    """Limit of a broker's protocol version, or None for no limit."""

    name: str
    max_protocol_version: int | None = None

    @classmethod
    def named(cls, name: str) -> Mask:
        """Return the mask "none", or "v19" for a highest protocol version of 19. Raise `ValueError` for other names."""
        if name == "none":
            return cls(name)
        if not name.startswith("v") or not name[1:].isdigit() or int(name[1:]) > 22:
            raise ValueError(f"unknown mask {name}: use none, or v0 to v22")
        return cls(name, int(name[1:]))

    def options(self) -> list[str]:
        return [] if self.max_protocol_version is None else ["--max-protocol-version", str(self.max_protocol_version)]


@dataclass(frozen=True)
class Address:
    """Addresses of the brokers of one cluster, in order. `tls_url` and `https_url` are "" without TLS."""

    service_urls: Sequence[str]
    http_urls: Sequence[str]
    tls_url: str = ""
    https_url: str = ""

    @property
    def admin_url(self) -> str:
        return self.http_urls[0]


class Broker(Protocol):
    """Brokers for one column of the matrix."""

    @property
    def address(self) -> Address: ...
    def stop(self) -> None: ...


class Given:
    """A running broker, which may be a real one. `stop` leaves it running."""

    def __init__(self, address: Address) -> None:
        self.address = address

    def stop(self) -> None: ...


class Served:
    """`pulsarium serve` with `options` on free ports. The log goes to `log`."""

    def __init__(self, options: Sequence[str], log: Path) -> None:
        """Start the broker. Raise `OSError` if it does not start."""
        ready = log.with_suffix(".ready.json")
        ready.unlink(missing_ok=True)
        settings = [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
        command = [sys.executable, "-P", "-m", "pulsarium", "serve", "--port", "0", "--http-port", "0"]
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [*command, "--ready-file", str(ready), *settings, *options],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=log.parent,
            )
        try:
            self.address = self._wait(ready, log)
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise

    def _wait(self, ready: Path, log: Path) -> Address:
        end = time.monotonic() + _START_SECONDS
        while not ready.exists():
            if self._process.poll() is not None or time.monotonic() > end:
                raise OSError(f"the broker did not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.02)
        told = json.loads(ready.read_text())
        brokers = told["brokers"]
        return Address(
            [each["service_url"] for each in brokers],
            [each["admin_url"] for each in brokers],
            *(told.get(f"{name}_url_tls", "").replace("127.0.0.1", "localhost") for name in ("service", "admin")),
        )

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
