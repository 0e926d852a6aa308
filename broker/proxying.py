"""Open a proxy in front of any Pulsar, with the lab and its HTTP. A stand-in broker has the lab, without clients."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

import trio

from pulsarium.broker.cluster import Broker
from pulsarium.broker.config.file import LoadedConfig, load
from pulsarium.broker.config.keys import Config
from pulsarium.broker.config.meaning import ConfigError
from pulsarium.broker.config.options import ServeOptions
from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.capture import Capture
from pulsarium.broker.lab.proxy.faults import ProxyFaults
from pulsarium.broker.lab.proxy.masks import ProxyMasks
from pulsarium.broker.lab.proxy.proxy import ProxiedConnections, Proxy
from pulsarium.broker.lab.proxy.upstream import Upstream
from pulsarium.broker.net.accepting import bind
from pulsarium.broker.server import number_of, open_core, open_toxiproxy, url_host
from pulsarium.broker.web.http.server import serve_http
from pulsarium.broker.web.proxied import ProxySite

LAST_WORDS: Final = 0.3  # seconds for connections to end when the proxy ends
MAY_BE_PRODUCTION: Final = "{} may be production, because it is neither on this machine nor in a private network"
FORBIDDEN: Final = (
    f"{MAY_BE_PRODUCTION}: faults and masks are refused, and captures, the linter and rules that observe work; if it "
    "is a test cluster, start the proxy with --yes-not-production"
)
"""Why a proxy refuses to change anything."""
_OBEYED: Final = ("authentication", "authorization", "token", "basicAuth", "http", "maxHttp", "tls")  # beginnings
_OBEYED_TOO: Final = ("strictAuthMethod", "anonymousUserRole", "superUserRoles", "proxyRoles")
_LEFT_OUT: Final = ("authenticationRefresh", "httpRequests")


@dataclass(frozen=True, kw_only=True)
class ProxyOptions:
    """The options of `pulsarium proxy`. `admin_url` is that of the broker, or None to forward no HTTP.

    `tls_port` and `https_port` are for clients that use TLS, and need `tls_cert`. `keys` are those of broker.conf, by
    which callers of /lab prove their roles.
    """

    upstream: Upstream
    admin_url: str | None = None
    host: str = "127.0.0.1"
    port: int = 0
    http_port: int = 0
    tls_port: int | None = None  # None: no TLS
    https_port: int | None = None  # None: no HTTPS
    tls_cert: Path | None = None
    tls_key: Path | None = None  # None: in the file of the certificate
    toxiproxy_port: int | None = None  # of Toxiproxy's control API; None: no such API
    tls: ssl.SSLContext | None = None  # towards brokers and their HTTP; None: the authorities of the machine
    lab_dir: Path | None = None
    allowed_hosts: frozenset[str] = frozenset()  # names of the proxy, and of sites, that browsers may use
    sure: bool = False  # that the broker is not one of production
    keys: LoadedConfig = field(default_factory=lambda: load(None))

    @property
    def config(self) -> Config:
        """Return the keys of broker.conf for what a proxy shares with a broker."""
        return replace(
            self.keys.config,
            transactionCoordinatorEnabled=False,
            httpRequestsLimitEnabled=False,  # a limit of each broker, which counts what the proxy forwards
            bindAddress=self.host,
            brokerServicePort=self.port,
            brokerServicePortTls=self.tls_port,
            webServicePort=self.http_port,
            webServicePortTls=self.https_port,
            httpAllowedHosts=self.keys.config.httpAllowedHosts | self.allowed_hosts,
            tlsCertificateFilePath=None if self.tls_cert is None else str(self.tls_cert),
            tlsKeyFilePath=None if self.tls_cert is None else str(self.tls_key or self.tls_cert),
        )


def obeys(key: str) -> bool:
    """Return whether a proxy obeys a key of broker.conf: one of TLS, of HTTP, or of the roles of callers of /lab."""
    return key in _OBEYED_TOO or (key.startswith(_OBEYED) and not key.startswith(_LEFT_OUT))


class RunningProxy:
    """A proxy that answers on its ports."""

    def __init__(self, stand_in: Broker, host: str, toxiproxy_url: str | None = None) -> None:
        urls = stand_in.listener_at(url_host(host))
        self.broker = stand_in
        self.service_url = urls.pulsar
        self.service_url_tls = urls.pulsar_ssl or None
        self.admin_url = urls.http
        self.admin_url_tls = urls.https or None
        self.toxiproxy_url = toxiproxy_url

    @property
    def brokers(self) -> list[RunningProxy]:
        """Return this proxy, which stands for all brokers."""
        return [self]

    async def wait_shut_down(self) -> None:
        """Wait for ever: nobody shuts a proxy down over REST."""
        await trio.sleep_forever()

    @property
    def lab(self) -> Lab:
        """Return the lab of the proxy."""
        return self.broker.cluster.attached(Lab)


@asynccontextmanager
async def open_proxy(
    options: ProxyOptions, capture: Path | None = None, *, keep_entry: int | None = None
) -> AsyncIterator[RunningProxy]:
    """Run a proxy until the block ends, with a capture from its first connection on.

    `keep_entry` limits the bytes of each message in it. Raise `PortInUse`, `OSError` when a port cannot be used, or
    `ConfigError` when the file cannot be written, or a certificate cannot be used.
    """
    connections = ProxiedConnections()
    serving = ServeOptions(config=options.config, lab_dir=options.lab_dir)
    with ExitStack() as stack:

        def bound(port: int | None, option: str) -> socket.socket | None:
            return None if port is None else stack.enter_context(bind(options.host, port, option))

        binary = stack.enter_context(bind(options.host, options.port, "--port"))
        tls = bound(options.tls_port, "--tls-port")
        http = stack.enter_context(bind(options.host, options.http_port, "--http-port"))
        https = bound(options.https_port, "--https-port")
        control = bound(options.toxiproxy_port, "--toxiproxy-port")
        async with open_core(serving, connections=connections) as stand_in, trio.open_nursery() as nursery:
            lab = stand_in.cluster.attached(Lab)
            forbidden = "" if options.sure or options.upstream.looks_like_a_test else FORBIDDEN.format(options.upstream)
            if capture is not None:
                try:
                    lab.captures.start(capture, keep_entry=keep_entry)
                except OSError as error:
                    raise ConfigError("--capture", str(capture), error.strerror or str(error)) from None
            lab.faults = ProxyFaults(lab.taps, forbidden)
            masks = lab.masks = ProxyMasks(stand_in.cluster, connections, forbidden)
            secure = options.upstream.secure
            proxy = Proxy(stand_in, connections, nursery, masks.mask_of, secure=secure, tls=options.tls)
            proxy.listen(options.upstream, binary, *([] if tls is None else [tls]))
            of_tls, of_https = (None if each is None else number_of(each) for each in (tls, https))
            stand_in.listening(number_of(binary), number_of(http), of_tls, of_https)
            site = ProxySite(stand_in, options.admin_url, proxy, options.tls)
            await nursery.start(serve_http, site, http)
            if https is not None:
                await nursery.start(partial(serve_http, tls=stand_in.cluster.tls), site, https)
            toxiproxy_url = await open_toxiproxy(stand_in, control, nursery, options.host, of_proxy=True)
            try:
                yield RunningProxy(stand_in, options.host, toxiproxy_url)
            finally:
                site.stop()
            with trio.move_on_after(LAST_WORDS):
                await connections.none()
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def recording(
    options: ProxyOptions, path: Path, *, keep_entry: int | None = None
) -> AsyncIterator[tuple[Capture, str]]:
    """Run a proxy that captures all frames, and yield the capture and the URL for clients. Raise as `open_proxy`."""
    async with open_proxy(options, path, keep_entry=keep_entry) as running:
        [capture] = running.lab.captures.all
        yield capture, running.service_url
