"""Settings of a client and all its connections."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from anyio.abc import ByteStream

from pulsarium.client.connection.authentication import Authentication
from pulsarium.client.connection.protocol import MAX_PROTOCOL_VERSION
from pulsarium.client.connection.service_url import BrokerAddress
from pulsarium.client.connection.tcp import connect_tcp
from pulsarium.client.connection.tls import Tls
from pulsarium.client.errors import InvalidConfiguration

Dial: TypeAlias = Callable[[BrokerAddress], Awaitable[ByteStream]]


async def dial_tcp(address: BrokerAddress) -> ByteStream:
    """Return a TCP connection to `address`. Raise `OSError` if none can be made."""
    return await connect_tcp(address.host, address.port)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Options of a client, described at `connect`.

    The names are those of the official Python client, or of Java's where only Java has the option.
    """

    operation_timeout: float = 30.0
    connection_timeout: float = 10.0
    max_protocol_version: int = MAX_PROTOCOL_VERSION
    authentication: Authentication | None = None
    tls_trust_certs_file_path: str | None = None
    tls_allow_insecure_connection: bool = False
    tls_validate_hostname: bool = True
    tls_certificate_file_path: str | None = None
    tls_private_key_file_path: str | None = None
    listener_name: str | None = None
    max_lookup_redirects: int = 20
    connections_per_broker: int = 1
    connection_max_idle: float = 60.0
    keep_alive_interval: float = 30.0
    starting_backoff_interval: float = 0.1
    max_backoff_interval: float = 60.0
    memory_limit: int = 0
    admin_url: str | None = None
    description: str = ""
    dial: Dial = dial_tcp

    def __post_init__(self) -> None:
        if min(self.operation_timeout, self.connection_timeout, self.starting_backoff_interval) <= 0:
            raise InvalidConfiguration("operation_timeout, connection_timeout and backoff must be positive")
        if min(self.connection_max_idle, self.keep_alive_interval, self.memory_limit) < 0:
            raise InvalidConfiguration("connection_max_idle, keep_alive_interval and memory_limit must not be negative")
        if self.max_backoff_interval < self.starting_backoff_interval:
            raise InvalidConfiguration("max_backoff_interval is less than starting_backoff_interval")
        if self.connections_per_broker < 1 or self.max_lookup_redirects < 0:
            raise InvalidConfiguration("connections_per_broker must be positive, max_lookup_redirects not negative")
        if len(self.description) > 64:
            raise InvalidConfiguration("description has more than 64 characters")
        _ = self.tls  # raises the error of a bad option now

    @cached_property
    def tls(self) -> Tls:
        """Return the TLS settings for `pulsar+ssl://` and `https://`."""
        certificate, key = self.tls_certificate_file_path, self.tls_private_key_file_path
        if certificate is None and self.authentication is not None and self.authentication.certificate is not None:
            certificate, key = self.authentication.certificate
        return Tls(
            trust_certs_file_path=self.tls_trust_certs_file_path,
            allow_insecure_connection=self.tls_allow_insecure_connection,
            validate_hostname=self.tls_validate_hostname,
            certificate_file_path=certificate,
            private_key_file_path=key,
        )


@dataclass(frozen=True)
class ClientOptions(Settings):
    """Options of `connect` together with the service URL."""

    service_url: str
