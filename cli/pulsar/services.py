"""The services around the broker of a cluster form: zookeeper, configuration-store, bookie, autorecovery and proxy.

Pulsarium's broker needs none of them. They open the ports of Pulsar's services, so that compose files and their health
checks work, and wait for SIGTERM. Only the proxy carries traffic, and only zookeeper remembers anything.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click
import trio
from google.protobuf.message import DecodeError

from pulsarium.broker.config.file import parse
from pulsarium.broker.logs import PartLog
from pulsarium.cli.pulsar import metadata
from pulsarium.cli.pulsar.metadata import ForeignStore, Membership, MetadataStore, Place, place_of
from pulsarium.cli.refusal import RequestRefused, RunRefused
from pulsarium.proto.framing import FrameDecoder, frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand

log = PartLog("services")

Talk = Callable[[trio.SocketStream], Awaitable[None]]
STORES: Final = ("metadataStoreUrl", "zookeeperServers", "metadataServiceUri", "zkServers")
_READ: Final = 1 << 16
_MOST_CONNECT: Final = 1 << 20  # bytes of the first frame of a client


def conf_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option and an argument that both name the .conf file, because Pulsar's services take either."""
    command = click.option("-c", "--config", metavar="FILE", hidden=True)(command)
    return click.argument("file", required=False)(command)


def settings_of(home: Path, given: Mapping[str, Any], name: str, variable: str) -> dict[str, str]:
    """Return the settings of the .conf file that the command line, a variable, or the folder names."""
    os.chdir(home)
    path = Path(given["file"] or given["config"] or os.environ.get(variable) or f"conf/{name}")
    try:
        return {each.key: each.value for each in parse(path.read_text("utf-8")) if each.value}
    except (OSError, ValueError) as error:
        raise RequestRefused(f"{path}: {error}; name a .conf file that this user can read") from None


def number_in(settings: Mapping[str, str], key: str, default: int) -> int:
    """Return a port of a .conf file."""
    text = settings.get(key, str(default))
    if not text.isdecimal() or int(text) > 65535:
        raise RequestRefused(f"{key}={text}: write a port, a number up to 65535")
    return int(text)


def store_in(settings: Mapping[str, str]) -> Place | None:
    """Return the address of the metadata store that a .conf file names."""
    return next((place for key in STORES if key in settings and (place := place_of(settings[key]))), None)


def join(place: Place, member: Mapping[str, str], wait: float | None = None) -> Membership | None:
    """Make a member known to the metadata store. Return None, with a line in the log, where there is none."""
    try:
        return metadata.ask(place, {"join": dict(member)}, wait)
    except ForeignStore:
        log.info("this store is not of Pulsarium: nothing is kept there", store=place)
    except OSError as error:
        log.info("no metadata store answers, and none is needed", store=place, reason=error.strerror or error)
    return None


def run(name: str, ports: Sequence[tuple[int, Talk]], known_at: Place | None = None, host: str = "") -> None:
    """Serve the ports until SIGTERM or Ctrl-C. The metadata store `known_at` knows the host and the first port."""
    from pulsarium.cli.logs import configure

    configure("info", "text", sys.stdout)
    trio.run(_serve, name, ports, known_at, host)


async def _serve(name: str, ports: Sequence[tuple[int, Talk]], known_at: Place | None, host: str) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        listeners = [(_bound(name, port), talk) for port, talk in ports]
        async with trio.open_nursery() as nursery:
            for listener, talk in listeners:
                nursery.start_soon(trio.serve_listeners, partial(_one, talk), [trio.SocketListener(listener)])
            numbers = [str(listener.getsockname()[1]) for listener, _ in listeners]
            if known_at is not None:
                member = {"kind": name, "id": f"{host}:{numbers[0]}"}
                nursery.start_soon(partial(_stay_known, known_at, member))
            log.info("the service is ready", service=name, ports=" ".join(numbers) or "none")
            async for number in signals:
                log.info("stopping", signal=signal.Signals(number).name)
                break
            nursery.cancel_scope.cancel()


async def _stay_known(place: Place, member: Mapping[str, str]) -> None:
    membership = await trio.to_thread.run_sync(join, place, member, abandon_on_cancel=True)
    try:
        await trio.sleep_forever()
    finally:
        if membership is not None:
            membership.leave()


def _bound(name: str, port: int) -> trio.socket.SocketType:
    try:
        return trio.socket.from_stdlib_socket(socket.create_server(("", port)))
    except OSError as error:
        raise RunRefused(
            f"{name}: port {port}: {os.strerror(error.errno or 0)}; name another in its .conf file"
        ) from None


