"""The listeners of a broker (advertisedListeners), by name."""

from __future__ import annotations

import ipaddress
from typing import Final, NamedTuple
from urllib.parse import urlsplit

_SCHEMES: Final = ("pulsar", "pulsar+ssl", "http", "https")


class Listener(NamedTuple):
    """The URLs of one listener, as written; "" where the setting has none."""

    pulsar: str = ""
    pulsar_ssl: str = ""
    http: str = ""
    https: str = ""

    @property
    def is_local(self) -> bool:
        """Return whether the listener leads Pulsar clients to their own machine, which may not be the broker's."""
        return is_loopback(urlsplit(self.pulsar or self.pulsar_ssl).hostname or "")


def parse_listeners(text: str) -> dict[str, Listener]:
    """Return the listeners by name, in the order of the text. Raise `ValueError`, whose text names the wrong part."""
    found: dict[str, dict[str, str]] = {}
    owners: dict[str, str] = {}  # host:port -> its listener
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, colon, url = (piece.strip() for piece in part.partition(":"))
        scheme, slashes, address = url.partition("://")
        if not (colon and name and slashes and address and scheme in _SCHEMES):
            raise ValueError(f"{part!r} is not name:pulsar://host:port (or pulsar+ssl, http, https)")
        if scheme in found.setdefault(name, {}):
            raise ValueError(f"{part!r} is a second {scheme} URL of the listener {name!r}")
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
