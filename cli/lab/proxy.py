"""`pulsarium proxy`: the lab in front of any Pulsar."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pulsarium.cli.completing import keys
from pulsarium.cli.grouped import Decorator, GroupedCommand, options_of, together
from pulsarium.cli.refusal import RequestRefused
from pulsarium.cli.serve import (
    DIRECTORY,
    FILE,
    KEYS,
    PORT,
    check_security,
    check_toxiproxy,
    named,
    network,
    output,
    read_keys,
    tls,
)

if TYPE_CHECKING:
    from pulsarium.broker.config import ServeOptions
    from pulsarium.broker.proxying import ProxyOptions
    from pulsarium.cli.run import RunningBrokers

towards = options_of("TLS towards brokers")
lab = options_of("Callers of /lab")

proxy_options = together(
    network("--admin-url", metavar="URL", help="Forward HTTP to this URL of the broker, but not /lab."),
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
    tls("--tls-port", type=PORT, metavar="N", help="Listen for clients over TLS, too, on this port; 0: a free one."),
    tls("--https-port", type=PORT, metavar="N", help="Listen for HTTPS, too, on this port; 0: a free one."),
    tls("--tls-cert", type=FILE, metavar="FILE", help="The proxy's certificate, in PEM."),
    tls("--tls-key", type=FILE, metavar="FILE", help="Key of --tls-cert, if it is in another file."),
    towards(
        "--tls-trust-cert-path",
        "--tlsTrustCertsFilePath",
        "trust",
        type=FILE,
        metavar="FILE",
        help="Trust the authorities in this PEM file.  [default: those of the machine, or of SSL_CERT_FILE]",
    ),
    towards("--tls-allow-insecure", "insecure", is_flag=True, help="Trust any certificate."),
    towards("--client-cert", type=FILE, metavar="FILE", help="Show this certificate (PEM)."),
    towards("--client-key", type=FILE, metavar="FILE", help="Key of --client-cert, if it is in another file."),
    lab("--config", type=FILE, metavar="FILE", help="Ask them for a role, as this broker.conf says."),
    lab(
        "--set",
        "overrides",
        multiple=True,
        metavar="KEY=VALUE",
        shell_complete=keys,
        help="Set one key of broker.conf, such as authenticationEnabled. May be repeated.",
    ),
)
"""The options of a proxy. `proxy_of` reads them."""


def in_front_of(more: Callable[[], str] = lambda: "") -> Decorator:
    """Return the options of a command that may run a proxy in the place of its broker. `more` ends a help text."""

    def about() -> str:
        return f"Run a proxy in front of the broker at URL, and no broker. See pulsarium proxy. {more()}".rstrip()

    return together(
        network("--proxy", metavar="URL", late_help=about),
        network("--proxy-admin-url", metavar="URL", help="Forward HTTP to this URL of the broker, with --proxy."),
        network(
            "--yes-not-production", "sure", is_flag=True, help="Allow faults outside of private networks, with --proxy."
        ),
    )


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
    Stand in front of a cluster with TLS, whose authority is in ca.pem, and let clients use TLS or not:
      pulsarium proxy pulsar+ssl://staging:6651 --admin-url https://staging:8443 --tls-trust-cert-path ca.pem \\
        --port 6650 --tls-port 6651 --http-port 8080 --https-port 8443 --tls-cert proxy.pem --tls-key proxy.key

    When an answer names a broker, the client receives a URL of the proxy instead. So clients stay on the proxy, and
    each broker of the cluster has a port there. URL may be pulsar:// or pulsar+ssl://.
    """
    run_proxy(proxy_of(url, lab_dir=lab_dir, **given), ready_file, capture)


