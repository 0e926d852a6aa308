"""The URL that applications give: `pulsar://host:port`, several hosts with commas between, `pulsar+ssl://` for TLS."""

from __future__ import annotations

from typing import NamedTuple

from pulsarium.client.errors import InvalidUrl, OperationNotSupported

_PORTS = {"pulsar": 6650, "pulsar+ssl": 6651}


class Address(NamedTuple):
    """Where a broker, or a proxy, listens."""

    host: str
    port: int
    tls: bool = False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse(url: str) -> list[Address]:
    """The addresses of a service URL, or of the URL a broker named; port 6650, with TLS 6651, where none is given.

    InvalidUrl if it cannot be read.
    """
    scheme, mark, rest = url.partition("://")
    if not mark or scheme not in _PORTS:
        raise InvalidUrl(f"{url}: must begin with pulsar:// or pulsar+ssl://")
    return [_address(part, scheme, url) for part in rest.rstrip("/").split(",")]


class BrokerUrls(NamedTuple):
    """A broker as commands name it: by a URL of either kind, "" where it has none."""

    plain: str
    tls: str

    def address(self, *, tls: bool) -> Address:
        """OperationNotSupported if it cannot be reached in this way, InvalidUrl if the URL cannot be read."""
        url = self.tls if tls else self.plain
        if not url:
            raise OperationNotSupported(f"the broker can be reached {'without' if tls else 'with'} TLS only")
        return parse(url)[0]


def _address(text: str, scheme: str, url: str) -> Address:
    host, mark, port = text.strip().rpartition(":")
    if not mark or text.endswith("]"):
        host, port = text.strip(), str(_PORTS[scheme])
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise InvalidUrl(f"{url}: {text!r} is no host and port")
    return Address(host, int(port), scheme == "pulsar+ssl")
