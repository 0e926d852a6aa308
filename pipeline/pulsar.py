"""Call the async client from plain functions, as Spark's are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from types import TracebackType
from typing import ParamSpec, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from pulsarium.client import Client, connect
from pulsarium.client.bulk import use_admin_of
from pulsarium.pipeline.options import ConnectionOptions

P = ParamSpec("P")
T = TypeVar("T")


class Pulsar:
    """A client on an event loop in a thread of its own, for the length of a `with` block.

    Each `call` costs about 0.1 ms, so that one call should do much.
    """

    def __init__(self, connection: ConnectionOptions) -> None:
        self._connection = connection
        self._stack = ExitStack()
        self.client: Client
        self._portal: BlockingPortal

    def __enter__(self) -> Pulsar:
        with ExitStack() as stack:
            self._portal = stack.enter_context(start_blocking_portal("asyncio"))
            self.client = stack.enter_context(self._portal.wrap_async_context_manager(self._connected()))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def call(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a coroutine function on the loop, and return what it returns or raise what it raises."""
        return self._portal.call(lambda: function(*args, **kwargs))

    def enter(self, make: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """Make a producer or a reader on the loop, and enter it.

        The end of the `with` block leaves all of them, the last one first.
        """
        (manager,) = self._portal.call(lambda: (make(),))  # in a tuple, because the portal awaits what has __await__
        return self._stack.enter_context(self._portal.wrap_async_context_manager(manager))

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Client]:
        made = self._connection
        async with _client(made) as client:
            if made.admin is None or made.admin_url is None:
                yield client
                return
            async with _client(made.admin) as other:  # it never connects to a broker
                use_admin_of(client, other)
                yield client


def _client(made: ConnectionOptions) -> AbstractAsyncContextManager[Client]:
    return connect(
        made.service_url,
        admin_url=made.admin_url,
        authentication=made.authentication(),
        tls_trust_certs_file_path=made.trust_certs,
        tls_allow_insecure_connection=made.allow_insecure,
        tls_validate_hostname=made.validate_hostname,
        tls_certificate_file_path=made.certificate,
        tls_private_key_file_path=made.key,
        connection_timeout=made.connection_timeout,
        operation_timeout=made.operation_timeout,
        listener_name=made.listener,
        max_lookup_redirects=made.max_redirects,
        keep_alive_interval=made.keep_alive,
        starting_backoff_interval=made.first_backoff,
        max_backoff_interval=made.longest_backoff,
        description=made.description,
    )
