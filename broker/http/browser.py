"""Refuse requests that a web page of a stranger makes a browser send.

A broker on loopback obeys everybody on its machine, and a browser there runs programs of strangers. Two headers that no
page can forge give them away: Host, which names the stranger's own site when its name suddenly resolves to this machine
(DNS rebinding), and Sec-Fetch-Site or Origin, which say which site a request comes from.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Final

from pulsarium.broker.http.errors import AdminError

HARMLESS: Final = ("GET", "HEAD", "OPTIONS")  # a page cannot read their answers: no answer here allows it (CORS)
CONSOLE: Final = "/"  # the one page that links of others lead to: some GETs of the admin API make things
OWN_SITE: Final = ("same-origin", "none")  # none: a person typed the address
# Names that nobody can register, so no stranger's page comes from there (RFC 6761, 6762, 8375; ICANN: internal).
PRIVATE_SUFFIXES: Final = (".localhost", ".local", ".internal", ".test", ".home.arpa")
PORTS: Final = {"http": 80, "https": 443}
ANY: Final = "*"
# What a page may send anywhere without asking first ("" is no Content-Type at all), by the Fetch standard
UNASKED_TYPES: Final = ("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data")
REMEDY: Final = "if that is you, name it: pulsarium serve --set httpAllowedHosts="
NO_SITE: Final = ("", "null")  # Origin of a page that is embedded, sandboxed or a file
NAMELESS: Final = (
    "a page of another site may not call this broker, and the request has no Origin that names the site; open the "
    "address in the browser itself, call with fetch() from a page that httpAllowedHosts names, or let all pages call: "
    "pulsarium serve --set httpAllowedHosts=*"
)


class BrowserGuard:
    """Knows the names of one broker, and refuses requests by other names or from other sites.

    `names` are hosts that the broker is reached by; `allowed` are those of httpAllowedHosts, HOST or HOST:PORT, whose
    pages may also call; "*" allows all.
    """

    def __init__(self, names: Iterable[str], allowed: Iterable[str]) -> None:
        self._allowed = frozenset(each.lower() for each in allowed)
        self._names = frozenset(name.lower() for name in names) | self._allowed

    def check(self, method: str, path: str, headers: Mapping[str, str]) -> None:
        """Raise AdminError, 403, for a Host that is not this broker's, and for calls from other sites' pages."""
        if ANY in self._allowed:
            return
        host = headers.get("host")
        if host is not None and not self._is_ours(host):
            raise AdminError(403, f"the Host {host} is not this broker's; {REMEDY}{_name_of(host)}")
        site = headers.get("sec-fetch-site")
        if site is not None:
            # A link to the console is followed; a page that leads elsewhere, embeds or calls is not answered.
            followed = method in HARMLESS and path == CONSOLE and headers.get("sec-fetch-mode") == "navigate"
            foreign = site not in OWN_SITE and not followed
        else:
            foreign = method not in HARMLESS and "origin" in headers and not _same(headers["origin"], host or "")
        origin = headers.get("origin", "")
        if foreign and not self._may_call(origin):
            named = f"a page of {origin} may not call this broker; {REMEDY}{_authority(origin)}"
            raise AdminError(403, NAMELESS if origin in NO_SITE else named)

    def _is_ours(self, host: str) -> bool:
        name = _name_of(host)
        if name in self._names or host.lower() in self._names or _is_address(name):
            return True
        return "." not in name or name.endswith(PRIVATE_SUFFIXES)

    def _may_call(self, origin: str) -> bool:
        authority = _authority(origin)
        return authority in self._allowed or _name_of(authority) in self._allowed


def check_type(headers: Mapping[str, str]) -> None:
    """Raise AdminError, 415, for a body of a type that every page may send without the broker's consent."""
    given = headers.get("content-type", "").partition(";")[0].strip().lower()
    if given in UNASKED_TYPES:
        text = f"a body of the type {given or '(none)'} is not taken here; send Content-Type: application/json, or "
        raise AdminError(415, f"{text}application/octet-stream for a snapshot")


def _name_of(host: str) -> str:
    """Return the name in a Host header, without its port."""
    name, bracket, _ = host.lower().partition("]")
    return name + bracket if bracket else name.partition(":")[0].removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _authority(origin: str) -> str:
    """Return HOST:PORT of an Origin, "null" and the like as they are."""
    return (origin.partition("://")[2] or origin).lower()


def _same(origin: str, host: str) -> bool:
    """Return whether an Origin is what a Host header names, be it by a proxy that ends TLS."""
    scheme, _, authority = origin.lower().partition("://")
    default = f":{PORTS.get(scheme, '')}"
    return authority.removesuffix(default) == host.lower().removesuffix(default)
