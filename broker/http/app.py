"""The ASGI application of the admin API."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from pulsarium.broker.admin.routes import by_path
from pulsarium.broker.admin.topic.rates import Rates
from pulsarium.broker.http.asgi import ClientGone, Receive, Request, Scope, Send
from pulsarium.broker.http.browser import BrowserGuard
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.finder import Finder
from pulsarium.broker.http.rate import RequestLimit
from pulsarium.broker.http.reply import NAMES, page, reason
from pulsarium.broker.http.resource import Resource, send_reply
from pulsarium.broker.logs import Log

if TYPE_CHECKING:
    from pulsarium.broker.broker import Broker

log = Log("admin")

OWN = ("/lab/", "/pulsarium/")  # what only an emulator has is not limited


class AdminApp:
    """Routes by the path as it was sent, so that an encoded slash stays inside its part."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        config = broker.config
        rate = config.httpRequestsMaxPerSecond if config.httpRequestsLimitEnabled else 0
        self._limit = RequestLimit(broker.clock.machine, rate)
        self._guard = BrowserGuard(broker.hosts, config.httpAllowedHosts)
        rates = self._rates = Rates(broker)
        self._resources: Finder[Resource] = Finder()
        for path, handlers in by_path(broker.profile):
            self._resources.add(path, Resource(broker, rates, handlers))
        self._nothing = Resource(broker, rates, {})

    def stop(self) -> None:
        """Nobody asks any more: let go of what runs in between."""
        self._rates.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if head_size(scope) > self.broker.config.httpMaxRequestHeaderSize:
            await send_reply(send, page(431, NAMES[431], request.path, "", {"Connection": "close"}))
            return
        try:
            self._guard.check(request.method, request.headers)
        except AdminError as error:
            log.warning("refused a request", peer=request.peer, path=request.path, reason=error.reason)
            await send_reply(send, replace(reason(error.status, error.reason), headers={"Connection": "close"}))
            return
        if not request.path.startswith(OWN) and not self._limit.admits():
            await send_reply(send, page(429, NAMES[429], request.path, request.headers.get("accept", "")))
            return
        found = self._resources.find(request.path, lambda resource: resource.takes(request.method))
        resource, parameters = (self._nothing, {}) if found is None else found
        with ExitStack() as until_sent:
            try:
                reply = await resource.answer(request, parameters, until_sent)
            except ClientGone:
                return
            await send_reply(send, reply)


def head_size(scope: Scope) -> int:
    """Bytes of the request line and the headers."""
    line = len(scope["method"]) + len(scope["raw_path"]) + len(scope["query_string"])
    return line + sum(len(name) + len(value) + 4 for name, value in scope["headers"])
