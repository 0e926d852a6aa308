"""All that one run of the broker was asked for; advertisedListeners, the URLs that clients ask for by name."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple
from urllib.parse import urlsplit

from pulsarium.broker.config.file import load
from pulsarium.broker.config.keys import Config
from pulsarium.broker.config.profile import PIP, Profile

_SCHEMES: Final = ("pulsar", "pulsar+ssl", "http", "https")


class Listener(NamedTuple):
    """The URLs of one listener, each as written, "" where the setting has none."""

    pulsar: str = ""
    pulsar_ssl: str = ""
    http: str = ""
    https: str = ""

    @property
    def is_local(self) -> bool:
        """Tell whether its Pulsar clients are led to their own machine, which is not always the broker's."""
        return is_loopback(urlsplit(self.pulsar or self.pulsar_ssl).hostname or "")


def parse_listeners(text: str) -> dict[str, Listener]:
    """Listeners by name, in the order of the text. Raises ValueError, whose text names the wrong part."""
    found: dict[str, dict[str, str]] = {}
    owners: dict[str, str] = {}  # host:port -> the listener that has it
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, colon, url = (piece.strip() for piece in part.partition(":"))
        scheme, slashes, address = url.partition("://")
        if not (colon and name and slashes and address and scheme in _SCHEMES):
            raise ValueError(f"{part!r} is not name:pulsar://host:port (or pulsar+ssl, http, https)")
        if scheme in found.setdefault(name, {}):
            raise ValueError(f"{part!r} is the second {scheme} URL of the listener {name!r}")
        if owners.setdefault(address, name) != name:
            raise ValueError(f"{part!r} has the address of the listener {owners[address]!r}")
        found[name][scheme] = url
    return {name: Listener(*(urls.get(scheme, "") for scheme in _SCHEMES)) for name, urls in found.items()}


def is_loopback(address: str) -> bool:
    """Return whether only this machine reaches an address. A host name other than localhost counts as reachable."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


Durability = Literal["none", "os", "fsync"]


class PortNumbers(NamedTuple):
    """Where a broker listens. 0: at any free port; None: not at all."""

    binary: int
    web: int
    binary_tls: int | None = None
    web_tls: int | None = None

    def nth(self, index: int) -> PortNumbers:
        """Those of the broker of this index: each the next higher ones; 0 stays any free one."""
        binary, web, *tls = (port + index if port else port for port in self)
        return PortNumbers(binary or 0, web or 0, *tls)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """What `pulsarium serve` passes to the broker; ServeOptions() is a run with nothing asked for.

    data: the directory that everything is kept in; None: in memory, and nothing is left on disk.
    durability: what a receipt promises of `data`: nothing, to outlive the process, to outlive the machine.
    profile: with max_protocol_version as the command line lowered it.
    compaction_engine: by the name of its entry point; None: an installed one of somebody else's, or the broker's own.
    compaction_options: that engine's, by name.
    capture: the file that every frame of every connection goes to.
    lab_dir: the folder below which callers of /lab may have files written; None: nowhere.
    restore: a snapshot whose state takes the place of what there is. seed: a file that says what to make then.
    """

    config: Config = field(default_factory=lambda: load(None).config)
    profile: Profile = PIP
    data: Path | None = None
    durability: Durability = "os"
    brokers: int = 1
    compaction_engine: str | None = None
    compaction_options: tuple[tuple[str, str], ...] = ()
    ready_file: Path | None = None
    capture: Path | None = None
    lab_dir: Path | None = None
    restore: Path | None = None
    seed: Path | None = None

    @property
    def host(self) -> str:
        """The address to bind. Host and ports live in the Config alone, so that there are never two of them."""
        return self.config.bindAddress

    @property
    def port(self) -> int:
        """The port of the binary protocol; 0: any free one."""
        return self.config.brokerServicePort

    @property
    def http_port(self) -> int:
        """The port of HTTP; 0: any free one."""
        return self.config.webServicePort

    @property
    def ports(self) -> PortNumbers:
        """All of the first broker's."""
        config = self.config
        return PortNumbers(self.port, self.http_port, config.brokerServicePortTls, config.webServicePortTls)
