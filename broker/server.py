"""Opens a broker: store, ports, HTTP; closes them in the opposite order."""

from __future__ import annotations

import errno
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module

import trio

from pulsarium.broker.broker import Broker
from pulsarium.broker.cluster import Cluster
from pulsarium.broker.config.options import ServeOptions
from pulsarium.broker.errors import PortInUse
from pulsarium.broker.session.transport import accept
from pulsarium.broker.storage.interface import Storage

ADMIN = "pulsarium.broker.admin.server"
STORAGE_GRACE = 0.5  # seconds to write what was handed over; SIGTERM is to end a broker within one


@dataclass(frozen=True, slots=True)
class RunningBroker:
    """A broker that answers."""

    broker: Broker
    service_url: str
    admin_url: str


def open_storage(options: ServeOptions) -> Storage:
    """The store that the options ask for."""
    if options.data is None:
        from pulsarium.broker.storage.memory import MemoryStorage

        return MemoryStorage()
    from pulsarium.broker.storage.sqlite import SqliteStorage

    return SqliteStorage(options.data, options.durability, grace=STORAGE_GRACE)


def bind(host: str, port: int, option: str) -> socket.socket:
    """A listening socket; PortInUse names the option that helps."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(1024)
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(port, option) from None
        raise
    sock.setblocking(False)
    return sock


@asynccontextmanager
async def open_broker(options: ServeOptions) -> AsyncIterator[RunningBroker]:
    """Serve until the block is left. Raises PortInUse, or StorageError for a data directory that cannot be used."""
    binary = bind(options.host, options.port, "--port")
    try:
        web = bind(options.host, options.http_port, "--http-port")
    except BaseException:
        binary.close()
        raise
    with binary, web:
        async with open_core(options) as broker:
            host = f"[{options.host}]" if ":" in options.host else options.host
            service_url = f"pulsar://{host}:{binary.getsockname()[1]}"
            admin_url = f"http://{host}:{web.getsockname()[1]}"
            broker.listening(service_url, admin_url)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(accept, broker, binary)
                # HTTP costs 0.2 s to import: clients of the binary port need not wait for it
                await trio.to_thread.run_sync(import_module, ADMIN)
                await nursery.start(import_module(ADMIN).serve_http, broker, web)
                yield RunningBroker(broker, service_url, admin_url)
                nursery.cancel_scope.cancel()


@asynccontextmanager
async def open_core(options: ServeOptions) -> AsyncIterator[Broker]:
    """A broker without ports, for tests over streams: store, clock and timers run."""
    storage = open_storage(options)
    async with trio.open_nursery() as nursery:
        await nursery.start(storage.run)
        broker = Broker(Cluster(options.config, options.profile, storage))
        async with trio.open_nursery() as timers:
            timers.start_soon(broker.clock.run)
            yield broker
            broker.save()
            timers.cancel_scope.cancel()
        nursery.cancel_scope.cancel()
