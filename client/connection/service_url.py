"""The URL that applications give: `pulsar://host:port`, several hosts with commas between, `pulsar+ssl://` for TLS."""

from __future__ import annotations

import re
from typing import NamedTuple

from pulsarium.client.errors import ConnectError, InvalidUrl, OperationNotSupported

_PORTS = {"pulsar": 6650, "pulsar+ssl": 6651}
_HOST = re.compile(r"[^\s\x00-\x20/@?#\\]{1,255}")
_SHOWN = 200  # characters of a URL in an error
_CREDENTIALS = re.compile(r"^((?:[\w+.-]*://)?).*@", re.DOTALL)


class Address(NamedTuple):
    """Where a broker, or a proxy, listens."""

    host: str
    port: int
    tls: bool = False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def other(self) -> Address:
        """The same place with TLS, or without."""
        return self._replace(tls=not self.tls)

    @property
    def url(self) -> str:
        return f"{'pulsar+ssl' if self.tls else 'pulsar'}://{self}"


def is_http(url: str) -> bool:
    """Whether topics are looked up over HTTP there."""
    return url.startswith(("http://", "https://"))


def parse(url: str) -> list[Address]:
    """The addresses of a service URL, or of the URL a broker named; port 6650, with TLS 6651, where none is given.

    InvalidUrl if it cannot be read.
    """
    scheme, mark, rest = url.partition("://")
    if not mark or scheme not in _PORTS:
        raise InvalidUrl(f"{_shown(url)}: must begin with pulsar:// or pulsar+ssl://")
    return [_address(part, scheme, url) for part in rest.rstrip("/").split(",")]


class BrokerUrls(NamedTuple):
    """A broker as commands name it: by a URL of either kind, "" where it has none."""

    plain: str
    tls: str
    migrated: bool = False
    """It is another cluster's, where the broker of a topic has to be looked up first (PIP-188)."""

    def addresses(self, *, tls: bool) -> list[Address]:
        """OperationNotSupported if it cannot be reached in this way, InvalidUrl if the URL cannot be read."""
        url, other = (self.tls, self.plain) if tls else (self.plain, self.tls)
        if not url and not other:
            raise ConnectError("the broker named none that has the topic")
        if not url:
            raise OperationNotSupported(f"the broker can be reached {'without' if tls else 'with'} TLS only")
        found = parse(url)
        if tls and not found[0].tls:  # credentials would go in the clear
            raise InvalidUrl(f"{_shown(url)}: must begin with pulsar+ssl://")
        return found

    def address(self, *, tls: bool) -> Address:
        """The first one."""
        return self.addresses(tls=tls)[0]


def _address(text: str, scheme: str, url: str) -> Address:
    host, mark, port = text.strip().rpartition(":")
    if not mark or text.endswith("]"):
        host, port = text.strip(), str(_PORTS[scheme])
    is_ipv6 = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if is_ipv6 else host
    sound = _HOST.fullmatch(host) and is_ipv6 is (":" in host)
    sound = sound and port.isascii() and port.isdecimal() and len(port) <= 5 and 0 < int(port) < 65536
    if not sound:
        raise InvalidUrl(f"{_shown(url)}: {_shown(text)!r} is no host and port")
    return Address(host, int(port), scheme == "pulsar+ssl")


def _shown(text: str) -> str:
    """Return a URL, or a part of one, as an error shows it: without the password that somebody put in front of an @."""
    return _CREDENTIALS.sub(r"\1...@", text)[:_SHOWN]
