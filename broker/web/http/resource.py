"""Answer requests to one path: call its handler, commit, and reply."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import trio

from pulsarium.broker.auth.identity import Principal
from pulsarium.broker.cluster import Broker
from pulsarium.broker.jackson.errors import JsonError
from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.broker.model.news import acting_for
from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.turn import Turn
from pulsarium.broker.web.http.browser import check_type
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import (
    AdminError,
    ContainerError,
    Elsewhere,
    EmptyBody,
    WrongMediaType,
    from_model,
)
from pulsarium.broker.web.http.owner import elsewhere
from pulsarium.broker.web.http.permission import check_permission, principal_of
from pulsarium.broker.web.http.pulsar_routes import check_absent
from pulsarium.broker.web.http.registry import Handler, Route
from pulsarium.broker.web.http.reply import (
    JSON,
    NAMES,
    HttpReply,
    done,
    newer_page,
    page,
    reason,
    text_reply,
    unexpected,
)
from pulsarium.broker.web.http.request import BodyTooLarge, BodyTooSlow, ClientGone, HttpRequest
from pulsarium.broker.web.rates import Rates

log = PartLog("admin")

METHODS_IN_PULSARS_ORDER = ("HEAD", "DELETE", "POST", "GET", "OPTIONS", "PUT")
LAB = "/lab/"
BY_HEADER = "x-pulsarium-by"
"""Header of a request that says who acts. Without it, a program does."""
BY = {"console": "person", "test": "test", "exploration": "exploration"}
PROGRAM = "program"
CHECK = "x-pulsarium-check"
"""Header of a request that only asks whether the caller may do it. The broker does nothing and answers 204."""


class Resource:
    """The handlers of one path. Most are plain functions, so each call is atomic; few are awaited."""

    def __init__(self, broker: Broker, rates: Rates, handlers: Mapping[str, tuple[Route, Handler]]) -> None:
        self._broker = broker
        self._rates = rates
        self._handlers = handlers
        methods = {*handlers, "OPTIONS", *(("HEAD",) if "GET" in handlers else ())}
        self._methods = [method for method in METHODS_IN_PULSARS_ORDER if method in methods]

    def takes(self, method: str) -> bool:
        """Return whether this resource answers requests of a method."""
        return method in self._methods

    async def answer(self, request: HttpRequest, parameters: Mapping[str, str], until_sent: ExitStack) -> HttpReply:
        """Answer a request. Raise `ClientGone` when the client goes away.

        `parameters` are the parts of the path. `until_sent` holds resources that the answer needs.
        """
        handled = self._handlers.get("GET" if request.method == "HEAD" else request.method)
        try:
            principal = await self._principal(request)
            if handled is None:
                await request.drop(self._broker.config.max_frame_size)
                return self._without_handler(request)
            return await self._handle(request, parameters, principal, until_sent, *handled)
        except AdminError as error:
            refused = error.told(self._broker.profile)
            return reason(refused.status, refused.reason)
        except Elsewhere as error:
            return error.reply
        except BrokerServiceError as error:
            refused = from_model(error)
            return reason(refused.status, refused.reason)
        except JsonError as error:
            return text_reply(str(error), 400, "text/plain")
        except EmptyBody:
            return text_reply("The request entity cannot be empty.", 400, JSON)
        except WrongMediaType:
            return HttpReply(415)
        except ContainerError as error:
            said = error.told(self._broker.profile)
            if request.method in ("GET", "POST"):
                return self._page(request, said.status, said.message)
            return HttpReply(said.status)
        except BodyTooLarge:
            return self._page(request, 413, NAMES[413], {"Connection": "close"})
        except BodyTooSlow:
            return self._page(request, 408, NAMES[408], {"Connection": "close"})
        except ClientGone:
            raise
        except StorageError as error:  # a fault of the disk, which the store has logged
            return unexpected(error)
        except Exception as error:
            log.error("a handler failed", exception=error, method=request.method, path=request.path)
            return unexpected(error)

    async def _principal(self, request: HttpRequest) -> Principal:
        try:
            return principal_of(self._broker, request)
        except ContainerError:
            await request.drop(self._broker.config.max_frame_size)
            raise

    async def _handle(
        self,
        request: HttpRequest,
        parameters: Mapping[str, str],
        principal: Principal,
        until_sent: ExitStack,
        route: Route,
        handler: Handler,
    ) -> HttpReply:
        limit = self._broker.config.max_frame_size
        made = partial(
            Call,
            broker=self._broker,
            rates=self._rates,
            method=request.method,
            path=request.path,
            parameters=parameters,
            query=request.query,
            pairs=request.pairs,
            headers=request.headers,
            until_sent=until_sent,
            principal=principal,
            secure=request.caller.secure,
        )
        if route.largest_body > limit:
            try:
                check_permission(made(body=b""), route)  # before the broker stores so large a body
            except AdminError:
                await request.drop(self._broker.config.max_frame_size)
                raise
            limit = route.largest_body
        if route.spooled:
            path = Path(until_sent.enter_context(TemporaryDirectory(prefix="pulsarium-"))) / "body"
            size = await request.spool(limit, path)
            call = made(body=b"", body_file=path)
        else:
            call = made(body=await request.read(limit))
            size = len(call.body)
        if route.path.startswith(LAB) and size:
            check_type(request.headers)
        if route.first is not None:
            route.first(call)
        check_permission(call, route)
        if request.headers.get(CHECK) == "permission":
            return done()
        moved = elsewhere(call) if route.by_owner else None
        if moved is not None:
            return moved
        turn, began = self._broker.turn, perf_counter()
        with acting_for(BY.get(request.headers.get(BY_HEADER, ""), PROGRAM)):
            turn.begin()
            try:
                reply, commit = handler(call), NotedCommit(turn)
            finally:
                turn.finish()
                turn.stalls.took(perf_counter() - began, request.method, request.path)
            if not isinstance(reply, HttpReply):
                reply = await reply
                commit = NotedCommit(turn)
                turn.finish()
        await commit.end()
        return reply

    def _page(
        self, request: HttpRequest, status: int, message: str, headers: Mapping[str, str] | None = None
    ) -> HttpReply:
        """Return an error of the servlet container, in the form of the profile's release."""
        accept = request.headers.get("accept", "")
        if self._broker.profile.newer_error_pages and JSON not in accept:
            return newer_page(status, message, request.url, headers)
        return page(status, message, request.path, accept, headers)

    def _without_handler(self, request: HttpRequest) -> HttpReply:
        method = request.method
        check_absent(request.path)
        if not self._handlers:
            raise ContainerError(404, NAMES[404])
        if method == "OPTIONS":
            return HttpReply(200, content_type=JSON, headers={"Allow": ",".join(self._methods)})
        allow = {"Allow": ",".join(method for method in self._methods if method != "HEAD")}
        if method in ("GET", "POST"):
            return self._page(request, 405, NAMES[405], allow)
        return HttpReply(405, headers=allow)


class NotedCommit:
    """The commit of all changes that are noted so far."""

    def __init__(self, turn: Turn) -> None:
        self._ended = trio.Event()
        self._failure: Exception | None = None
        turn.after_commit(self._end)

    def _end(self, error: Exception | None) -> None:
        self._failure = error
        self._ended.set()

    async def end(self) -> None:
        """Wait until the changes are stored. Raise the error when storage fails."""
        if not self._ended.is_set():  # else the wait would take a turn of the loop
            await self._ended.wait()
        if self._failure is not None:
            raise self._failure
