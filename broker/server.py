"""Open brokers: store, ports, HTTP. Close them in the opposite order."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from importlib import import_module

import trio

from pulsarium.broker import commands
from pulsarium.broker.cluster import Broker, Cluster
from pulsarium.broker.config.meaning import ConfigError
from pulsarium.broker.config.options import PortNumbers, ServeOptions
from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.connections import Connections
from pulsarium.broker.model.compaction.compaction import make_engine
from pulsarium.broker.net.accepting import bind
from pulsarium.broker.session.transport import accept, over_tls
from pulsarium.broker.storage.interface import Storage, StorageError

WEB = "pulsarium.broker.web.routes"
STORAGE_GRACE = 0.5  # seconds for the last writes; SIGTERM must end a broker within one


class Ports:
    """The listening sockets of a broker; 0 takes a free port. Raise `PortInUse`, without taking any port."""

    def __init__(self, host: str, wanted: PortNumbers) -> None:
        self.host = host
        with ExitStack() as taken:
            self.binary = taken.enter_context(bind(host, wanted.binary, "--port"))
            self.web = taken.enter_context(bind(host, wanted.web, "--http-port"))
            tls = wanted.binary_tls
            self.binary_tls = None if tls is None else taken.enter_context(bind(host, tls, "--tls-port"))
            https = wanted.web_tls
            self.web_tls = None if https is None else taken.enter_context(bind(host, https, "--https-port"))
            self._taken = taken.pop_all()
        self.numbers = PortNumbers(
            number_of(self.binary),
            number_of(self.web),
            None if self.binary_tls is None else number_of(self.binary_tls),
            None if self.web_tls is None else number_of(self.web_tls),
        )

    def __enter__(self) -> Ports:
        return self

    def __exit__(self, *error: object) -> None:
        self._taken.close()


def number_of(sock: socket.socket) -> int:
    """Return the port of a listening socket."""
    number: int = sock.getsockname()[1]
    return number


def url_host(host: str) -> str:
    """Return a host as URLs write it."""
    return f"[{host}]" if ":" in host else host


class RunningBroker:
    """A broker that answers on its ports. It can be killed, and started again on the same ports."""

    def __init__(self, broker: Broker, ports: Ports, nursery: trio.Nursery) -> None:
        self.broker = broker
        self._ports = ports
        self._nursery = nursery
        self._scope = trio.CancelScope()
        self._ended = trio.Event()
        broker.listening(*ports.numbers)
        broker.on_shutdown = lambda: nursery.start_soon(self._shut_down)
        self.shut_down = trio.Event()  # set when an operator has shut the broker down

    @property
    def service_url(self) -> str:
        """Return pulsar://host:port of the bound port."""
        return f"pulsar://{self._url_host}:{self.broker.port}"

    @property
    def admin_url(self) -> str:
        """Return http://host:port of the bound port."""
        return f"http://{self._url_host}:{self.broker.http_port}"

    @property
    def service_url_tls(self) -> str | None:
        """Return pulsar+ssl://host:port of the bound port, or None without TLS."""
        port = self.broker.port_tls
        return None if port is None else f"pulsar+ssl://{self._url_host}:{port}"

    @property
    def admin_url_tls(self) -> str | None:
        """Return https://host:port of the bound port, or None without TLS."""
        port = self.broker.http_port_tls
        return None if port is None else f"https://{self._url_host}:{port}"

    @property
    def _url_host(self) -> str:
        return url_host(self._ports.host)

    async def serve(
        self, *, web_when_asked: bool = False, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Answer on the bound ports until killed. `task_status` reports when the binary port answers.

        HTTP answers after an import of 0.2 s. Connections of that time wait in the queue of the listening socket. With
        `web_when_asked`, the import waits for the first connection.
        """
        self._scope, self._ended = trio.CancelScope(), trio.Event()
        try:
            with self._ports, self._scope, ExitStack() as at_the_end:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(accept, self.broker, self._ports.binary)
                    tls = self.broker.cluster.tls
                    if tls is not None and self._ports.binary_tls is not None:
                        nursery.start_soon(accept, self.broker, self._ports.binary_tls, over_tls(tls.current))
                    task_status.started()
                    if web_when_asked:
                        await _any_readable(self._ports.web, self._ports.web_tls)
                    # in a thread, so that clients of the binary port need not wait
                    await trio.to_thread.run_sync(import_module, WEB)
                    web = import_module(WEB)
                    site = web.site_of(self.broker)
                    at_the_end.callback(site.stop)
                    await nursery.start(web.serve_http, site, self._ports.web)
                    if tls is not None and self._ports.web_tls is not None:
                        await nursery.start(partial(web.serve_http, tls=tls), site, self._ports.web_tls)
        finally:
            self._ended.set()

    async def kill(self) -> None:
        """Stop only this broker: disconnect its clients and release its bundles."""
        self._note("killed")
        self.broker.stop()
        self._scope.cancel()
        await self._ended.wait()

    def _note(self, what: str) -> None:
        cluster = self.broker.cluster
        cluster.attached(Lab).acts.note(f"{what} broker {cluster.brokers.index(self.broker)}")

    async def _shut_down(self) -> None:
        await self.kill()
        self.shut_down.set()

    async def bring_back(self) -> None:
        """Start the broker again on its old ports. Raise `PortInUse` when another process took one."""
        self._note("brought back")
        self._ports = Ports(self._ports.host, self._ports.numbers)
        self.broker.start()
        await self._nursery.start(self.serve)


async def _any_readable(*sockets: socket.socket | None) -> None:
    """Wait until a client connects to one of the sockets."""
    async with trio.open_nursery() as nursery:

        async def wait(listener: socket.socket) -> None:
            await trio.lowlevel.wait_readable(listener)
            nursery.cancel_scope.cancel()

        for listener in sockets:
            if listener is not None:
                nursery.start_soon(wait, listener)


class RunningCluster:
    """The brokers of one process.

    `toxiproxy_url` is the URL of Toxiproxy's control API, or None without the API.
    """

    def __init__(self, brokers: Sequence[RunningBroker], toxiproxy_url: str | None = None) -> None:
        self.brokers = brokers
        self.toxiproxy_url = toxiproxy_url

    async def wait_shut_down(self) -> None:
        """Wait until operators have shut all brokers down (POST brokers/shutdown)."""
        for each in self.brokers:
            await each.shut_down.wait()

    @property
    def broker(self) -> Broker:
        """Return the first broker."""
        return self.brokers[0].broker

    @property
    def lab(self) -> Lab:
        """Return the lab, by which a test steers faults, clock and captures."""
        return self.broker.cluster.attached(Lab)

    @property
    def service_url(self) -> str:
        """Return the URL of the first broker."""
        return self.brokers[0].service_url

    @property
    def admin_url(self) -> str:
        """Return the URL of the first broker."""
        return self.brokers[0].admin_url

    @property
    def service_url_tls(self) -> str | None:
        """Return the URL of the first broker, or None without TLS."""
        return self.brokers[0].service_url_tls

    @property
    def admin_url_tls(self) -> str | None:
        """Return the URL of the first broker, or None without TLS."""
        return self.brokers[0].admin_url_tls


async def open_storage(options: ServeOptions) -> Storage:
    """Return the store of the options."""
    if options.data is None:
        from pulsarium.broker.storage.memory import MemoryStorage

        return MemoryStorage()
    from pulsarium.broker.storage.sqlite import SqliteStorage

    return await trio.to_thread.run_sync(partial(SqliteStorage, options.data, options.durability, grace=STORAGE_GRACE))


@asynccontextmanager
async def open_broker(
    options: ServeOptions, *, web_when_asked: bool = False, storage: Storage | None = None
) -> AsyncIterator[RunningCluster]:
    """Serve with `options.brokers` brokers until the block ends. Each broker takes the next higher ports.

    `web_when_asked` is that of RunningBroker.serve. `storage` takes the place of the store of the options. Raise
    `PortInUse`, `StorageError` for an unusable data directory, or `ConfigError` for unusable keys and certificates.
    """
    with ExitStack() as stack:
        taken = [stack.enter_context(Ports(options.host, options.ports.nth(index))) for index in range(options.brokers)]
        port = options.toxiproxy_port
        control = None if port is None else stack.enter_context(bind(options.host, port, "--toxiproxy-port"))
        async with open_core(options, storage) as first, trio.open_nursery() as nursery:
            brokers = zip(first.cluster.brokers, taken, strict=True)
            running = [RunningBroker(broker, ports, nursery) for broker, ports in brokers]
            for each in running:
                await nursery.start(partial(each.serve, web_when_asked=web_when_asked))
            toxiproxy_url = await open_toxiproxy(first, control, nursery, options.host)
            with watched(first.cluster.turn.stalls):  # while clients can wait
                yield RunningCluster(running, toxiproxy_url)
            nursery.cancel_scope.cancel()


@contextmanager
def watched(instrument: trio.abc.Instrument) -> Iterator[None]:
    """Show the rounds of the event loop to `instrument` until the block ends."""
    trio.lowlevel.add_instrument(instrument)
    try:
        yield
    finally:
        trio.lowlevel.remove_instrument(instrument)


async def begin_with(lab: Lab, options: ServeOptions) -> None:
    """Restore or seed the state that the options name. Raise `ConfigError` when that fails."""
    try:
        if options.restore is not None:
            await lab.state.restore(options.restore)
    except StorageError as error:
        raise ConfigError("--restore", "", str(error)) from None
    try:
        if options.seed is not None:
            await lab.state.seed(options.seed)
    except ValueError as error:
        raise ConfigError("--seed", "", str(error)) from None


async def open_toxiproxy(
    broker: Broker, control: socket.socket | None, nursery: trio.Nursery, host: str, *, of_proxy: bool = False
) -> str | None:
    """Serve Toxiproxy's control API on a listening socket, and return its URL. Without a socket, return None.

    With `of_proxy`, refusals name the options of `pulsarium proxy`.
    """
    if control is None:
        return None
    from pulsarium.broker.web.http.browser import BROKER, PROXY
    from pulsarium.broker.web.toxiproxy import serve_toxiproxy

    await nursery.start(serve_toxiproxy, broker, control, PROXY if of_proxy else BROKER)
    return f"http://{url_host(host)}:{number_of(control)}"


@asynccontextmanager
async def open_core(
    options: ServeOptions, storage: Storage | None = None, connections: Connections | None = None
) -> AsyncIterator[Broker]:
    """Open brokers without ports, for tests over streams, with store, clock and timers. Yield the first broker.

    The lab taps `connections`, by default those of the brokers.
    """
    asked = options.compaction_engine
    engine = None if asked is None else make_engine(asked, options.compaction_options)
    storage = storage or await open_storage(options)
    async with trio.open_nursery() as nursery:
        await nursery.start(storage.run)
        cluster = Cluster(options.config, options.profile, storage)
        cluster.directory = options.data
        cluster.compactor = engine
        commands.attach_to(cluster)
        lab = cluster.attach(Lab(cluster, options.lab_dir, connections))
        brokers = [Broker(cluster) for _ in range(options.brokers)]
        if options.capture is not None:
            try:
                lab.captures.start(options.capture)
            except OSError as error:
                raise ConfigError("--capture", str(options.capture), error.strerror or str(error)) from None
        async with trio.open_nursery() as timers:
            timers.start_soon(cluster.clock.run)
            timers.start_soon(cluster.turn.run)
            try:
                with watched(cluster.turn.fair):
                    await begin_with(lab, options)
                    yield brokers[0]
                    cluster.save()
            finally:
                lab.stop()
                cluster.topics.stop_compactions()  # also when canceled, so that no process is left behind
            timers.cancel_scope.cancel()
        nursery.cancel_scope.cancel()
