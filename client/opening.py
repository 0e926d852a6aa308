"""Connect to the brokers of a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio

from pulsarium.client.client import Client
from pulsarium.client.connection.authentication import Authentication
from pulsarium.client.connection.brokers import Brokers
from pulsarium.client.connection.protocol import MAX_PROTOCOL_VERSION
from pulsarium.client.connection.settings import ClientOptions, Dial, Settings, dial_tcp, given
from pulsarium.client.core import Core


def connect(
    service_url: str,
    *,
    operation_timeout: float = 30.0,
    connection_timeout: float = 10.0,
    max_protocol_version: int = MAX_PROTOCOL_VERSION,
    authentication: Authentication | None = None,
    tls_trust_certs_file_path: str | None = None,
    tls_allow_insecure_connection: bool = False,
    tls_validate_hostname: bool = True,
    tls_certificate_file_path: str | None = None,
    tls_private_key_file_path: str | None = None,
    listener_name: str | None = None,
    max_lookup_redirects: int = 20,
    connections_per_broker: int = 1,
    connection_max_idle: float = 60.0,
    keep_alive_interval: float = 30.0,
    starting_backoff_interval: float = 0.1,
    max_backoff_interval: float = 60.0,
    memory_limit: int = 0,
    admin_url: str | None = None,
    description: str = "",
    dial: Dial = dial_tcp,
) -> AbstractAsyncContextManager[Client]:
    """Return a client of the brokers at a service URL, under trio or asyncio, until the block is left.

    service_url: `pulsar://host:6650`, with TLS `pulsar+ssl://host:6651`; `http://host:8080` or `https://` to look
        topics up over HTTP. Several hosts with commas between.
    operation_timeout: How long the broker may take for an answer, and the first opening of anything altogether.
    connection_timeout: Until a connection has to be there.
    max_protocol_version: The highest version of the protocol to offer.
    authentication: AuthenticationToken, AuthenticationBasic or AuthenticationTLS.
    tls_trust_certs_file_path: PEM file of the authorities to believe; None: the system's.
    tls_allow_insecure_connection: Believe any certificate.
    tls_validate_hostname: The certificate must be the host's: on, unlike in the official client.
    tls_certificate_file_path: PEM file of the client's own certificate, which AuthenticationTLS names as well.
    tls_private_key_file_path: PEM file of its private key.
    listener_name: Which of a broker's advertisedListeners to connect to (PIP-61).
    max_lookup_redirects: How many brokers may name another one, before a lookup ends with ConnectError.
    connections_per_broker: Producers and consumers share so many connections to each broker.
    connection_max_idle: A connection that nothing used for so long is closed, at the next `keep_alive_interval`; 0:
        none.
    keep_alive_interval: Between PINGs, and within which something has to come from the broker; 0: no PINGs.
    starting_backoff_interval: Until the first try to open something again; doubled with each.
    max_backoff_interval: The longest time between two tries.
    memory_limit: Bytes that messages without a receipt may take, of all producers together (PIP-74); 0: no limit.
    admin_url: Of the brokers' REST API, for what only that can: `http://host:8080`.
    description: Shown in the broker's stats behind the client's version; at most 64 characters.
    dial: Makes the stream to an address: another one may lead through SOCKS, say.

    Durations are seconds. Connections are made when something is opened. InvalidUrl for a URL that cannot be read,
    InvalidConfiguration for options that make no sense, and files that cannot be read.
    """
    return open_client(service_url, ClientOptions(**given(locals())))


@asynccontextmanager
async def open_client(service_url: str, settings: Settings) -> AsyncIterator[Client]:
    """`connect`, with its options made."""
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        try:
            client = Client(Core(Brokers(service_url, tasks, settings)))
            try:
                yield client
            finally:
                with anyio.CancelScope(shield=True):
                    await client.aclose()
        except Exception as error:  # the block's own, not to be wrapped into the task group's
            failure = error
        finally:
            tasks.cancel_scope.cancel()
    if failure is not None:
        try:
            raise failure
        finally:
            del failure  # it holds this frame
