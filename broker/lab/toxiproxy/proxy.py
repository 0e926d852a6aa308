"""Proxies that listen on ports of their own, and forward each connection to their upstream through toxics."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any, NamedTuple

import trio

from pulsarium.broker.lab.toxiproxy.link import ToxicLink
from pulsarium.broker.lab.toxiproxy.toxics import DOWNSTREAM, UPSTREAM, Toxic
from pulsarium.broker.logs import PartLog
from pulsarium.broker.net.accepting import PlainStream, Shortage, accept_one
from pulsarium.broker.net.dialling import dial, plain

log = PartLog("toxiproxy")


class ProxyAddress(NamedTuple):
    """A host and a port, as in localhost:6650, [::1]:6650 or :6650."""

    host: str
    port: int

    @staticmethod
    def parse(text: str) -> ProxyAddress:
        """Parse HOST:PORT. Raise `ValueError` for another text."""
        host, colon, port = text.rpartition(":")
        if not colon or not (port.isascii() and port.isdecimal() and int(port) < 65536):
            raise ValueError(f"address {text}: HOST:PORT is wanted")
        return ProxyAddress(host.removeprefix("[").removesuffix("]"), int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Upstreams:
    """The upstreams that proxies may lead to: any, or with `ports` these ports of this machine alone.

    Whoever reaches the API could otherwise reach all that this machine reaches.
    """

    def __init__(self, ports: Callable[[], Collection[int]] | None = None) -> None:
        self._ports = ports

    async def check(self, upstream: ProxyAddress) -> str:
        """Return the host to connect to. Raise `ValueError` for an upstream that proxies may not lead to."""
        host = upstream.host or "localhost"
        if self._ports is None:
            return host
        if upstream.port in self._ports():
            with suppress(OSError, UnicodeError):
                for family, _, _, _, address in await trio.socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM):
                    if _is_of_this_machine(family, address):
                        return str(address[0])  # the name may mean another machine a moment later
        raise ValueError(
            f"upstream {upstream} is no port of this broker, and other machines reach this API: name one of "
            f"{', '.join(f'localhost:{port}' for port in sorted(self._ports()))}, or let the broker listen on "
            "127.0.0.1 only (--host)"
        )


def _is_of_this_machine(family: int, address: Any) -> bool:
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(address)
        except OSError:
            return False
    return True


class Proxy:
    """A proxy, its toxics and its connections."""

    def __init__(self, name: str, listen: str, upstream: str, nursery: trio.Nursery, upstreams: Upstreams) -> None:
        self.name = name
        self.listen = listen
        self.upstream = upstream
        self.toxics: dict[str, Toxic] = {}
        self._nursery = nursery
        self._upstreams = upstreams
        self._shortage = Shortage(log)
        self._serving: tuple[trio.CancelScope, trio.Event] | None = None
        self._links: dict[str, set[ToxicLink]] = {UPSTREAM: set(), DOWNSTREAM: set()}

    @property
    def enabled(self) -> bool:
        """Return whether the proxy listens."""
        return self._serving is not None

    def to_json(self) -> dict[str, Any]:
        """Return the proxy as Toxiproxy shows it."""
        return {
            "name": self.name,
            "listen": self.listen,
            "upstream": self.upstream,
            "enabled": self.enabled,
            "toxics": self.shown(),
        }

    def shown(self) -> list[dict[str, Any]]:
        """Return the toxics as Toxiproxy shows them: those of the upstream direction first."""
        streams = (UPSTREAM, DOWNSTREAM)
        return [toxic.to_json() for stream in streams for toxic in self.toxics.values() if toxic.stream == stream]

    # listening

    async def start(self) -> None:
        """Listen. Raise `OSError` or `ValueError` when the address cannot be used."""
        if self.enabled:
            return
        upstream = ProxyAddress.parse(self.upstream)
        await self._upstreams.check(upstream)
        listener = await _bound(ProxyAddress.parse(self.listen))
        listener.setblocking(False)
        self.listen = str(ProxyAddress(*listener.getsockname()[:2]))
        self._serving = scope, ended = trio.CancelScope(), trio.Event()
        self._nursery.start_soon(self._serve, listener, upstream, scope, ended)

    async def stop(self) -> None:
        """Close the port and all connections."""
        if self._serving is not None:
            scope, ended = self._serving
            self._serving = None
            scope.cancel()
            await ended.wait()

    async def _serve(
        self, listener: socket.socket, upstream: ProxyAddress, scope: trio.CancelScope, ended: trio.Event
    ) -> None:
        try:
            with scope, listener:
                async with trio.open_nursery() as nursery:
                    while True:
                        sock, *_ = await accept_one(listener, self._shortage)
                        nursery.start_soon(self._carry, PlainStream(sock), upstream)
        finally:
            ended.set()

    async def _carry(self, client: PlainStream, upstream: ProxyAddress) -> None:
        """Carry one connection. Its errors affect no other connection."""
        try:
            async with client:
                broker = await dial(await self._upstreams.check(upstream), upstream.port)
                await self._through(client, plain(broker))
        except (OSError, ValueError) as error:  # ValueError: the host's name is not valid, or not allowed any more
            log.warning("cannot connect to the upstream", proxy=self.name, upstream=upstream, reason=error)
        except Exception as error:
            log.error("a connection failed", proxy=self.name, exception=error)

    async def _through(self, client: PlainStream, broker: PlainStream) -> None:
        def reset() -> None:
            for stream in (client, broker):
                stream.reset_when_closed()

        links = {
            stream: ToxicLink((toxic for toxic in self.toxics.values() if toxic.stream == stream), reset)
            for stream in self._links
        }
        for stream, link in links.items():
            self._links[stream].add(link)
        try:
            async with broker, trio.open_nursery() as nursery:
                nursery.start_soon(links[UPSTREAM].carry, client, broker)
                nursery.start_soon(links[DOWNSTREAM].carry, broker, client)
        finally:
            for stream, link in links.items():
                self._links[stream].discard(link)

    # toxics

    def add(self, toxic: Toxic) -> None:
        """Add a toxic, also to open connections."""
        self.toxics[toxic.name] = toxic
        for link in self._links[toxic.stream]:
            link.add(toxic)

    def change(self, toxic: Toxic) -> None:
        """Change the toxic of the same name, also on open connections."""
        self.toxics[toxic.name] = toxic
        for link in self._links[toxic.stream]:
            link.change(toxic)

    def remove(self, name: str) -> None:
        """Remove a toxic, also from open connections."""
        toxic = self.toxics.pop(name)
        for link in self._links[toxic.stream]:
            link.remove(name)


async def _bound(address: ProxyAddress) -> socket.socket:
    """Return a listening socket. Raise `OSError` when the address cannot be used."""
    if not address.host:
        both = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if both else socket.AF_INET
        return socket.create_server(("", address.port), family=family, dualstack_ipv6=both, backlog=1024)
    found = await trio.socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    family, _, _, _, place = min(found, key=lambda each: each[0] is not socket.AF_INET)
    return socket.create_server((str(place[0]), address.port), family=family, backlog=1024)
