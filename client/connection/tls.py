"""TLS: trusted authorities, and the client's certificate."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

import anyio
from anyio.abc import ByteStream
from anyio.streams.tls import TLSStream

from pulsarium.client.connection import wrong_port
from pulsarium.client.connection.service_url import BrokerAddress
from pulsarium.client.errors import InvalidConfiguration


@dataclass(frozen=True, kw_only=True)
class Tls:
    """TLS settings. Paths are of PEM files, which are read for each connection."""

    trust_certs_file_path: str | None = None
    """The trusted authorities. With None, the system's are trusted."""
    allow_insecure_connection: bool = False
    """Trust any certificate."""
    validate_hostname: bool = True
    """Require a certificate of the host."""
    certificate_file_path: str | None = None
    """The client's certificate, for brokers that require one."""
    private_key_file_path: str | None = None

    def __post_init__(self) -> None:
        if (self.certificate_file_path is None) != (self.private_key_file_path is None):
            raise InvalidConfiguration("a TLS certificate needs its private key, and a key its certificate: pass both")

    def context(self) -> ssl.SSLContext:
        """Return a new TLS context. Raise `InvalidConfiguration` if a file cannot be read."""
        try:
            context = ssl.create_default_context(cafile=self.trust_certs_file_path)
            # Python 3.13 is stricter by default than Pulsar's clients.
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            if self.certificate_file_path is not None:
                # Without this function OpenSSL would ask for a password on the terminal.
                context.load_cert_chain(self.certificate_file_path, self.private_key_file_path, password=_no_password)
        except OSError as error:
            names = (self.trust_certs_file_path, self.certificate_file_path, self.private_key_file_path)
            raise InvalidConfiguration(f"TLS with {', '.join(name for name in names if name)}: {error}") from error
        if self.allow_insecure_connection:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif not self.validate_hostname:
            context.check_hostname = False
        return context


async def wrap(stream: ByteStream, address: BrokerAddress, tls: Tls) -> ByteStream:
    """Return the stream with TLS, after the handshake.

    Raise `AuthenticationError` if a certificate is not trusted, `ConnectError` if the stream ends, and `WrongProtocol`
    if the other side does not speak TLS.
    """
    try:
        return await TLSStream.wrap(
            stream, server_side=False, hostname=address.host, ssl_context=tls.context(), standard_compatible=False
        )
    except BaseException as error:
        await anyio.aclose_forcefully(stream)
        if isinstance(error, (ssl.SSLError, anyio.BrokenResourceError, anyio.EndOfStream)):
            raise wrong_port.in_handshake(str(address), address.other.url, error) from error
        raise


def _no_password() -> bytes:
    raise InvalidConfiguration("the private key for TLS has a password: use a key without one")
