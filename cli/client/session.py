"""Run the commands of `pulsarium client` with the options of the group."""

from __future__ import annotations

import base64
import binascii
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import click

from pulsarium.cli.admin.asked import says_who_calls
from pulsarium.cli.admin.caller import Caller
from pulsarium.cli.grouped import together
from pulsarium.cli.interrupts import closing_at_ctrl_c, leaving_in_time
from pulsarium.cli.patience import attempt
from pulsarium.proto.errors import look_for
from pulsarium.rest.exchange import places

if TYPE_CHECKING:
    from pulsarium.client import Authentication, Client

DEFAULT_URL = "pulsar://127.0.0.1:6650"

HTTP_PORTS: Final[Mapping[str, int]] = MappingProxyType({"http": 80, "https": 443})
OPERATION_TIMEOUT: Final = 30.0  # the client's own
KNOCK: Final = 3.0  # seconds for a connection

# Options of this command for the arguments that the client's errors name
_OPTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {"tls_trust_certs_file_path": "--tlsTrustCertsFilePath", "tls_validate_hostname=False": "--tls-allow-insecure"}
)


asks_which_url = together(
    click.option(
        "--url",
        metavar="URL",
        envvar=["PULSARIUM_SERVICE_URL", "PULSAR_SERVICE_URL"],
        show_envvar=True,
        help=f"Connect to this broker.  [default: {DEFAULT_URL}]",
    ),
    says_who_calls,
)


class ClientFailure(click.ClickException):
    """End the command with exit code 1 and one line on stderr."""

    def format_message(self) -> str:
        return " ".join(self.message.split())


@dataclass
class ClientRun(Caller):
    """The options of one run of `pulsarium client`."""

    url: str | None = None
    listener_name: str | None = None

    def run(self, job: Callable[[Client], Awaitable[None]]) -> None:
        """Run `job` with a connected client.

        Raise `ClientFailure` when the run fails, click.UsageError for wrong options.
        """
        look_for("pulsarium.client", "client", "anyio")
        import anyio

        from pulsarium.client import PulsarError, connect
        from pulsarium.client.errors import ConnectError

        async def main(is_ours: bool) -> None:
            with leaving_in_time() if is_ours else nullcontext():
                await talk()

        url = self.url or self.settings.get("brokerServiceUrl") or DEFAULT_URL
        proof = self._authentication()
        opener = partial(connect, operation_timeout=self.wait) if self.wait > OPERATION_TIMEOUT else connect

        async def talk() -> None:
            async with opener(
                url,
                authentication=proof,
                listener_name=self.listener_name,
                tls_trust_certs_file_path=self.trusted,
                tls_allow_insecure_connection=self.trusts_any,
                tls_validate_hostname=self.verifies_hostname,
            ) as client:
                await job(client)

        try:
            attempt(lambda: knock(url), self.wait, again=ConnectError)
            with closing_at_ctrl_c() as is_ours, _said_while_waiting():
                anyio.run(main, is_ours)
        except (PulsarError, ValueError) as error:
            raise ClientFailure(f"{type(error).__name__}: {with_remedy(error)}{_more(error)}") from None

    def _authentication(self) -> Authentication | None:
        from pulsarium.cli.admin.caller import basic, certificate, token
        from pulsarium.client import AuthenticationBasic, AuthenticationTLS, AuthenticationToken

        kind, params = self.proof
        if kind == "token":
            return AuthenticationToken(token(params))
        if kind == "basic":
            return AuthenticationBasic(*basic(params))
        return AuthenticationTLS(*certificate(params)) if kind == "tls" else None


def knock(url: str) -> None:
    """Raise `ConnectError` when each host of a service URL refuses connections or is unknown.

    The client itself tries again for the whole operation timeout. Any other difficulty is left to the client.
    """
    from pulsarium.client.connection.service_url import BrokerAddress, is_http, parse
    from pulsarium.client.connection.wrong_port import unreachable

    if is_http(url):
        parts = [urlsplit(each) for each in places(url)]
        found = [BrokerAddress(each.hostname or "", each.port or HTTP_PORTS[each.scheme]) for each in parts]
    else:
        found = parse(url)
    for address in found:
        try:
            with socket.create_connection((address.host, address.port), timeout=KNOCK):
                return
        except (ConnectionRefusedError, socket.gaierror) as error:
            if address == found[-1]:
                raise unreachable(str(address), error) from None
        except (OSError, UnicodeError):
            return


class _OnStderr(logging.Handler):
    """Print log records of the client to stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(f"pulsarium: {with_remedy(record.getMessage())}", err=True)


@contextmanager
def _said_while_waiting() -> Iterator[None]:
    log, handler = logging.getLogger("pulsarium.client"), _OnStderr(logging.WARNING)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def with_remedy(error: Exception | str) -> str:
    """Return an error of the client with this command's option names, and with advice when no broker answers."""
    said = str(error)
    for name, option in _OPTIONS.items():
        said = said.replace(name, option)
    if "connection refused" in said:
        return f"{said}; is a broker running? Start one with `pulsarium serve`, or name another with --url"
    nobody = ("no such host", "no answer", "no connection", "found no broker")
    if type(error).__name__ == "Timeout" or any(words in said for words in nobody):
        return f"{said}; --url names the broker"
    return said


def _more(error: Exception) -> str:
    """Return where more is said of an error of the broker, whose own words name no remedy."""
    from pulsarium.client.errors import BY_CODE, UnknownError

    kind = type(error)
    known = kind in BY_CODE.values() and kind is not UnknownError  # of that one, the broker's words are all
    return f"; `pulsarium explain {getattr(error, 'code', '')}` says more" if known else ""


class Keys:
    """Encryption keys by URI: file:///path or data:application/x-pem-file;base64,..., one for every name."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._read()  # report a wrong key before the command starts

    def get_public_key(self, name: str, metadata: dict[str, str]) -> bytes:
        return self._read()

    def get_private_key(self, name: str, metadata: dict[str, str]) -> bytes:
        return self._read()

    def _read(self) -> bytes:
        if self._uri.startswith("data:"):
            head, _, data = self._uri.partition(",")
            try:
                return base64.b64decode(data, validate=True) if head.endswith(";base64") else unquote(data).encode()
            except binascii.Error:
                raise click.UsageError("--encryption-key-value: the data is not base64") from None
        path = unquote(urlsplit(self._uri).path) if self._uri.startswith("file:") else self._uri
        try:
            return Path(path).read_bytes()
        except OSError as error:
            raise click.UsageError(f"--encryption-key-value: {path}: {os.strerror(error.errno or 0)}") from None


def refuse(option: str, asked: object, why: str) -> None:
    """Raise click.UsageError when an option without support was given."""
    if asked:
        raise click.UsageError(f"{option}: {why}")


def pace(rate: float) -> Callable[[], Awaitable[None]]:
    """Return an async function that delays its caller to `rate` calls a second; 0 is no limit."""
    import anyio

    start = anyio.current_time()
    count = 0

    async def next_one() -> None:
        nonlocal count
        if rate > 0:
            await anyio.sleep_until(start + count / rate)
        count += 1

    return next_one
