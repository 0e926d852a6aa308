"""The proxy: a port for each broker of a cluster, and the connections that it carries."""

from __future__ import annotations

import socket
import ssl
from contextlib import ExitStack
from functools import partial
from typing import Final
from urllib.parse import urlsplit

import trio

from pulsarium.broker.auth.tls import TlsContext
from pulsarium.broker.cluster import Broker
from pulsarium.broker.lab.connections import Opened
from pulsarium.broker.lab.proxy.connection import MaskOf, ProxiedConnection
from pulsarium.broker.lab.proxy.rewriting import BrokerUrls
from pulsarium.broker.lab.proxy.upstream import Upstream, trust_of_the_machine
from pulsarium.broker.logs import PartLog
from pulsarium.broker.net.accepting import PlainStream, Shortage, accept_one, bind, shake_hands
from pulsarium.broker.net.dialling import FAILURES, dial, is_full, plain, why
from pulsarium.broker.net.wrong_port import at_binary_port
from pulsarium.proto.commands import Direction
from pulsarium.proto.first_bytes import HTTP_ANSWER, TLS_ALERT, is_frame

log = PartLog("proxy")

CONNECT_SECONDS = 10.0
"""How long a broker may take to accept a connection."""
BYPASSED: Final = "no port for a broker: its clients bypass the proxy"
ONLY_TLS: Final = "a broker names no URL without TLS: the proxy uses TLS towards it"
ONLY_PLAIN: Final = "a broker names no URL with TLS: the proxy, which was given one with TLS, does not connect to it"
SHOWN: Final = 16  # bytes of another protocol in the log
HTTP_THERE: Final = "HTTP answers there; name the port of Pulsar's clients, by default pulsar://HOST:6650"
ENDED: Final = "it ended the connection without an answer; if its port is for TLS, name it as pulsar+ssl://HOST:PORT"


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

    `stand_in` is the broker that has the lab. It serves no client. With its brokerServicePortTls, each broker has a
    second port, where clients use TLS. `secure` tells that TLS is wanted towards brokers, and `tls` whom it trusts:
    by default, the authorities of the machine.
    """

    def __init__(
        self,
        stand_in: Broker,
        connections: ProxiedConnections,
        nursery: trio.Nursery,
        mask_of: MaskOf,
        *,
        secure: bool,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._stand_in = stand_in
        self._connections = connections
        self._nursery = nursery
        self._secure = secure
        self._to_brokers = tls
        self._to_clients = None if stand_in.config.brokerServicePortTls is None else stand_in.cluster.tls
        self._mask_of = mask_of
        self._ports: dict[Upstream, tuple[int, ...]] = {}  # without TLS, and with it
        self._shortage = Shortage(log)
        self._warned: dict[Upstream, str] = {}  # the last reason
        self._bypassed: dict[str, str] = {}  # why there is no port, by the URL that clients got instead

    def listen(self, upstream: Upstream, *listeners: socket.socket) -> None:
        """Carry what comes to listening sockets to a broker. The second socket, if any, is for TLS."""
        self._ports[upstream] = tuple(listener.getsockname()[1] for listener in listeners)
        for listener, tls in zip(listeners, (None, self._to_clients), strict=False):
            self._nursery.start_soon(self._accept, upstream, listener, tls)

    def _listen_too(self, upstream: Upstream) -> None:
        """Listen for a broker that an answer names. Raise `OSError` when no port is free."""
        options = ("--port",) if self._to_clients is None else ("--port", "--tls-port")
        with ExitStack() as undo:
            listeners = [undo.enter_context(bind(self._stand_in.config.bindAddress, 0, option)) for option in options]
            undo.pop_all()
        self.listen(upstream, *listeners)

    def _urls(self, host: str, upstream: Upstream) -> BrokerUrls:
        plain, *tls = self._ports[upstream]
        return BrokerUrls(str(Upstream(host, plain)), str(Upstream(host, tls[0], secure=True)) if tls else "")

    def through(self, host: str, urls: BrokerUrls) -> BrokerUrls:
        """Return the URLs of the proxy for a broker, for a client that knows the proxy as `host`."""
        given = (urls.secure or urls.plain) if self._secure else (urls.plain or urls.secure)
        if not given:
            return urls
        try:
            upstream = Upstream.of(given)
            if upstream not in self._ports:
                self._listen_too(upstream)
                if upstream.secure is not self._secure:
                    log.warning(self._note(upstream), broker=upstream)
        except (ValueError, OSError) as error:
            if self._bypassed.get(given) != str(error):
                self._bypassed[given] = str(error)
                log.warning(BYPASSED, broker=given, reason=error)
            return urls
        self._bypassed.pop(given, None)
        return self._urls(host, upstream)

    def brokers(self) -> list[tuple[str, str]]:
        """Return the URL of each broker that clients were led to, and what keeps them from it or is unexpected."""
        found = [(str(each), self._warned.get(each) or self._note(each)) for each in self._ports]
        return [*found, *((url, f"{BYPASSED} ({reason})") for url, reason in self._bypassed.items())]

    def _note(self, upstream: Upstream) -> str:
        if upstream.secure is self._secure:
            return ""
        return ONLY_TLS if upstream.secure else ONLY_PLAIN

    async def _accept(self, upstream: Upstream, listener: socket.socket, tls: TlsContext | None) -> None:
        """Carry every connection to a listening socket, until cancelled."""
        with listener:
            async with trio.open_nursery() as nursery:
                while True:
                    sock, host, port = await accept_one(listener, self._shortage)
                    nursery.start_soon(self._carry, upstream, sock, f"/{host}:{port}", tls)

    async def _carry(self, upstream: Upstream, sock: socket.socket, address: str, tls: TlsContext | None) -> None:
        """Carry one connection, and keep its errors from the others."""
        client = PlainStream(sock)
        try:
            host: str = sock.getsockname()[0]
            through = partial(self.through, host)
            url = self._urls(host, upstream)[tls is not None]
            connection = ProxiedConnection(self._stand_in, address, url, through, self._mask_of)
            try:
                await self._carried(connection, upstream, client, tls)
            finally:
                self._connections.remove(connection)
        except Exception as error:
            log.error("a connection failed", exception=error, peer=address)
        finally:
            await trio.aclose_forcefully(client)

    async def _carried(
        self, connection: ProxiedConnection, upstream: Upstream, raw: PlainStream, to_client: TlsContext | None
    ) -> None:
        client: trio.abc.Stream | None = raw
        if to_client is not None:
            admission = self._stand_in.cluster.admission
            client = await shake_hands(raw, to_client.current(), connection.address, admission)
        if client is None:
            return
        if self._secure and not upstream.secure:  # what clients prove who they are with would be readable on the way
            self._connections.add(connection)
            connection.refused(ONLY_PLAIN)
            return
        try:
            with trio.fail_after(CONNECT_SECONDS):
                tls = (self._to_brokers or trust_of_the_machine()) if upstream.secure else None
                broker = await dial(upstream.host, upstream.port, tls)
        except FAILURES as error:
            if is_full(error):
                self._shortage.tell(error)
            else:
                self._warn("cannot connect to a broker", upstream, connection, why(error))
            self._connections.add(connection)
            connection.refused(f"cannot connect to {upstream}: {why(error)}")
            return
        async with broker:
            await connection.carry(client, broker, partial(self._connections.add, connection))
            if connection.was_reset:
                raw.reset_when_closed()
                plain(broker).reset_when_closed()
        wrong = self._wrong_port(connection, upstream, secure=to_client is not None)
        if wrong:
            self._warn("a connection ended before the broker answered", upstream, connection, wrong)
        else:
            self._warned.pop(upstream, None)

    def _warn(self, what: str, upstream: Upstream, connection: ProxiedConnection, reason: str) -> None:
        """Log what keeps clients from a broker, but not again for each time that they try."""
        if self._warned.get(upstream) != reason:
            self._warned[upstream] = reason
            log.warning(what, broker=upstream, peer=connection, reason=reason)

    def _wrong_port(self, connection: ProxiedConnection, upstream: Upstream, *, secure: bool) -> str:
        """Return why a side did not understand the other, or ""."""
        of_client, of_broker = (connection.begins.get(side, b"") for side in (Direction.CLIENT, Direction.BROKER))
        url, url_tls = self._urls(Upstream.of(connection.listener).host, upstream)
        own = self._stand_in.listener_at(urlsplit(url).netloc.rpartition(":")[0])
        found = at_binary_port(of_client, own._replace(pulsar=url, pulsar_ssl=url_tls), secure=secure)
        if found is not None:
            return found.reason
        if of_broker.startswith(HTTP_ANSWER):
            return HTTP_THERE
        alerted = of_broker.startswith(TLS_ALERT)
        if not (is_frame(of_broker) or alerted):
            return f"no Pulsar broker answers there: the answer begins with {of_broker[:SHOWN]!r}"
        ended = connection.left_by_broker and of_client and not upstream.secure
        return ENDED if ended and (alerted or not of_broker) else ""
