"""What the options of `pulsarium client` itself mean, and how a command runs on them."""

import base64
import binascii
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import click

if TYPE_CHECKING:
    from pulsarium.client import Authentication, Client

DEFAULT_URL = "pulsar://127.0.0.1:6650"


class Failed(click.ClickException):
    """Ends the command with 1 and one line on stderr."""

    def format_message(self) -> str:
        return " ".join(self.message.split())


@dataclass
class Session:
    """The options of one run."""

    url: str | None = None
    auth_plugin: str | None = None
    auth_params: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    tls_trust_certs_file_path: str | None = None
    tls_allow_insecure: bool = False

    def run(self, job: "Callable[[Client], Awaitable[None]]") -> None:
        """Run `job` on a client; Failed says what went wrong, UsageError what cannot be."""
        try:
            import anyio

            from pulsarium.client import PulsarError, connect
        except ImportError as error:
            raise Failed(f"{error.name} is missing: install pulsarium with its extra, `pulsarium[client]`") from None

        async def main() -> None:
            async with connect(
                self.url or DEFAULT_URL,
                authentication=self._authentication(),
                tls_trust_certs_file_path=self.tls_trust_certs_file_path,
                tls_allow_insecure_connection=self.tls_allow_insecure,
                tls_validate_hostname=False,
            ) as client:
                await job(client)

        try:
            anyio.run(main)
        except (PulsarError, ValueError) as error:
            raise Failed(f"{type(error).__name__}: {error}{_hint(type(error).__name__)}") from None
        except KeyboardInterrupt:
            raise click.Abort from None

    def _authentication(self) -> "Authentication | None":
        from pulsarium.cli.admin.credentials import basic, certificate, kind_of, token
        from pulsarium.client import AuthenticationBasic, AuthenticationTLS, AuthenticationToken

        kind, params = kind_of("token", self.token) if self.token else kind_of(self.auth_plugin, self.auth_params)
        if kind == "token":
            return AuthenticationToken(token(params))
        if kind == "basic":
            return AuthenticationBasic(*basic(params))
        return AuthenticationTLS(*certificate(params)) if kind == "tls" else None


def _hint(error: str) -> str:
    if error in ("ConnectError", "Timeout"):
        return ". Start a broker with `pulsarium serve`, or name another with --url."
    return ""


class Keys:
    """Encryption keys by URI: file:///path or data:application/x-pem-file;base64,..., one for every name."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._read()  # what is wrong with it shall show now

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
                raise click.UsageError("--encryption-key-value: this is no base64") from None
        path = unquote(urlsplit(self._uri).path) if self._uri.startswith("file:") else self._uri
        try:
            return Path(path).read_bytes()
        except OSError as error:
            raise click.UsageError(f"--encryption-key-value: {path}: {os.strerror(error.errno or 0)}") from None


def refuse(option: str, asked: object, why: str) -> None:
    """click.UsageError for an option that was given and is not there yet."""
    if asked:
        raise click.UsageError(f"{option}: {why}")


def only_bytes(option: str, schema: str | None) -> None:
    refuse(option, schema not in (None, "bytes"), f"{schema} is not there yet; contents are bytes")


def pace(rate: float) -> "Callable[[], Awaitable[None]]":
    """Waits so that it returns at most `rate` times a second; 0: at once."""
    import anyio

    start = anyio.current_time()
    count = 0

    async def next_one() -> None:
        nonlocal count
        if rate > 0:
            await anyio.sleep_until(start + count / rate)
        count += 1

    return next_one
