"""TLS: whom the client believes, and the certificate that it shows."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

import anyio
from anyio.abc import ByteStream
from anyio.streams.tls import TLSStream

from pulsarium.client.connection import wrong_port
from pulsarium.client.connection.service_url import Address
from pulsarium.client.errors import InvalidConfiguration


@dataclass(frozen=True, kw_only=True)
class Tls:
    """What holds for connections to `pulsar+ssl://`; paths are of PEM files, read with each connection."""

    trust_certs_file_path: str | None = None
    """The authorities whose certificates are believed; None: the system's."""
    allow_insecure_connection: bool = False
    """Believe any certificate."""
    validate_hostname: bool = True
    """The certificate must be the host's."""
    certificate_file_path: str | None = None
    """The client's own certificate, for brokers that want one."""
    private_key_file_path: str | None = None

    def __post_init__(self) -> None:
        if (self.certificate_file_path is None) != (self.private_key_file_path is None):
            raise InvalidConfiguration("a TLS certificate and its private key go together")

    def context(self) -> ssl.SSLContext:
        """For one connection; InvalidConfiguration if a file cannot be read."""
        try:
            context = ssl.create_default_context(cafile=self.trust_certs_file_path)
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # Python 3.13; Pulsar's clients take such certificates
            if self.certificate_file_path is not None:
                # a password would be asked for on the terminal
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


async def wrap(stream: ByteStream, address: Address, tls: Tls) -> ByteStream:
    """The stream with TLS on it, after the handshake.

    AuthenticationError if the sides do not believe each other, ConnectError if the stream ends, WrongProtocol if the
    other side speaks no TLS.
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
    raise InvalidConfiguration("the private key for TLS has a password, which there is nobody to ask for")
