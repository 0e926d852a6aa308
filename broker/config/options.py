"""Options of one run of the broker."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from pulsarium.broker.config.file import load
from pulsarium.broker.config.keys import Config
from pulsarium.broker.config.profile import PIP, Profile

Durability = Literal["none", "os", "fsync"]
"""The worst event that commits survive: none is promised, the end of the process, or that of the machine."""


class PortNumbers(NamedTuple):
    """Ports of a broker. 0: any free port. None: no such port."""

    binary: int
    web: int
    binary_tls: int | None = None
    web_tls: int | None = None

    def nth(self, index: int) -> PortNumbers:
        """Return the ports of the broker of this index: `index` is added to each, but 0 stays any free port."""
        binary, web, *tls = (port + index if port else port for port in self)
        return PortNumbers(binary or 0, web or 0, *tls)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """The options that `pulsarium serve` passes to the broker. ServeOptions() has the defaults.

    data: the directory of all stored state; None: in memory, nothing on disk.
    durability: how safe a message with a receipt is in `data`. "none": not at all; "os": against the end of the
    process; "fsync": against the end of the machine.
    profile: with max_protocol_version as the command line lowered it.
    compaction_engine: the name of its entry point; None: an installed third-party engine, or the broker's own.
    compaction_options: options of that engine, by name.
    capture: the file that every frame of every connection is written to.
    lab_dir: the folder below which callers of /lab may write files; None: they may not.
    toxiproxy_port: the port of Toxiproxy's control API; 0: any free port; None: no such API.
    export_on_exit: the file that gets a snapshot before the broker closes.
    restore: a snapshot that replaces the stored state.
    seed: a file that says what to create after that.
    """

    config: Config = field(default_factory=lambda: load(None).config)
    profile: Profile = PIP
    data: Path | None = None
    durability: Durability = "os"
    brokers: int = 1
    compaction_engine: str | None = None
    compaction_options: tuple[tuple[str, str], ...] = ()
    ready_file: Path | None = None
    export_on_exit: Path | None = None
    capture: Path | None = None
    lab_dir: Path | None = None
    toxiproxy_port: int | None = None
    restore: Path | None = None
    seed: Path | None = None

    @property
    def host(self) -> str:
        """Return the address to bind.

        Host and ports stand in the Config alone, so that they cannot differ.
        """
        return self.config.bindAddress

    @property
    def port(self) -> int:
        """Return the port of the binary protocol; 0: any free port."""
        return self.config.brokerServicePort

    @property
    def http_port(self) -> int:
        """Return the port of HTTP; 0: any free port."""
        return self.config.webServicePort

    @property
    def ports(self) -> PortNumbers:
        """Return all ports of the first broker."""
        config = self.config
        return PortNumbers(self.port, self.http_port, config.brokerServicePortTls, config.webServicePortTls)
