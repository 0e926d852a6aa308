"""The URL that applications give: `pulsar://host:port`, several hosts with commas between."""

from __future__ import annotations

from typing import NamedTuple

from pulsarium.client.errors import InvalidUrl, OperationNotSupported

DEFAULT_PORT = 6650


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse(url: str) -> list[Address]:
    """The addresses of a service URL, or of the URL a broker named; port 6650 where none is given.

    InvalidUrl if it cannot be read, OperationNotSupported for TLS.
    """
    scheme, mark, rest = url.partition("://")
    if mark and scheme == "pulsar+ssl":
        raise OperationNotSupported(f"{url}: TLS is not built yet")
    if not mark or scheme != "pulsar":
        raise InvalidUrl(f"{url}: must begin with pulsar://")
    return [_address(part, url) for part in rest.rstrip("/").split(",")]


def _address(text: str, url: str) -> Address:
    host, mark, port = text.strip().rpartition(":")
    if not mark or text.endswith("]"):
        host, port = text.strip(), str(DEFAULT_PORT)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise InvalidUrl(f"{url}: {text!r} is no host and port")
    return Address(host, int(port))
