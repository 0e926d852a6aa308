"""Answer Toxiproxy's control API. A suite that drives Toxiproxy drives a broker instead."""

from __future__ import annotations

import json
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import fields
from typing import Any, Final
from urllib.parse import unquote

import trio

from pulsarium.broker.cluster import Broker
from pulsarium.broker.config.listeners import is_loopback
from pulsarium.broker.lab.toxiproxy.proxy import Proxy, Upstreams
from pulsarium.broker.lab.toxiproxy.toxics import DOWNSTREAM, EFFECTS, UPSTREAM, Toxic, ToxicEffect, ToxicError
from pulsarium.broker.logs import PartLog
from pulsarium.broker.web.http.browser import BrowserGuard, Guarded
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import Finder
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply
from pulsarium.broker.web.http.request import BodyTooLarge, BodyTooSlow, HttpRequest
from pulsarium.broker.web.http.server import serve_http

log = PartLog("toxiproxy")

VERSION: Final = "2.12.0"
"""The release of Toxiproxy whose API this is."""
MOST_BODY: Final = 1 << 20
MOST_PROXIES: Final = 1000
MOST_TOXICS: Final = 100  # of a proxy
BROWSER: Final = "Mozilla/"  # Toxiproxy refuses browsers by their User-Agent, too

NUMBER: Final = (int, float)
WORDS: Final[Mapping[Any, str]] = {str: "a text", bool: "true or false", NUMBER: "a number"}

Json = dict[str, Any]
Handler = Callable[..., Awaitable[HttpReply]]


