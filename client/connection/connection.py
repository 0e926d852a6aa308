"""A connection to a broker: requests, replies, and commands that the broker sends by itself."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable

import anyio
from anyio.abc import ByteStream

from pulsarium.client.connection.authentication import Authentication, credentials_of
from pulsarium.client.connection.protocol import (
    AuthChallenge,
    ClientProtocol,
    ConnectionState,
    Event,
    HandshakeDone,
    ReceivedCommand,
)
from pulsarium.client.connection.routes import (
    ConsumerHandler,
    ProducerHandler,
    ReplyFrame,
    Routes,
    SessionHandler,
    Waiter,
    WatcherHandler,
    again,
    request_id_of,
)
from pulsarium.client.connection.service_url import BrokerAddress
from pulsarium.client.connection.waiting import shortened
from pulsarium.client.connection.writer import CommandWriter
from pulsarium.client.errors import (
    AlreadyClosed,
    AuthenticationError,
    ConnectError,
    LocalProtocolError,
    PulsarError,
    Timeout,
)
from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.numbers import NO_REQUEST

LEAST = 64 * 1024  # bytes of an incomplete frame that have to arrive between two PINGs to count as a sign of life
MOST_PROVOKED = 20_000  # most answers to the broker's commands that wait to be written
LAST_WORDS = 1.0  # most seconds for writing queued commands when the connection is closed
_READ = 256 * 1024  # most bytes of one read

logger: logging.Logger = logging.getLogger(__name__)

__all__ = ["Connection", "ConsumerHandler", "ProducerHandler", "ReplyFrame", "SessionHandler", "WatcherHandler"]


class Connection:
    """A connection that reads in one task and writes in another (`run`). All other methods are called by its users.

    `protocol_version` is the lower of both sides. `max_message_size` is the broker's limit in bytes.
    """

    def __init__(
        self,
        stream: ByteStream,
        address: str,
        protocol: ClientProtocol | None = None,
        *,
        authentication: Authentication | None = None,
        proxy: BrokerAddress | None = None,
        operation_timeout: float = 30.0,
        keep_alive: float = 30.0,
        max_idle: float = 0.0,
    ) -> None:
        """Take over an open stream. All times are in seconds.

        Args:
            stream: The open stream.
            address: The broker's address, for texts.
            protocol: The state of the protocol.
            authentication: The credentials.
            proxy: The proxy through which the connection leads.
            operation_timeout: The time limit of a request.
            keep_alive: The time between two PINGs, within which a frame has to arrive. 0 sends no PINGs.
            max_idle: The time after which an unused connection ends. 0 is never.
        """
        self.proxy = proxy
        self.address = address
        self.server_version: str = ""
        self.introduced: bool = False  # whether there were credentials, and CONNECT waits to be sent or was sent
        self.feature_flags: frozenset[str] = frozenset()
        self._stream = stream
        self._protocol = protocol or ClientProtocol()
        self._writer = CommandWriter(stream, self._protocol)
        self._authentication = authentication
        self._challenged = anyio.Event()
        self._operation_timeout = operation_timeout
        self._keep_alive = keep_alive
        self._max_idle = max_idle
        self._idle = 0.0  # seconds
        self._request_id = 0
        self._routes = Routes()
        self._arrived = 0  # bytes
        self._error: PulsarError | None = None
        self._scope = anyio.CancelScope()
        self._stopped: anyio.Event | None = None  # set when `run` ends

    @property
    def protocol_version(self) -> int:
        return self._protocol.protocol_version

    @property
    def max_message_size(self) -> int:
        return self._protocol.max_message_size

    @property
    def is_lost(self) -> bool:
        """Return whether the connection has ended, and all handlers and waiting requests were told."""
        return self._error is not None

    # ---- called by its users

    def next_request_id(self) -> int:
        """Return a request id that is unique on this connection."""
        self._request_id = (self._request_id + 1) % NO_REQUEST
        return self._request_id

    async def request(
        self,
        command: pb.BaseCommand,
        trailing: bytes = b"",
        *,
        patience: anyio.CancelScope | None = None,
        undo: Callable[[], None] | None = None,
    ) -> ReplyFrame:
        """Send a command with a `next_request_id()`, and return the reply. A canceled call ignores a late reply.

        Args:
            command: The command.
            trailing: Bytes behind the command in its frame.
            patience: A new cancel scope for the wait. Its deadline is removed when the broker queues a producer for
                exclusive access (PIP-68).
            undo: Called after a cancellation, once the broker has executed the command. It must not block.

        Raises:
            ConnectError: The connection is lost.
            Timeout: No reply arrived within `operation_timeout`.
            PulsarError: The error in the reply.
        """
        request_id = request_id_of(command)
        if request_id is None:
            raise LocalProtocolError(f"{COMMANDS[command.type].name} without a request id")
        deadline = anyio.current_time() + self._operation_timeout
        waiter = self._routes.waiters[request_id] = Waiter(deadline, patience)
        try:
            self.send_nowait(command, trailing, at_once=True)
            if patience is None:
                await waiter.done.wait()
            else:
                patience.deadline = deadline
                with patience:
                    await waiter.done.wait()
        except anyio.get_cancelled_exc_class():
            if undo is not None:
                self._routes.given_up(request_id, waiter, undo)
            raise
        finally:
            self._routes.waiters.pop(request_id, None)
        if waiter.error is not None:
            raise waiter.error
        spec = COMMANDS[command.type]
        if waiter.reply is None:
            raise Timeout(f"no answer to {spec.name} in {self._operation_timeout:g} s")
        if spec.reply not in (None, waiter.reply.command.type):
            answer = COMMANDS[waiter.reply.command.type].name
            error = ConnectError(f"the broker broke the protocol: {answer} for {spec.name}")
            self.abort(error)
            raise error
        return waiter.reply

    def send_nowait(self, command: pb.BaseCommand, trailing: bytes = b"", *, at_once: bool = False) -> None:
        """Enqueue a command. Raise `ConnectError` if the connection is lost.

        The command is written soon, together with those that tasks add in the next turns of the event loop. With
        `at_once` it is written now, for a task that waits for its reply.
        """
        if self._error is not None:
            raise again(self._error)
        if self._protocol.state is ConnectionState.CLOSED:
            return  # the connection is being closed
        self._protocol.send(command, trailing)
        if at_once:
            self._writer.write_nowait()
        else:
            self._writer.write_soon()

    def attach_consumer(self, consumer_id: int, handler: ConsumerHandler) -> None:
        """Route commands for this consumer to `handler`, until it is detached or lost."""
        self._routes.consumers[consumer_id] = handler

    def detach_consumer(self, consumer_id: int) -> None:
        """Ignore further commands for this consumer."""
        self._routes.consumers.pop(consumer_id, None)

    def attach_producer(self, producer_id: int, handler: ProducerHandler) -> None:
        """Route commands for this producer to `handler`, until it is detached or lost."""
        self._routes.producers[producer_id] = handler

    def detach_producer(self, producer_id: int) -> None:
        """Ignore further commands for this producer."""
        self._routes.producers.pop(producer_id, None)

    def attach_watcher(self, watcher_id: int, handler: WatcherHandler) -> None:
        """Route commands for this watcher to `handler`, until it is detached or lost."""
        self._routes.watchers[watcher_id] = handler

    def detach_watcher(self, watcher_id: int) -> None:
        """Ignore further commands for this watcher."""
        self._routes.watchers.pop(watcher_id, None)

    def attach_session(self, update: int, session_id: int, handler: SessionHandler) -> None:
        """Route updates of a session to `handler`, until it is detached or lost. `update` is their command type."""
        self._routes.sessions[update, session_id] = handler

    def detach_session(self, update: int, session_id: int) -> None:
        """Ignore further updates of this session."""
        self._routes.sessions.pop((update, session_id), None)

    def touch(self) -> None:
        """Restart the time of idleness, because the connection is about to be used."""
        self._idle = 0.0

    def abort(self, error: PulsarError) -> None:
        """End the connection, and fail all waiting requests with `error`."""
        self._lose(error)
        self._scope.cancel()

    # ---- called by the pool

    async def handshake(self) -> None:
        """Send CONNECT, and wait for CONNECTED. Raise the broker's refusal. On failure the stream is closed."""
        try:
            self._protocol.connect(*await credentials_of(self._authentication, self.address))
            self.introduced = True
            while not self.server_version:
                if self._challenged.is_set():
                    await self._answer()
                if self._protocol.has_output:
                    await self._stream.send(self._protocol.take())
                self._take_in(await self._read())
                if self._error is not None:
                    raise self._error
            self._stopped = anyio.Event()
        except BaseException as error:
            self._lose(error if isinstance(error, PulsarError) else ConnectError("the handshake was canceled"))
            await anyio.aclose_forcefully(self._stream)
            if isinstance(error, ssl.SSLError):  # with TLS 1.3 a refused certificate shows at the first read only
                raise AuthenticationError(f"{self.address}: {_reason(error)}") from error
            if isinstance(error, (OSError, anyio.BrokenResourceError)):
                raise ConnectError(_reason(error)) from error
            raise

    async def run(self) -> None:
        """Read and write until the connection ends. Run this in a task of its own after `handshake`."""
        try:
            with self._scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._write_all)
                    tasks.start_soon(self._watch)
                    tasks.start_soon(self._expire_requests)
                    tasks.start_soon(self._answer_challenges)
                    await self._read_all()
                    tasks.cancel_scope.cancel()
        finally:
            self._lose(ConnectError(f"the connection to {self.address} was closed"))
            with anyio.CancelScope(shield=True):
                await anyio.aclose_forcefully(self._stream)
            if self._stopped is not None:
                self._stopped.set()

    async def aclose(self) -> None:
        """Write queued commands for at most a second, close, and fail all waiting requests with `AlreadyClosed`."""
        try:
            if self._error is None and self._stopped is not None:
                with anyio.move_on_after(LAST_WORDS):
                    await self._writer.flush()
        finally:
            self.abort(AlreadyClosed("the client was closed"))
        if self._stopped is not None:
            await self._stopped.wait()

    # ---- tasks of `run`

    async def _read(self) -> bytes:
        try:
            return await self._stream.receive(_READ)
        except anyio.EndOfStream:
            return b""

    async def _read_all(self) -> None:
        while self._error is None:
            try:
                data = await self._read()
            except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
                self._lose(ConnectError(f"{self.address}: {_reason(error)}"))
                return
            self._take_in(data)

    async def _write_all(self) -> None:
        try:
            await self._writer.run()
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            self.abort(ConnectError(f"{self.address}: {_reason(error)}"))

    async def _answer_challenges(self) -> None:
        while self._error is None:
            await self._challenged.wait()
            try:
                await self._answer()
            except PulsarError as error:
                self.abort(error)
            # Flush before the next challenge: answers must not pile up while a broker does not read.
            await self._writer.flush()

    async def _answer(self) -> None:
        """Send AUTH_RESPONSE with the current credentials."""
        self._challenged = anyio.Event()
        if self._authentication is None:
            raise AuthenticationError(
                f"{self.address}: the broker requires authentication: pass connect(authentication=...)"
            )
        credentials = await credentials_of(self._authentication, self.address)
        if self._error is None:
            self._protocol.answer_challenge(*credentials)
            self._writer.write_soon()

    async def _watch(self) -> None:
        """Send PING at each interval, and abort when neither a frame nor LEAST bytes arrived since the last one."""
        if self._keep_alive <= 0:
            return
        await anyio.sleep(self._keep_alive)
        while self._error is None:
            frames, arrived = self._protocol.frames, self._arrived
            self.send_nowait(pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing()))
            await anyio.sleep(self._keep_alive)
            self._idle = self._idle + self._keep_alive if self._routes.is_idle else 0.0
            if 0 < self._max_idle <= self._idle:
                self.abort(ConnectError(f"{self.address}: not used for {self._max_idle:g} s"))
            elif self._routes.is_stuck():
                self.abort(ConnectError(f"{self.address}: the broker gave no receipt within {self._keep_alive:g} s"))
            elif frames == self._protocol.frames and self._arrived - arrived < LEAST:
                self.abort(
                    ConnectError(f"{self.address}: the broker did not answer PING within {self._keep_alive:g} s")
                )

    async def _expire_requests(self) -> None:
        """End requests at their deadlines. One task for all requests costs much less than a scope for each."""
        while self._error is None:
            now = anyio.current_time()
            due = self._routes.expire(now)
            await anyio.sleep_until(now + self._operation_timeout if due is None else due)

    # ---- incoming bytes

    def _take_in(self, data: bytes) -> None:
        self._arrived += len(data)
        waiting = self._protocol.waiting
        for event in self._protocol.receive(data):
            self._handle(event)
        if self._protocol.has_output:  # PONG
            self._writer.write_soon()
        self._writer.provoked += max(0, self._protocol.waiting - waiting)
        if self._writer.provoked > MOST_PROVOKED:
            self.abort(ConnectError(f"{self.address}: the broker sends commands and reads no answers"))

    def _handle(self, event: Event) -> None:
        if isinstance(event, ReceivedCommand):
            self._routes.take(event.command, event.trailing)
        elif isinstance(event, HandshakeDone):
            self.server_version = event.server_version or "?"
            self.feature_flags = event.feature_flags
        elif isinstance(event, AuthChallenge):
            self._challenged.set()
        else:
            self._lose(event.error)

    def _lose(self, error: PulsarError) -> None:
        """Close the connection once, and tell all handlers and waiting requests."""
        if self._error is not None:
            return
        self._error = error
        if self.server_version:  # else `handshake` raises the error
            concerns = not isinstance(error, AlreadyClosed) and not self._routes.is_idle
            reason = shortened(error).removeprefix(f"{self.address}: ")
            logger.log(logging.WARNING if concerns else logging.INFO, "connection to %s lost: %s", self.address, reason)
        self._protocol.close()
        self._routes.end(error)
        self._writer.end()


def _reason(error: Exception) -> str:
    return str(error) or "connection broken"