def proxy_of(
    url: str,
    *,
    admin_url: str | None = None,
    tls_port: int | None = None,
    https_port: int | None = None,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    trust: Path | None = None,
    client_cert: Path | None = None,
    client_key: Path | None = None,
    insecure: bool = False,
    allow_host: tuple[str, ...] = (),
    toxiproxy_port: int | None = None,
    sure: bool = False,
    config: Path | None = None,
    overrides: Sequence[str] = (),
    **others: Any,
) -> ProxyOptions:
    """Return the options of a proxy. Raise `RequestRefused` for a URL or a file that cannot be used."""
    from pulsarium.broker.config import PIP
    from pulsarium.broker.lab.proxy.upstream import Upstream, context_to_brokers
    from pulsarium.broker.proxying import FORBIDDEN, ProxyOptions, obeys

    if admin_url is not None and not admin_url.startswith(("http://", "https://")):
        raise RequestRefused(f"--admin-url {admin_url}: http://HOST:PORT or https://HOST:PORT is wanted")
    for option, given in (("--tls-key", tls_key), ("--tls-port", tls_port), ("--https-port", https_port)):
        if given is not None and not tls_cert:
            raise RequestRefused(f"{option}: name the certificate, too: --tls-cert FILE")
    if tls_cert is not None and tls_port is None and https_port is None:
        raise RequestRefused("--tls-cert has no effect without --tls-port N or --https-port N")
    if client_key is not None and client_cert is None:
        raise RequestRefused("--client-key: name the certificate, too: --client-cert FILE")
    try:
        upstream = Upstream.of(url)
    except ValueError as error:
        raise RequestRefused(str(error)) from None
    try:
        to_brokers = context_to_brokers(trust, client_cert, client_key, insecure=insecure)
    except OSError as error:  # ssl.SSLError is one
        raise RequestRefused(f"a certificate or a key cannot be used: {error}; pass files in PEM") from None
    if toxiproxy_port is not None and not (sure or upstream.looks_like_a_test):
        raise RequestRefused(f"--toxiproxy-port: {FORBIDDEN.format(upstream)}")
    options = ProxyOptions(
        upstream=upstream,
        admin_url=admin_url,
        tls_port=tls_port,
        https_port=https_port,
        tls_cert=tls_cert,
        tls_key=tls_key,
        tls=to_brokers,
        allowed_hosts=frozenset(allow_host),
        toxiproxy_port=toxiproxy_port,
        sure=sure,
        keys=read_keys(config, overrides, PIP),
        **others,
    )
    own = {key: named(option) for option, key in KEYS.items() if option != "tls_ca"}
    for key, place in options.keys.places.items():
        if place == "--set" and (key in own or not obeys(key)):
            remedy = f"pass {own[key]}" if key in own else "set it on its brokers"
            raise RequestRefused(f"--set {key} has no effect on a proxy: {remedy}")
    check_security(options.config, {**options.keys.places, **own})
    check_toxiproxy(toxiproxy_port, options.config)
    return options


def refuse_options_of_a_broker(names: Iterable[str]) -> None:
    """Raise `RequestRefused` when one of these options stands on the command line, because no broker runs."""
    _refuse(names, "{} --proxy runs no broker: leave out {}")


def refuse_options_of_a_proxy(*more: str) -> None:
    """Raise `RequestRefused` when an option of `in_front_of`, or one of `more`, stands there without --proxy."""
    _refuse(("proxy_admin_url", "sure", *more), "{}: {} is for a proxy: pass --proxy URL, too")


def _refuse(names: Iterable[str], why: str) -> None:
    given = click.get_current_context()
    options = {each.name: each.opts[0] for each in given.command.params}
    for name in names:
        if given.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise RequestRefused(why.format(given.info_name, options[name]))


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
    from pulsarium.cli.logs import configure
    from pulsarium.cli.run import note_config, note_openness, print_ready, raise_file_limit, run_job, serve_until_signal

    configure("info", "text")
    note_config(options.keys)
    note_openness(options.config, "everybody who reaches this proxy may use its lab")
    warn_of_production(options)
    raise_file_limit()
    serving = served(options, ready_file)
    run_job(serving, serve_until_signal, serving, opener(options, capture), print_ready)


def served(options: ProxyOptions, ready_file: Path | None = None) -> ServeOptions:
    """Return the options that a proxy shares with a broker."""
    from pulsarium.broker.config import ServeOptions

    return ServeOptions(config=options.config, ready_file=ready_file)


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
