"""The port of a real broker, and the TLS towards the broker."""

from __future__ import annotations

import ipaddress
import ssl
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

WANTED: Final = "pulsar://HOST:PORT or pulsar+ssl://HOST:PORT is wanted"
PORTS: Final = {"pulsar": 6650, "pulsar+ssl": 6651}
LOCAL_SUFFIXES: Final = (".localhost", ".local", ".internal", ".test", ".svc", ".cluster.local")


class Upstream(NamedTuple):
    """The binary port of a broker."""

    host: str
    port: int
    secure: bool = False

    @staticmethod
    def of(url: str) -> Upstream:
        """Parse the first host of a service URL. Raise `ValueError` for another URL."""
        scheme, separator, place = url.partition("://")
        if not separator or scheme not in PORTS:
            raise ValueError(f"{url}: {WANTED}")
        first = place.partition("/")[0].partition(",")[0]
        host, colon, port = first.rpartition(":")
        if not colon or port.endswith("]"):
            host, port = first, str(PORTS[scheme])
        if not host or "@" in host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ValueError(f"{url}: {WANTED}")
        return Upstream(host.strip("[]"), int(port), scheme == "pulsar+ssl")

    @staticmethod
    def plain(url: str) -> Upstream:
        """Parse the first host of a service URL without TLS. Raise `ValueError` for another URL."""
        found = Upstream.of(url)
        if found.secure:
            raise ValueError(f"{url}: pulsar://HOST:PORT is wanted, without TLS")
        return found

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'pulsar+ssl' if self.secure else 'pulsar'}://{host}:{self.port}"

    @property
    def looks_like_a_test(self) -> bool:
        """Return whether the broker is on this machine or in a private network, as far as its name tells."""
        try:
            address = ipaddress.ip_address(self.host)
        except ValueError:
            return "." not in self.host or self.host.endswith(LOCAL_SUFFIXES)
        return address.is_private or address.is_loopback or address.is_link_local


def context_to_brokers(
    trust: Path | None = None, cert: Path | None = None, key: Path | None = None, *, insecure: bool = False
) -> ssl.SSLContext:
    """Return a context that trusts the certificates of a file, or those of the machine. Raise `OSError`.

    `cert` and `key` are the proxy's own certificate. `insecure` trusts every broker.
    """
    context = ssl.create_default_context(cafile=None if trust is None else str(trust))
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # Python 3.13 sets it; Pulsar's clients accept such certificates
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if cert is not None:
        context.load_cert_chain(cert, key)
    return context


@cache
def trust_of_the_machine() -> ssl.SSLContext:
    """Return the context of the machine's authorities, which takes a while to read."""
    return context_to_brokers()
