"""Connect to the brokers of a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Final, NoReturn

import anyio

from pulsarium.client.client import Client
from pulsarium.client.connection.authentication import Authentication
from pulsarium.client.connection.brokers import Brokers
from pulsarium.client.connection.protocol import MAX_PROTOCOL_VERSION
from pulsarium.client.connection.settings import ClientOptions, Dial, Settings, dial_tcp
from pulsarium.client.core import Core

WRITE: Final = "connect(...) opens a client in a block: write `async with connect(...) as client:`"


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
    """Return a client of the cluster at a service URL, for trio or asyncio. `async with` opens and closes the client.

    Durations are in seconds. The client connects when something is opened.

    Args:
        service_url: `pulsar://host:6650`, or `pulsar+ssl://host:6651` with TLS. `http://host:8080` and
            `https://host:8443` look topics up over HTTP. Separate several hosts by commas.
        operation_timeout: The time limit of each request, and of the first opening of a producer or consumer.
        connection_timeout: The time limit of a new connection.
        max_protocol_version: The highest protocol version to offer.
        authentication: The credentials: AuthenticationToken, AuthenticationBasic or AuthenticationTLS.
        tls_trust_certs_file_path: The PEM file of the trusted authorities. With None, the system's are trusted.
        tls_allow_insecure_connection: Trust any certificate.
        tls_validate_hostname: Require a certificate of the host. On by default, unlike in the official client.
        tls_certificate_file_path: The PEM file of the client's certificate. AuthenticationTLS sets it, too.
        tls_private_key_file_path: The PEM file of the client's private key.
        listener_name: The name among the brokers' advertisedListeners to connect to (PIP-61).
        max_lookup_redirects: The most redirects of a lookup, after which it ends with ConnectError.
        connections_per_broker: The number of connections to each broker, which producers and consumers share.
        connection_max_idle: The time after which an unused connection is closed, at the next `keep_alive_interval`. 0
            is never.
        keep_alive_interval: The time between two PINGs. A connection on which nothing arrives during this time is
            closed. 0 sends no PINGs.
        starting_backoff_interval: The time before the first repetition of a failed opening. Each further time is twice
            as long.
        max_backoff_interval: The longest time between two repetitions.
        memory_limit: The most bytes of messages without a receipt, of all producers together (PIP-74). 0 is no limit.
        admin_url: The URL of the brokers' REST API, such as `http://host:8080`, for `Client.admin`.
        description: A text of at most 64 characters. The topic's stats show it behind the client's version.
        dial: A function that opens the stream to an address, for example through SOCKS.

    Returns:
        A context manager of the client.

    Raises:
        InvalidUrl: The service URL cannot be read.
        InvalidConfiguration: An option is invalid, or a file cannot be read.
    """
    return Opening(open_client(service_url, ClientOptions(**locals())))


class Opening(AbstractAsyncContextManager[Client]):
    """A client that `async with` opens and closes."""

    def __init__(self, opening: AbstractAsyncContextManager[Client]) -> None:
        self._opening = opening

    async def __aenter__(self) -> Client:
        return await self._opening.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._opening.__aexit__(kind, error, traceback)

    if not TYPE_CHECKING:  # type checkers report these uses by themselves

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"{WRITE}, and call client.{name} there" if hasattr(Client, name) else name)

        def __await__(self) -> NoReturn:
            raise TypeError(WRITE)


@asynccontextmanager
async def open_client(service_url: str, settings: Settings) -> AsyncIterator[Client]:
    """Open a client with checked options, as `connect`."""
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        try:
            client = Client(Core(Brokers(service_url, tasks, settings)))
            try:
                yield client
            finally:
                with anyio.CancelScope(shield=True):
                    await client.aclose()
        except Exception as error:  # raised as it is, and not in the task group's exception group
            failure = error
        finally:
            tasks.cancel_scope.cancel()
    if failure is not None:
        try:
            raise failure
        finally:
            del failure  # the exception refers to this frame
