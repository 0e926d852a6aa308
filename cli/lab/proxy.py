"""`pulsarium proxy`: the lab in front of any Pulsar."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarium.cli.grouped import GroupedCommand
from pulsarium.cli.refusal import RequestRefused
from pulsarium.cli.serve import DIRECTORY, FILE, PORT, network, output

if TYPE_CHECKING:
    from pulsarium.broker.config import ServeOptions
    from pulsarium.broker.proxying import ProxyOptions
    from pulsarium.cli.run import RunningBrokers

_OPTIONS: Final = (
    network("--admin-url", metavar="URL", help="Forward HTTP to this http://HOST:PORT of the broker, but not /lab."),
    network("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Listen on this address."),
    network(
        "--port", type=PORT, default=0, metavar="N", help="Listen for clients on this port.  [default: a free one]"
    ),
    network(
        "--http-port", type=PORT, default=0, metavar="N", help="Listen for HTTP on this port.  [default: a free one]"
    ),
    network(
        "--toxiproxy-port",
        type=PORT,
        metavar="N",
        help="Answer Toxiproxy's control API on this port; 0: a free one.  [default: no such API]",
    ),
    network("--tls-cert", type=FILE, metavar="FILE", help="Serve clients over TLS only, with this certificate (PEM)."),
    network("--tls-key", type=FILE, metavar="FILE", help="Key of --tls-cert, if it is in another file."),
    network("--trust-certs", type=FILE, metavar="FILE", help="Trust brokers with certificates of this authority."),
    network("--client-cert", type=FILE, metavar="FILE", help="Show this certificate to brokers (PEM)."),
    network("--client-key", type=FILE, metavar="FILE", help="Key of --client-cert, if it is in another file."),
    network("--insecure", is_flag=True, help="Trust the certificate of any broker."),
    network(
        "--allow-host",
        multiple=True,
        metavar="HOST",
        help="Answer HTTP for this name of the proxy, and for pages of this site. Repeat the option for several.",
    ),
    network(
        "--yes-not-production",
        "sure",
        is_flag=True,
        help="Allow faults and masks in front of a broker that is not in a private network.",
    ),
)


def proxy_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a proxy to a command. `options_of` reads them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command(cls=GroupedCommand, short_help="Put the lab in front of any Pulsar cluster.")
@click.argument("url", metavar="URL")
@proxy_options
@output("--capture", type=FILE, metavar="FILE", help="Capture every frame in FILE, from the first connection on.")
@output("--lab-dir", type=DIRECTORY, metavar="DIR", help="Let callers of /lab write captures below DIR.")
@output("--ready-file", type=FILE, metavar="FILE", help="Write the URLs to FILE as JSON once the proxy serves.")
def proxy(url: str, capture: Path | None, lab_dir: Path | None, ready_file: Path | None, **given: Any) -> None:
    """Put the lab in front of any Pulsar cluster: faults, masks, captures and the linter. It runs until Ctrl-C.

    \b
    Stand in front of a cluster in staging, and point clients at the printed URLs:
      pulsarium proxy pulsar://staging:6650 --admin-url http://staging:8080 --port 6651 --http-port 8081
    Lose the receipt of the next message, with the same commands as for a broker of Pulsarium:
      pulsarium fault add SEND drop --after-work --topic orders --admin-url http://localhost:8081

    When an answer names a broker, the client receives a URL of the proxy instead. So clients stay on the proxy, and
    each broker of the cluster has a port there. URL may be pulsar:// or pulsar+ssl://.
    """
    run_proxy(options_of(url, lab_dir=lab_dir, **given), ready_file, capture)


def options_of(
    url: str,
    *,
    admin_url: str | None = None,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    trust_certs: Path | None = None,
    client_cert: Path | None = None,
    client_key: Path | None = None,
    insecure: bool = False,
    allow_host: tuple[str, ...] = (),
    toxiproxy_port: int | None = None,
    sure: bool = False,
    **others: Any,
) -> ProxyOptions:
    """Return the options of a proxy. Raise `RequestRefused` for a URL or a file that cannot be used."""
    from pulsarium.broker.lab.proxy.upstream import ProxyTls, Upstream, context_to_brokers, context_to_clients
    from pulsarium.broker.proxying import FORBIDDEN, ProxyOptions

    if admin_url is not None and not admin_url.startswith(("http://", "https://")):
        raise RequestRefused(f"--admin-url {admin_url}: http://HOST:PORT or https://HOST:PORT is wanted")
    if tls_key and not tls_cert:
        raise RequestRefused("--tls-key: name the certificate, too: --tls-cert FILE")
    try:
        upstream = Upstream.of(url)
    except ValueError as error:
        raise RequestRefused(str(error)) from None
    try:
        to_brokers = (
            context_to_brokers(trust_certs, client_cert, client_key, insecure=insecure) if upstream.secure else None
        )
        to_clients = None if tls_cert is None else context_to_clients(tls_cert, tls_key)
    except OSError as error:  # ssl.SSLError is one
        raise RequestRefused(f"a certificate or a key cannot be used: {error}; pass files in PEM") from None
    tls = ProxyTls(to_brokers, to_clients)
    if toxiproxy_port is not None and not (sure or upstream.looks_like_a_test):
        raise RequestRefused(f"--toxiproxy-port: {FORBIDDEN.format(upstream)}")
    return ProxyOptions(
        upstream=upstream,
        admin_url=admin_url,
        tls=tls,
        insecure=insecure,
        allowed_hosts=frozenset(allow_host),
        toxiproxy_port=toxiproxy_port,
        sure=sure,
        **others,
    )


def warn_of_production(options: ProxyOptions) -> None:
    """Warn when the broker does not look like one of a test cluster."""
    if options.upstream.looks_like_a_test:
        return
    from pulsarium.broker.proxying import MAY_BE_PRODUCTION

    allowed = "faults and masks are allowed" if options.sure else "faults and masks are refused"
    click.echo(
        f"warning: {MAY_BE_PRODUCTION.format(options.upstream)}; faults lose, repeat, delay and corrupt messages of "
        f"all clients of this proxy; {allowed}",
        err=True,
    )


def run_proxy(options: ProxyOptions, ready_file: Path | None = None, capture: Path | None = None) -> None:
    """Run a proxy until SIGINT or SIGTERM. Raise `CommandRefusal` when a port or the file cannot be used."""
    import trio

    from pulsarium.cli.logs import configure
    from pulsarium.cli.run import print_ready, raise_file_limit, refusal_of, serve_until_signal

    configure("info", "text")
    warn_of_production(options)
    raise_file_limit()
    serving = served(options, ready_file)
    try:
        trio.run(serve_until_signal, serving, opener(options, capture), print_ready)
    except BaseException as error:
        refusal = refusal_of(error, serving)
        if refusal is None:
            raise
        raise refusal from None


def served(options: ProxyOptions, ready_file: Path | None = None) -> ServeOptions:
    """Return the options that a proxy shares with a broker."""
    from pulsarium.broker.config import Config, ServeOptions

    config = Config(bindAddress=options.host, brokerServicePort=options.port, webServicePort=options.http_port)
    return ServeOptions(config=config, ready_file=ready_file)


def opener(
    options: ProxyOptions, capture: Path | None = None
) -> Callable[[ServeOptions], AbstractAsyncContextManager[RunningBrokers]]:
    """Return a function that opens the proxy in the place of a broker."""
    return partial(_opened, options, capture)


def _opened(
    options: ProxyOptions, capture: Path | None, serving: ServeOptions
) -> AbstractAsyncContextManager[RunningBrokers]:
    from pulsarium.broker.proxying import open_proxy

    return open_proxy(options, capture)
