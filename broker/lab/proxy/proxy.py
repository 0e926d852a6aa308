"""The proxy: a port for each broker of a cluster, and the connections that it carries."""

from __future__ import annotations

import socket
import ssl
from functools import partial

import trio

from pulsarium.broker.cluster import Broker
from pulsarium.broker.lab.connections import Opened
from pulsarium.broker.lab.proxy.connection import MaskOf, ProxiedConnection
from pulsarium.broker.lab.proxy.rewriting import BrokerUrls
from pulsarium.broker.lab.proxy.upstream import ProxyTls, Upstream
from pulsarium.broker.logs import PartLog

log = PartLog("proxy")

CONNECT_SECONDS = 10.0
"""How long a broker may take to accept a connection, and a client to begin TLS."""


class ProxiedConnections:
    """The connections of a proxy, for its lab."""

    def __init__(self) -> None:
        self.open: dict[ProxiedConnection, None] = {}
        self._told: list[Opened] = []
        self._empty = trio.Event()

    def all(self) -> list[ProxiedConnection]:
        return list(self.open)

    def listen(self, opened: Opened) -> None:
        if opened not in self._told:
            self._told.append(opened)

    def ignore(self, opened: Opened) -> None:
        if opened in self._told:
            self._told.remove(opened)

    def remove(self, connection: ProxiedConnection) -> None:
        """Forget a connection that has ended."""
        self.open.pop(connection, None)
        if not self.open:
            self._empty.set()

    async def none(self) -> None:
        """Wait until no connection is open."""
        while self.open:
            self._empty = trio.Event()
            await self._empty.wait()

    def add(self, connection: ProxiedConnection) -> None:
        """Tell the lab of a new connection."""
        self.open[connection] = None
        for told in list(self._told):
            told(connection)


class Proxy:
    """Listen for one broker, and for each broker that its answers name.

    `stand_in` is the broker that has the lab. It serves no client.
    """

    def __init__(
        self,
        stand_in: Broker,
        connections: ProxiedConnections,
        nursery: trio.Nursery,
        *,
        host: str,
        tls: ProxyTls,
        mask_of: MaskOf,
    ) -> None:
        self._stand_in = stand_in
        self._connections = connections
        self._nursery = nursery
        self._host = host
        self._tls = tls
        self._mask_of = mask_of
        self._ports: dict[Upstream, int] = {}

    def listen(self, upstream: Upstream, port: int = 0) -> str:
        """Return the URL where clients on this machine reach a broker. Raise `OSError` when the port is taken."""
        if upstream not in self._ports:
            family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
            listener = trio.socket.from_stdlib_socket(
                socket.create_server((self._host, port), family=family, backlog=1024)
            )
            self._ports[upstream] = listener.getsockname()[1]
            serve = partial(trio.serve_listeners, partial(self._carry, upstream), [trio.SocketListener(listener)])
            self._nursery.start_soon(serve)
        return self._url(self._host, upstream)

    def _url(self, host: str, upstream: Upstream) -> str:
        return str(Upstream(host, self._ports[upstream], self._tls.to_clients is not None))

    def through(self, host: str, urls: BrokerUrls) -> BrokerUrls:
        """Return the URLs of the proxy for a broker, for a client that knows the proxy as `host`."""
        given = urls.secure if self._tls.to_brokers is not None else urls.plain
        if not given:
            return urls
        try:
            upstream = Upstream.of(given)
            self.listen(upstream)
        except (ValueError, OSError) as error:
            log.warning("no port for a broker: its clients bypass the proxy", broker=given, reason=error)
            return urls
        ours = self._url(host, upstream)
        return BrokerUrls("", ours) if self._tls.to_clients is not None else BrokerUrls(ours, "")

    async def _carry(self, upstream: Upstream, client: trio.SocketStream) -> None:
        try:
            peer, own = client.socket.getpeername(), client.socket.getsockname()
        except OSError:  # the client has disconnected already
            await trio.aclose_forcefully(client)
            return
        address, host = f"/{peer[0]}:{peer[1]}", own[0]
        connection = ProxiedConnection(
            self._stand_in, address, self._url(host, upstream), partial(self.through, host), self._mask_of
        )
        try:
            await self._carried(connection, upstream, client)
        except Exception as error:  # a connection that fails must not end the others
            log.error("a connection failed", exception=error, peer=address)
        finally:
            self._connections.remove(connection)

    async def _carried(self, connection: ProxiedConnection, upstream: Upstream, raw: trio.SocketStream) -> None:
        async with raw:
            try:
                with trio.fail_after(CONNECT_SECONDS):
                    client = await _shaken(raw, self._tls.to_clients)
            except (trio.TooSlowError, trio.BrokenResourceError) as error:
                log.warning("no TLS with a client", peer=connection, reason=_why(error))
                return
            try:
                with trio.fail_after(CONNECT_SECONDS):
                    broker = await self._dialled(upstream)
            except (OSError, UnicodeError, trio.TooSlowError, trio.BrokenResourceError) as error:
                why = f"cannot connect to {upstream}: {_why(error)}"
                log.warning(why, peer=connection)
                self._connections.add(connection)
                connection.refused(why)
                return
            async with broker:
                await connection.carry(client, broker, partial(self._connections.add, connection))

    async def _dialled(self, upstream: Upstream) -> trio.abc.Stream:
        raw = await trio.open_tcp_stream(upstream.host, upstream.port)
        try:
            return await _shaken(raw, self._tls.to_brokers if upstream.secure else None, upstream.host)
        except BaseException:
            await trio.aclose_forcefully(raw)
            raise


async def _shaken(raw: trio.SocketStream, context: ssl.SSLContext | None, broker: str | None = None) -> trio.abc.Stream:
    """Return a stream with TLS, or without when there is no context. `broker` is the name of the other side."""
    if context is None:
        return raw
    stream = trio.SSLStream(raw, context, server_hostname=broker, server_side=broker is None, https_compatible=True)
    await stream.do_handshake()
    return stream


def _why(error: BaseException) -> str:
    if isinstance(error, trio.TooSlowError):
        return "no answer"
    return getattr(error.__cause__ or error, "strerror", None) or str(error.__cause__ or error)