async def _one(talk: Talk, stream: trio.SocketStream) -> None:
    async with stream:
        try:
            await talk(stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        except Exception as error:  # a connection that fails must not end the others
            log.info("a connection failed", reason=error)


async def listen(stream: trio.SocketStream) -> None:
    """Read what a client sends, and answer nothing."""
    while await stream.receive_some(_READ):
        pass


async def heartbeat(stream: trio.SocketStream) -> None:
    """Answer each HTTP request as a healthy bookie does."""
    await stream.receive_some(_READ)
    await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nOK\n")


class Forward:
    """Carry connections to one port. With `connects`, clients stay on the proxy, whatever topic they look up."""

    def __init__(self, target: Place, *, connects: bool) -> None:
        self._target = target
        self._connects = connects

    async def talk(self, client: trio.SocketStream) -> None:
        first = await self._first(client) if self._connects else b""
        broker = await trio.open_tcp_stream(*self._target)
        async with broker, trio.open_nursery() as nursery:
            await broker.send_all(first)
            nursery.start_soon(_pump, client, broker)
            nursery.start_soon(_pump, broker, client)

    async def _first(self, client: trio.SocketStream) -> bytes:
        """Return the bytes of CONNECT, with the broker's address in it: the broker then answers lookups for a proxy."""
        decoder, came = FrameDecoder(_MOST_CONNECT), b""
        while len(came) < _MOST_CONNECT and decoder.error is None:
            data = bytes(await client.receive_some(_READ))
            came += data
            for head, trailing in decoder.feed(data):
                try:
                    command = BaseCommand.FromString(head)
                except DecodeError:  # the broker says what is wrong
                    return came
                if command.type == BaseCommand.CONNECT and not command.connect.proxy_to_broker_url:
                    command.connect.proxy_to_broker_url = str(self._target)
                    rest = came[len(frame(head, trailing)) :]
                    return frame(command.SerializeToString(), trailing) + rest
                return came
            if not data:
                break
        return came


async def _pump(source: trio.SocketStream, sink: trio.SocketStream) -> None:
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        while data := await source.receive_some(_READ):
            await sink.send_all(data)
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        await sink.send_eof()


def target_of(settings: Mapping[str, str], key: str, kind: str, port: int) -> Place:
    """Return the port of the broker that proxy.conf names, or that the metadata store knows."""
    url = settings.get(key)
    if url is None:
        place = store_in(settings)
        if place is None:
            raise RequestRefused(f"proxy.conf: set {key} to the URL of the broker")
        url = _url_in_store(place, kind)
    found = urlsplit(url.partition(",")[0])
    if not found.hostname:
        raise RequestRefused(f"{key}={url}: write the URL of the broker, such as pulsar://broker:6650")
    return Place(found.hostname, found.port or port)


def _url_in_store(place: Place, kind: str) -> str:
    try:
        known = metadata.ask(place, {})
    except (ForeignStore, OSError):
        raise RunRefused(
            f"no metadata store of Pulsarium answers at {place}: set brokerServiceURL and "
            "brokerWebServiceURL in proxy.conf"
        ) from None
    known.leave()
    for each in (*(member for member in known.members if member["kind"] == "broker"), *known.clusters.values()):
        if kind in each:
            return str(each[kind])
    raise RunRefused(f"the metadata store at {place} knows no broker: start one, or set brokerServiceURL in proxy.conf")


@click.command()
@conf_option
@click.pass_obj
def zookeeper(home: Path, /, **given: Any) -> None:
    """Keep the metadata of initialize-cluster-metadata, and answer ruok, until SIGTERM."""
    settings = settings_of(home, given, "zookeeper.conf", "PULSAR_ZK_CONF")
    store = MetadataStore(Path(settings.get("dataDir", "data/zookeeper")))
    run("zookeeper", [(number_in(settings, "clientPort", metadata.PORT), store.talk)])


@click.command("configuration-store")
@conf_option
@click.pass_obj
def configuration_store(home: Path, /, **given: Any) -> None:
    """Do what zookeeper does, on the port of conf/global_zookeeper.conf."""
    settings = settings_of(home, given, "global_zookeeper.conf", "PULSAR_GLOBAL_ZK_CONF")
    store = MetadataStore(Path(settings.get("dataDir", "data/global-zookeeper")))
    run("configuration-store", [(number_in(settings, "clientPort", 2184), store.talk)])


@click.command()
@conf_option
@click.pass_obj
def bookie(home: Path, /, **given: Any) -> None:
    """Open the port of a bookie until SIGTERM. The broker keeps its messages itself."""
    settings = settings_of(home, given, "bookkeeper.conf", "PULSAR_BOOKKEEPER_CONF")
    ports: list[tuple[int, Talk]] = [(number_in(settings, "bookiePort", 3181), listen)]
    if settings.get("httpServerEnabled") == "true":
        ports.append((number_in(settings, "httpServerPort", 8000), heartbeat))
    run("bookie", ports, store_in(settings), settings.get("advertisedAddress", socket.gethostname()))


@click.command()
@conf_option
@click.pass_obj
def autorecovery(home: Path, /, **given: Any) -> None:
    """Wait until SIGTERM, because no ledger needs recovery."""
    settings_of(home, given, "bookkeeper.conf", "PULSAR_BOOKKEEPER_CONF")
    run("autorecovery", [])


@click.command()
@conf_option
@click.pass_obj
def proxy(home: Path, /, **given: Any) -> None:
    """Forward ports 6650 and 8080 to the broker of conf/proxy.conf until SIGTERM."""
    settings = settings_of(home, given, "proxy.conf", "PULSAR_PROXY_CONF")
    for key in ("servicePortTls", "webServicePortTls"):
        if key in settings:
            raise RequestRefused(f"proxy.conf: {key}: this proxy has no TLS; leave the key blank")
    ports: list[tuple[int, Talk]] = []
    for port, key, kind, standard in (
        ("servicePort", "brokerServiceURL", "brokerServiceUrl", 6650),
        ("webServicePort", "brokerWebServiceURL", "serviceUrl", 8080),
    ):
        target = target_of(settings, key, kind, standard)
        forward = Forward(target, connects=port == "servicePort")
        ports.append((number_in(settings, port, standard), forward.talk))
    run("proxy", ports)
