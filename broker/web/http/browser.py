"""Refuse requests that another site's web page makes a browser send.

A broker on loopback obeys every program on its machine, and a browser there runs programs of other sites. Two headers
that no page can forge give them away. Host names the attacker's own site when its name suddenly resolves to this
machine (DNS rebinding). Sec-Fetch-Site or Origin names the site that a request comes from.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from shlex import quote
from typing import Final, NamedTuple

from pulsarium.broker.web.http.errors import AdminError

HARMLESS: Final = ("GET", "HEAD", "OPTIONS")  # a page cannot read their answers: the broker sends no CORS header
CONSOLE: Final = "/"  # the one page that other sites may link to: some GETs of the admin API create things
OWN_SITE: Final = ("same-origin", "none")  # none: a person typed the address
# Names that no one can register, so no attacker's page comes from there (RFC 6761, 8375; ICANN: internal). Every
# machine of the local network can give itself a name in .local (RFC 6762). The names of a Kubernetes cluster's services
# come from the cluster.
PRIVATE_SUFFIXES: Final = (".localhost", ".svc.cluster.local", ".internal", ".test", ".home.arpa")
PORTS: Final = {"http": 80, "https": 443}
ANY: Final = "*"
# Content types that a page may send anywhere without a preflight ("" is no Content-Type), by the Fetch standard
UNASKED_TYPES: Final = ("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data")
REMEDY: Final = "if you trust it, allow it:"
NO_SITE: Final = ("", "null")  # Origin of a page that is embedded, sandboxed or a file
NAMELESS: Final = (
    "a page of another site may not call this {}, and the request has no Origin that names the site; open the address "
    "in the browser itself, call with fetch() from a page that {} names, or let all pages call: {}"
)


class Guarded(NamedTuple):
    """The name of what a guard protects, and the setting and the command that allow more hosts."""

    name: str
    setting: str
    allow: str


BROKER: Final = Guarded("broker", "httpAllowedHosts", "pulsarium serve --set httpAllowedHosts=")
PROXY: Final = Guarded("proxy", "--allow-host", "pulsarium proxy --allow-host ")


class BrowserGuard:
    """The guard of one broker or proxy: it refuses requests by other host names or from other sites.

    `names` are hosts that it is reached by. `allowed` are those of httpAllowedHosts, HOST or HOST:PORT, whose pages may
    also call; "*" allows all.
    """

    def __init__(self, names: Iterable[str], allowed: Iterable[str], guarded: Guarded = BROKER) -> None:
        self._allowed = frozenset(each.lower() for each in allowed)
        self._names = frozenset(name.lower() for name in names) | self._allowed
        self._guarded = guarded

    def check(self, method: str, path: str, headers: Mapping[str, str]) -> None:
        """Raise `AdminError` 403 for a Host that is not this broker's, and for calls from other sites' pages."""
        if ANY in self._allowed:
            return
        this, allow = self._guarded.name, self._guarded.allow
        host = headers.get("host")
        if host is not None and not self._is_ours(host):
            raise AdminError(403, f"the Host {host} is not this {this}'s; {REMEDY} {allow}{quote(_name_of(host))}")
        site = headers.get("sec-fetch-site")
        if site is not None:
            # A browser may follow a link to the console. A page that leads elsewhere, embeds or calls gets no answer.
            followed = method in HARMLESS and path == CONSOLE and headers.get("sec-fetch-mode") == "navigate"
            foreign = site not in OWN_SITE and not followed
        else:
            foreign = method not in HARMLESS and "origin" in headers and not _same(headers["origin"], host or "")
        origin = headers.get("origin", "")
        if foreign and not self._may_call(origin):
            if origin in NO_SITE:
                raise AdminError(403, NAMELESS.format(this, self._guarded.setting, f"{allow}{quote(ANY)}"))
            raise AdminError(
                403, f"a page of {origin} may not call this {this}; {REMEDY} {allow}{quote(_authority(origin))}"
            )

    def _is_ours(self, host: str) -> bool:
        name = _name_of(host)
        if name in self._names or host.lower() in self._names or _is_address(name):
            return True
        return "." not in name or name.endswith(PRIVATE_SUFFIXES)

    def _may_call(self, origin: str) -> bool:
        authority = _authority(origin)
        return authority in self._allowed or _name_of(authority) in self._allowed


def check_type(headers: Mapping[str, str]) -> None:
    """Raise `AdminError` 415 for a body of a type that every page may send without a preflight."""
    given = headers.get("content-type", "").partition(";")[0].strip().lower()
    if given in UNASKED_TYPES:
        text = f"a body of the type {given or '(none)'} is not accepted; send Content-Type: application/json, or "
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
    """Return HOST:PORT of an Origin. Return values such as "null" as they are."""
    return (origin.partition("://")[2] or origin).lower()


def _same(origin: str, host: str) -> bool:
    """Return whether an Origin names the same site as a Host header, even behind a proxy that ends TLS."""
    scheme, _, authority = origin.lower().partition("://")
    default = f":{PORTS.get(scheme, '')}"
    return authority.removesuffix(default) == host.lower().removesuffix(default)