class ApiError(Exception):
    """Error that Toxiproxy answers: a status, and {"error": text, "status": status}."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.reply = json_reply({"error": text, "status": status}, status)


class ControlApi:
    """The control API, with the proxies that its callers create. `nursery` runs the proxies."""

    def __init__(self, broker: Broker, nursery: trio.Nursery, upstreams: Upstreams, guarded: Guarded) -> None:
        self.broker = broker
        self._nursery = nursery
        self._upstreams = upstreams
        self._guard = BrowserGuard(broker.hosts, broker.config.httpAllowedHosts, guarded)
        self._proxies: dict[str, Proxy] = {}
        self._changing = trio.Lock()  # a port takes a moment to open and to close
        self._paths: Finder[Mapping[str, Handler]] = Finder()
        one, toxics = "/proxies/{proxy}", "/proxies/{proxy}/toxics"
        paths: dict[str, dict[str, Handler]] = {
            "/version": {"GET": self._version},
            "/reset": {"POST": self._reset},
            "/populate": {"POST": self._populate},
            "/proxies": {"GET": self._index, "POST": self._create},
            one: {"GET": self._show, "POST": self._update, "DELETE": self._delete},
            toxics: {"GET": self._toxics, "POST": self._add_toxic},
            f"{toxics}/{{toxic}}": {
                "GET": self._show_toxic,
                "POST": self._change_toxic,
                "DELETE": self._remove_toxic,
            },
        }
        for path, handlers in paths.items():
            self._paths.add(path, handlers)

    async def answer(self, request: HttpRequest, until_sent: ExitStack) -> HttpReply:
        """Answer a request. Raise `ClientGone` when the client goes away."""
        try:
            self._guard.check(request.method, request.path, request.headers)
            if request.headers.get("user-agent", "").startswith(BROWSER):
                raise ApiError(403, "User agent not allowed")
            found = self._paths.find(request.path)
            if found is None:
                raise ApiError(404, f"no path {request.path}")
            handler = found.value.get("POST" if request.method == "PATCH" else request.method)
            if handler is None:
                raise ApiError(405, f"{request.path} has the methods {', '.join(found.value)}")
            body = await request.read(MOST_BODY)
            named = [unquote(part) for part in found.parameters.values()]
            async with self._changing:
                return await handler(body, *named)
        except ApiError as error:
            return error.reply
        except AdminError as error:
            return ApiError(error.status, error.reason).reply
        except BodyTooLarge:
            return ApiError(413, f"the body has more than {MOST_BODY} bytes").reply
        except BodyTooSlow:
            return ApiError(408, "the body did not come").reply

    def _proxy(self, name: str) -> Proxy:
        if name not in self._proxies:
            raise ApiError(404, "proxy not found")
        return self._proxies[name]

    # proxies

    async def _version(self, body: bytes) -> HttpReply:
        return json_reply({"version": VERSION})

    async def _index(self, body: bytes) -> HttpReply:
        return json_reply({name: proxy.to_json() for name, proxy in self._proxies.items()})

    async def _show(self, body: bytes, name: str) -> HttpReply:
        return json_reply(self._proxy(name).to_json())

    async def _create(self, body: bytes) -> HttpReply:
        wanted = _object(_parsed(body))
        proxy, enabled = self._described(wanted)
        if proxy.name in self._proxies:
            raise ApiError(409, "proxy already exists")
        await self._put(proxy, enabled)
        return json_reply(proxy.to_json(), 201)

    def _described(self, wanted: Json, place: str = "") -> tuple[Proxy, bool]:
        """Return the proxy that an object describes, and whether to start the proxy."""
        name, listen, upstream = (_typed(wanted, field, str, "") for field in ("name", "listen", "upstream"))
        for field, value in (("name", name), ("upstream", upstream)):
            if not value:
                raise ApiError(400, f"missing required field: {field}{place}")
        proxy = Proxy(name, listen or ":0", upstream, self._nursery, self._upstreams)
        return proxy, _typed(wanted, "enabled", bool, True)

    async def _put(self, proxy: Proxy, enabled: bool) -> None:
        if len(self._proxies) >= MOST_PROXIES and proxy.name not in self._proxies:
            raise ApiError(400, f"there are {MOST_PROXIES} proxies already; delete some")
        if enabled:
            await _started(proxy)
        self._proxies[proxy.name] = proxy

    async def _update(self, body: bytes, name: str) -> HttpReply:
        proxy, wanted = self._proxy(name), _object(_parsed(body))
        listen = _typed(wanted, "listen", str, proxy.listen)
        upstream = _typed(wanted, "upstream", str, proxy.upstream)
        enabled = _typed(wanted, "enabled", bool, proxy.enabled)
        if not enabled or (listen, upstream) != (proxy.listen, proxy.upstream):
            await proxy.stop()
        proxy.listen, proxy.upstream = listen, upstream
        if enabled:
            await _started(proxy)
        return json_reply(proxy.to_json())

    async def _delete(self, body: bytes, name: str) -> HttpReply:
        await self._proxy(name).stop()
        del self._proxies[name]
        return done()

    async def _populate(self, body: bytes) -> HttpReply:
        items = _parsed(body)
        if not isinstance(items, list):
            raise ApiError(400, "bad request body: a list of proxies is wanted")
        wanted = [self._described(_object(each), f" at proxy {index + 1}") for index, each in enumerate(items)]
        made = list[Proxy]()
        try:
            for proxy, enabled in wanted:
                made.append(await self._replaced(proxy, enabled))
        except ApiError as error:
            failure = json.loads(error.reply.body)
            return json_reply({**failure, "proxies": [each.to_json() for each in made]}, error.reply.status)
        return json_reply({"proxies": [each.to_json() for each in made]}, 201)

    async def _replaced(self, proxy: Proxy, enabled: bool) -> Proxy:
        """Return the proxy of this name, which stays when it has the same addresses."""
        before = self._proxies.get(proxy.name)
        if before is not None and (before.listen, before.upstream) == (proxy.listen, proxy.upstream):
            return before
        if before is not None:
            await before.stop()
        await self._put(proxy, enabled)
        return proxy

    async def _reset(self, body: bytes) -> HttpReply:
        for proxy in self._proxies.values():
            await _started(proxy)
            for name in [*proxy.toxics]:
                proxy.remove(name)
        return done()

    # toxics

    async def _toxics(self, body: bytes, name: str) -> HttpReply:
        return json_reply(self._proxy(name).shown())

    async def _show_toxic(self, body: bytes, name: str, toxic: str) -> HttpReply:
        return json_reply(self._toxic(name, toxic).to_json())

    def _toxic(self, name: str, toxic: str) -> Toxic:
        toxics = self._proxy(name).toxics
        if toxic not in toxics:
            raise ApiError(404, "toxic not found")
        return toxics[toxic]

    async def _add_toxic(self, body: bytes, name: str) -> HttpReply:
        proxy, wanted = self._proxy(name), _object(_parsed(body))
        kind, stream = _typed(wanted, "type", str, ""), _typed(wanted, "stream", str, DOWNSTREAM).lower()
        if stream not in (UPSTREAM, DOWNSTREAM):
            raise ApiError(400, "stream was invalid, can be either upstream or downstream")
        if kind not in EFFECTS:
            raise ApiError(400, "invalid toxic type")
        called = _typed(wanted, "name", str, "") or f"{kind}_{stream}"
        if called in proxy.toxics:
            raise ApiError(409, "toxic already exists")
        if len(proxy.toxics) >= MOST_TOXICS:
            raise ApiError(400, f"the proxy has {MOST_TOXICS} toxics already; remove some")
        try:
            effect = EFFECTS[kind](**_attributes(EFFECTS[kind], wanted))
        except ToxicError as error:
            raise ApiError(400, f"bad request body: {error}") from None
        toxic = Toxic(called, stream, effect, _toxicity(wanted, 1.0))
        proxy.add(toxic)
        return json_reply(toxic.to_json())

    async def _change_toxic(self, body: bytes, name: str, toxic: str) -> HttpReply:
        before, wanted = self._toxic(name, toxic), _object(_parsed(body))
        try:
            after = before.updated(_attributes(type(before.effect), wanted), _toxicity(wanted, before.toxicity))
        except ToxicError as error:
            raise ApiError(400, f"bad request body: {error}") from None
        self._proxy(name).change(after)
        return json_reply(after.to_json())

    async def _remove_toxic(self, body: bytes, name: str, toxic: str) -> HttpReply:
        self._proxy(name).remove(self._toxic(name, toxic).name)
        return done()


async def _started(proxy: Proxy) -> None:
    try:
        await proxy.start()
    except ValueError as error:
        raise ApiError(400, f"bad request body: {error}") from None
    except OSError as error:
        raise ApiError(500, f"listen tcp {proxy.listen}: {error.strerror or error}") from None


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"bad request body: {error}") from None


def _object(value: Any) -> Json:
    if not isinstance(value, dict):
        raise ApiError(400, "bad request body: an object is wanted")
    return value


def _typed(wanted: Json, name: str, kind: type | tuple[type, ...], default: Any) -> Any:
    value = wanted.get(name)
    if value is None:
        return default
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ApiError(400, f"bad request body: {name} is {value!r}; {WORDS[kind]} is wanted")
    return value


def _toxicity(wanted: Json, default: float) -> float:
    value = float(_typed(wanted, "toxicity", NUMBER, default))
    if not 0 <= value <= 1:
        raise ApiError(400, f"bad request body: toxicity is {value:g}; it must be from 0 to 1")
    return value


def _attributes(effect: type[ToxicEffect], wanted: Json) -> Json:
    """Return the attributes that the kind of toxic has. As in Toxiproxy, others are ignored."""
    given = _object(wanted.get("attributes") or {})
    known = {field.name for field in fields(effect)}
    for name in given.keys() - known:
        log.warning("ignored an attribute that the toxic does not have", toxic=effect.kind, attribute=name)
    return {name: value for name, value in given.items() if name in known}


async def serve_toxiproxy(
    broker: Broker,
    sock: socket.socket,
    guarded: Guarded,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Answer the control API on a listening socket until canceled. Then close all proxies.

    An API that other machines reach makes proxies to the ports of the cluster's brokers only.
    """
    host, port, *_ = sock.getsockname()

    def ports() -> set[int]:
        return {port for each in broker.cluster.brokers for port in each.ports}

    upstreams = Upstreams(None if is_loopback(host) else ports)
    log.info("Toxiproxy's control API answers", host=host, port=port)
    async with trio.open_nursery() as nursery:
        await serve_http(ControlApi(broker, nursery, upstreams, guarded), sock, task_status)
