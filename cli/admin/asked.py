"""Options for the broker's URL, the client's role and the trusted certificates, and the Session that they make."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Final

import click

from pulsarium.cli.admin.api import Api, check_url, done
from pulsarium.cli.admin.caller import Caller, credentials
from pulsarium.cli.admin.errors import ServerError, Unreachable
from pulsarium.cli.durations import Duration
from pulsarium.cli.grouped import options_of, together
from pulsarium.cli.patience import attempt
from pulsarium.rest.exchange import RestRequest, places

DEFAULT_URL = "http://127.0.0.1:8080"
PROBE: Final = 5  # seconds for the answer to a question of --wait
READ_ONLY: Final = "PULSARIUM_READ_ONLY"
TOKEN: Final = "PULSARIUM_TOKEN"


@dataclass
class AdminRun(Caller):
    """The options of one run. The first call to the broker comes from the command."""

    admin_url: str | None = None
    request_timeout: int = 300
    read_only: bool = False

    @property
    def named_url(self) -> str | None:
        """Return the URL that an option, a variable or the client.conf gives, or None."""
        return self.admin_url or self.settings.get("webServiceUrl") or None

    @property
    def url(self) -> str:
        """Return the URL of the broker, which may name several hosts."""
        return self.named_url or DEFAULT_URL

    @cached_property
    def api(self) -> Api:
        url = self.url
        urls = places(url)
        for each in urls:
            check_url(each)
        given = credentials(*self.proof)
        tls = self.tls(given.certificate) if url.startswith("https:") else None
        if self.wait:
            probe = Api(urls, given.headers, tls, min(self.request_timeout, PROBE), read_only=True)
            attempt(lambda: _ask(probe), self.wait, again=Unreachable)
        return Api(urls, given.headers, tls, self.request_timeout, read_only=self.read_only)


def _ask(api: Api) -> None:
    """Ask a question that needs no permission. A refusal is an answer too."""
    with suppress(ServerError):
        done(api.send(RestRequest("GET", "brokers/ready")))


_broker = options_of("Broker")

# The fields of a Caller, for every protocol.
says_who_calls = together(
    _broker(
        "--token",
        metavar="TOKEN",
        envvar=TOKEN,
        show_envvar=True,
        help="Authenticate with this token, or with the token in file:///...",
    ),
    _broker(
        "--auth-plugin", metavar="NAME", help="Authenticate with token, basic or tls, or with the Java class of one."
    ),
    _broker("--auth-params", metavar="PARAMS", help="Parameters of the plugin: token:..., file:///..., or JSON."),
    _broker(
        "--tls-trust-cert-path",
        "--tlsTrustCertsFilePath",
        "tls_trust_cert_path",
        metavar="FILE",
        help="Trust the authorities in this PEM file.",
    ),
    _broker("--tls-allow-insecure", is_flag=True, default=None, help="Trust any certificate."),
    _broker(
        "--tls-enable-hostname-verification",
        is_flag=True,
        default=None,
        help="Check the host name in the certificate too.",
    ),
    _broker(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        envvar="PULSAR_CLIENT_CONF",
        show_envvar=True,
        help="Read settings that no option gives from this client.conf.",
    ),
    _broker(
        "--wait",
        type=Duration(),
        default=0.0,
        metavar="DURATION",
        help="Wait this long for a broker that does not answer yet, such as 30s.  [default: give up at once]",
    ),
)

_OPTIONS = together(
    _broker(
        "--admin-url",
        metavar="URL",
        envvar=["PULSARIUM_ADMIN_URL", "PULSAR_ADMIN_URL"],
        show_envvar=True,
        help=f"Send requests to the broker at this URL.  [default: {DEFAULT_URL}]",
    ),
    says_who_calls,
    _broker(
        "--request-timeout",
        type=click.IntRange(min=1),
        metavar="SECONDS",
        default=300,
        show_default=True,
        help="Wait this many seconds for an answer.",
    ),
    _broker(
        "--read-only",
        is_flag=True,
        envvar=READ_ONLY,
        show_envvar=True,
        help="Refuse each request that may change the broker.",
    ),
)


def asks_which_broker(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the broker to `command`, which gets a Session as its first argument."""

    @_OPTIONS
    @wraps(command)
    def run(**given: Any) -> Any:
        session = AdminRun(**{field.name: given.pop(field.name) for field in fields(AdminRun)})
        return command(session, **given)

    return run
