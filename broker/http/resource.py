"""What can be done at one path: request in, handler, commit, answer out."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import ExitStack, aclosing
from dataclasses import replace
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import trio

from pulsarium.broker.admin.topic.rates import Rates
from pulsarium.broker.auth.identity import Principal
from pulsarium.broker.http.absent import check_absent
from pulsarium.broker.http.asgi import ClientGone, Request, Send
from pulsarium.broker.http.browser import check_type
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.credentials import principal_of
from pulsarium.broker.http.errors import AdminError, ContainerError, UnreadableBody, WrongMediaType, from_model
from pulsarium.broker.http.owner import elsewhere
from pulsarium.broker.http.permission import check_permission
from pulsarium.broker.http.registry import Handler, Route
from pulsarium.broker.http.reply import JSON, NAMES, Reply, page, reason, text_reply, unexpected
from pulsarium.broker.logs import Log
from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.broker.slices import Slice
from pulsarium.broker.storage.errors import StorageError

if TYPE_CHECKING:
    from pulsarium.broker.broker import Broker

log = Log("admin")

METHODS_IN_PULSARS_ORDER = ("HEAD", "DELETE", "POST", "GET", "OPTIONS", "PUT")


LAB = "/lab/"
PIECE = 1 << 20  # bytes of a file that are written or read at once
WRITTEN = 64 << 10  # bytes of a body that are gathered for one write
BODY_SECONDS = 30.0  # without a byte of a body that was announced: Jetty's own limit


class BodyTooLarge(Exception):
    """More than maxMessageSize and its padding."""


class BodyTooSlow(Exception):
    """Nothing of it came for BODY_SECONDS."""


class Resource:
    """What answers at one path. Handlers are plain functions, so each call is atomic; few are awaited."""

    def __init__(self, broker: Broker, rates: Rates, handlers: Mapping[str, tuple[Route, Handler]]) -> None:
        self._broker = broker
        self._rates = rates
        self._handlers = handlers
        methods = {*handlers, "OPTIONS", *(("HEAD",) if "GET" in handlers else ())}
        self._methods = [method for method in METHODS_IN_PULSARS_ORDER if method in methods]

    def takes(self, method: str) -> bool:
        """Return whether this resource answers requests of a method."""
        return method in self._methods

    async def answer(self, request: Request, parameters: Mapping[str, str], until_sent: ExitStack) -> Reply:
        """`parameters` are the parts of the path; `until_sent` holds what the answer needs. Raises ClientGone."""
        accept = request.headers.get("accept", "")
        url = request.path
        handled = self._handlers.get("GET" if request.method == "HEAD" else request.method)
        try:
            principal = await self._principal(request)
            if handled is None:
                await self._drop_body(request)
                return self._without_handler(request.method, url, accept)
            return await self._handle(request, parameters, principal, until_sent, *handled)
        except AdminError as error:
            refused = error.told(self._broker.profile)
            return reason(refused.status, refused.reason)
        except BrokerServiceError as error:
            refused = from_model(error)
            return reason(refused.status, refused.reason)
        except UnreadableBody as error:
            return text_reply(error.text, 400, error.content_type)
        except WrongMediaType:
            return Reply(415)
        except ContainerError as error:
            said = error.told(self._broker.profile)
            if request.method in ("GET", "POST"):
                return page(said.status, said.message, url, accept)
            return Reply(said.status)
        except BodyTooLarge:
            return page(413, NAMES[413], url, accept, {"Connection": "close"})
        except BodyTooSlow:
            return page(408, NAMES[408], url, accept, {"Connection": "close"})
        except ClientGone:
            raise
        except StorageError as error:  # the disk's fault, which the store has logged
            return unexpected(error)
        except Exception as error:
            log.error("a request failed", exception=error, method=request.method, path=url)
            return unexpected(error)

    async def _principal(self, request: Request) -> Principal:
        try:
            return principal_of(self._broker, request)
        except ContainerError:
            await self._drop_body(request)
            raise

    async def _drop_body(self, request: Request) -> None:
        """Left unread it would end the connection."""
        await read_body(request, self._broker.config.max_frame_size, keep=False)

    async def _handle(
        self,
        request: Request,
        parameters: Mapping[str, str],
        principal: Principal,
        until_sent: ExitStack,
        route: Route,
        handler: Handler,
    ) -> Reply:
        limit = self._broker.config.max_frame_size
        call = Call(
            broker=self._broker,
            rates=self._rates,
            method=request.method,
            path=request.path,
            parameters=parameters,
            query=request.query,
            headers=request.headers,
            body=b"",
            until_sent=until_sent,
            principal=principal,
            secure=request.scope.get("scheme") == "https",
        )
        if route.largest_body > limit:
            try:
                check_permission(call, route)  # before so much is kept for somebody
            except AdminError:
                await self._drop_body(request)
                raise
            limit = route.largest_body
        if route.spooled:
            path = Path(until_sent.enter_context(TemporaryDirectory(prefix="pulsarium-"))) / "body"
            size = await spool_body(request, limit, path)
            call = replace(call, body_file=path)
        else:
            call = replace(call, body=await read_body(request, limit))
            size = len(call.body)
        if route.path.startswith(LAB) and size:
            check_type(request.headers)
        if route.first is not None:
            route.first(call)
        check_permission(call, route)
        moved = elsewhere(call) if route.by_owner else None
        if moved is not None:
            return moved
        reply = handler(call)
        if not isinstance(reply, Reply):
            reply = await reply
        await committed(self._broker)
        return reply

    def _without_handler(self, method: str, url: str, accept: str) -> Reply:
        check_absent(url)
        if not self._handlers:
            raise ContainerError(404, NAMES[404])
        if method == "OPTIONS":
            return Reply(200, content_type=JSON, headers={"Allow": ",".join(self._methods)})
        allow = {"Allow": ",".join(method for method in self._methods if method != "HEAD")}
        if method in ("GET", "POST"):
            return page(405, NAMES[405], url, accept, allow)
        return Reply(405, headers=allow)


async def _made(pieces: Iterable[bytes | bytearray]) -> deque[bytearray]:
    """Make all pieces of a body, each large enough to be worth a write, while others have their turn."""
    made: deque[bytearray] = deque()
    slice_ = Slice()
    for piece in pieces:
        if made and len(made[-1]) + len(piece) <= WRITTEN:
            made[-1] += piece
        else:
            made.append(bytearray(piece))
        await slice_.pause()
    return made


async def send_reply(send: Send, reply: Reply) -> None:
    """Send a reply as a server takes it: a file piece by piece, and so a body in pieces, which are let go of."""
    pieces = await _made(reply.pieces)
    headers = [(name.lower(), value) for name, value in reply.headers.items()]
    if reply.status not in (204, 304):
        size = len(reply.body) + sum(map(len, pieces))
        if reply.file is not None:
            size = reply.file.stat().st_size
        headers.append(("content-length", str(size)))
    if reply.content_type is not None:
        headers.append(("content-type", reply.content_type))
    headers += reply.raw_headers
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": reply.status, "headers": raw})
    if reply.file is not None:
        async with await trio.open_file(reply.file, "rb") as file:
            while piece := await file.read(PIECE):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
    while pieces:
        await send({"type": "http.response.body", "body": pieces.popleft(), "more_body": True})
    await send({"type": "http.response.body", "body": reply.body})


async def read_body(request: Request, limit: int, *, keep: bool = True) -> bytes:
    """The whole body, unless it is too large or stays away."""
    body = bytearray()

    def take(chunk: bytes) -> None:
        if keep:
            body.extend(chunk)

    await _each_piece(request, limit, take)
    return bytes(body)


async def spool_body(request: Request, limit: int, path: Path) -> int:
    """Write the body to a file, and return its size. Raises AdminError when the disk takes no more."""
    size, waiting = 0, bytearray()

    def take(chunk: bytes) -> Awaitable[object] | None:
        nonlocal size
        size += len(chunk)
        waiting.extend(chunk)
        if len(waiting) < PIECE:
            return None
        piece = bytes(waiting)
        waiting.clear()
        return file.write(piece)

    try:
        async with await trio.open_file(path, "wb") as file:
            await _each_piece(request, limit, take)
            await file.write(bytes(waiting))
    except OSError as error:
        text = f"the body could not be written to {path.parent.parent}: {error.strerror or error}; make room there, or "
        raise AdminError(507, f"{text}start the broker with another folder in TMPDIR") from None
    return size


async def _each_piece(request: Request, limit: int, take: Callable[[bytes], Awaitable[object] | None]) -> None:
    """Hand over a body as it comes, until it is too large or stays away: nothing is kept, nor waited for, on a claimed
    length. What `take` returns is awaited before more is read."""
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > limit:
        raise BodyTooLarge
    size = 0
    with trio.move_on_after(BODY_SECONDS) as patience:
        async with aclosing(request.pieces()) as pieces:
            async for chunk in pieces:
                size += len(chunk)
                if size > limit:
                    raise BodyTooLarge
                if (taking := take(chunk)) is not None:
                    patience.deadline = inf  # a disk may take its time
                    await taking
                patience.deadline = trio.current_time() + BODY_SECONDS
    if patience.cancelled_caught:
        raise BodyTooSlow


async def committed(broker: Broker) -> None:
    """Wait until everything that happened so far is kept; raises why it is not."""
    finished = trio.Event()
    failure: Exception | None = None

    def done(error: Exception | None) -> None:
        nonlocal failure
        failure = error
        finished.set()

    broker.turn.after_commit(done)
    broker.turn.finish()
    await finished.wait()
    if failure is not None:
        raise failure
