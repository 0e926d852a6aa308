"""Options that say which broker a command talks to, who calls, and whom to trust, and the Session they make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property, wraps
from pathlib import Path
from typing import Any

import click

from pulsarium.cli.admin.api import Api, check_url
from pulsarium.cli.admin.caller import Caller, credentials
from pulsarium.cli.grouped import options_of, together
from pulsarium.rest.exchange import places

DEFAULT_URL = "http://127.0.0.1:8080"


@dataclass
class Session(Caller):
    """The options of one run; the broker is first called by the command."""

    admin_url: str | None = None
    request_timeout: int = 300

    @cached_property
    def api(self) -> Api:
        url = self.admin_url or self.settings.get("webServiceUrl") or DEFAULT_URL
        urls = places(url)
        for each in urls:
            check_url(each)
        given = credentials(*self.proof)
        tls = self.tls(given.certificate) if url.startswith("https:") else None
        return Api(urls, given.headers, tls, self.request_timeout)


_broker = options_of("Broker")

# For every connection, of whichever protocol: the fields of a Caller.
says_who_calls = together(
    _broker(
        "--token",
        metavar="TOKEN",
        envvar="PULSARIUM_TOKEN",
        show_envvar=True,
        help="A token of who calls, or file:///... with one.",
    ),
    _broker("--auth-plugin", metavar="NAME", help="token, basic or tls, or the Java class of one."),
    _broker("--auth-params", metavar="PARAMS", help="For it: token:..., file:///..., or JSON with its fields."),
    _broker(
        "--tls-trust-cert-path",
        "--tlsTrustCertsFilePath",
        "tls_trust_cert_path",
        metavar="FILE",
        help="Certificates of authorities to trust, in PEM.",
    ),
    _broker("--tls-allow-insecure", is_flag=True, default=None, help="Trust any certificate."),
    _broker(
        "--tls-enable-hostname-verification", is_flag=True, default=None, help="Look at the name in a certificate too."
    ),
    _broker(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        envvar="PULSAR_CLIENT_CONF",
        show_envvar=True,
        help="A client.conf, for what the options above do not say.",
    ),
)

_OPTIONS = together(
    _broker(
        "--admin-url",
        metavar="URL",
        envvar=["PULSARIUM_ADMIN_URL", "PULSAR_ADMIN_URL"],
        show_envvar=True,
        help=f"Where the broker answers HTTP.  [default: {DEFAULT_URL}]",
    ),
    says_who_calls,
    _broker(
        "--request-timeout",
        type=click.IntRange(min=1),
        metavar="SECONDS",
        default=300,
        show_default=True,
        help="How long to wait for an answer.",
    ),
)


def asks_which_broker(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add these options; the command is given a Session first."""

    @_OPTIONS
    @wraps(command)
    def run(**given: Any) -> Any:
        session = Session(**{field.name: given.pop(field.name) for field in fields(Session)})
        return command(session, **given)

    return run
