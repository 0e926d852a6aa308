"""Parse service URLs: `pulsar://host:port`, or `pulsar+ssl://` with TLS. Commas separate several hosts."""

from __future__ import annotations

import re
from typing import NamedTuple

from pulsarium.client.errors import ConnectError, InvalidUrl, OperationNotSupported

_PORTS = {"pulsar": 6650, "pulsar+ssl": 6651}
_HOST = re.compile(r"[^\s\x00-\x20/@?#\\]{1,255}")
_SHOWN = 200  # most characters of a URL in an error
_CREDENTIALS = re.compile(r"^((?:[\w+.-]*://)?).*@", re.DOTALL)


class BrokerAddress(NamedTuple):
    """The address of a broker or a proxy."""

    host: str
    port: int
    tls: bool = False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def other(self) -> BrokerAddress:
        """Return the same host and port with TLS switched on or off."""
        return self._replace(tls=not self.tls)

    @property
    def usual(self) -> BrokerAddress:
        """Return the same host with the default port of its scheme."""
        return self._replace(port=_PORTS["pulsar+ssl" if self.tls else "pulsar"])

    @property
    def url(self) -> str:
        return f"{'pulsar+ssl' if self.tls else 'pulsar'}://{self}"


def is_http(url: str) -> bool:
    """Return whether topics are looked up over HTTP at this URL."""
    return url.startswith(("http://", "https://"))


def parse(url: str) -> list[BrokerAddress]:
    """Return the addresses in a service URL, or in a broker's URL. The default port is 6650, and 6651 with TLS.

    Raise `InvalidUrl` for an invalid URL.
    """
    scheme, mark, rest = url.partition("://")
    if not mark or scheme not in _PORTS:
        raise InvalidUrl(f"{_shown(url)}: must begin with pulsar:// or pulsar+ssl://")
    return [_address(part, scheme, url) for part in rest.rstrip("/").split(",")]


class BrokerUrls(NamedTuple):
    """The URLs of a broker in commands, without and with TLS, "" if the broker has none."""

    plain: str
    tls: str
    migrated: bool = False
    """Whether the URLs are of another cluster, to which the topic migrated (PIP-188). It needs a new lookup there."""

    def addresses(self, *, tls: bool) -> list[BrokerAddress]:
        """Return the addresses with or without TLS.

        Raise `OperationNotSupported` if the broker has no URL of this kind, and `InvalidUrl` if the URL is invalid.
        """
        url, other = (self.tls, self.plain) if tls else (self.plain, self.tls)
        if not url and not other:
            raise ConnectError("the lookup named no broker of the topic")
        if not url:
            raise OperationNotSupported(f"the broker can be reached {'without' if tls else 'with'} TLS only")
        found = parse(url)
        if tls and not found[0].tls:  # would send credentials unencrypted
            raise InvalidUrl(f"{_shown(url)}: must begin with pulsar+ssl://")
        return found

    def address(self, *, tls: bool) -> BrokerAddress:
        """Return the first address."""
        return self.addresses(tls=tls)[0]


def _address(text: str, scheme: str, url: str) -> BrokerAddress:
    host, mark, port = text.strip().rpartition(":")
    if not mark or text.endswith("]"):
        host, port = text.strip(), str(_PORTS[scheme])
    is_ipv6 = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if is_ipv6 else host
    sound = _HOST.fullmatch(host) and is_ipv6 is (":" in host)
    sound = sound and port.isascii() and port.isdecimal() and len(port) <= 5 and 0 < int(port) < 65536
    if not sound:
        raise InvalidUrl(f"{_shown(url)}: {_shown(text)!r} is not a valid host and port")
    return BrokerAddress(host, int(port), scheme == "pulsar+ssl")


def _shown(text: str) -> str:
    """Return a URL or a part of one for an error, shortened and without a password."""
    return _CREDENTIALS.sub(r"\1...@", text)[:_SHOWN]
