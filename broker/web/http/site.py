"""A broker's HTTP site: it finds the resource of a request, and refuses requests by host, origin and rate."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from typing import Protocol

from pulsarium.broker.clock import Timeline
from pulsarium.broker.cluster import Broker
from pulsarium.broker.logs import PartLog
from pulsarium.broker.web.http.browser import BROKER, BrowserGuard, Guarded
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import Finder, Handler, Route, by_path
from pulsarium.broker.web.http.reply import NAMES, HttpReply, page, reason
from pulsarium.broker.web.http.request import HttpRequest
from pulsarium.broker.web.http.resource import Resource
from pulsarium.broker.web.rates import Rates

log = PartLog("admin")

OWN = ("/lab/", "/pulsarium/")  # an emulator's own paths are not limited
UPGRADE = "UPGRADE"  # for the guard, the method of a request that begins another protocol
BURST = 1.0  # seconds whose unused requests may come at once


class Sockets(Protocol):
    """A protocol that begins as HTTP."""

    def serves(self, path: str) -> bool:
        """Return whether requests to a path begin this protocol."""
        ...

    async def upgrade(self, request: HttpRequest) -> HttpReply:
        """Answer a request: with an `Upgrade`, or with a refusal."""
        ...


class Beside(Protocol):
    """A part that runs while the site answers."""

    def begin(self) -> None:
        """Run from now on."""
        ...

    def stop(self) -> None:
        """Run no more."""
        ...


class Site:
    """The routes of one broker. It matches the encoded path, so that an encoded slash stays inside its part."""

    def __init__(
        self,
        broker: Broker,
        routes: Iterable[tuple[Route, Handler]],
        sockets: Sockets | None = None,
        beside: Iterable[Beside] = (),
        guarded: Guarded = BROKER,
    ) -> None:
        """Answer by `routes`. `sockets` answers requests for another protocol on the connection.

        What is `beside` the site begins and stops with it.
        """
        self.broker = broker
        self._sockets = sockets
        config = broker.config
        rate = config.httpRequestsMaxPerSecond if config.httpRequestsLimitEnabled else 0
        self._limit = RequestLimit(broker.clock.machine, rate)
        self._guard = BrowserGuard(broker.hosts, config.httpAllowedHosts, guarded)
        rates = self._rates = Rates(broker)
        self._resources: Finder[Resource] = Finder()
        for path, handlers in by_path(routes, broker.profile):
            self._resources.add(path, Resource(broker, rates, handlers))
        self._nothing = Resource(broker, rates, {})
        self._beside = (*beside,)
        for each in self._beside:
            each.begin()

    def stop(self) -> None:
        """Stop the timer of the rates, and what is beside the site."""
        self._rates.stop()
        for each in self._beside:
            each.stop()

    async def answer(self, request: HttpRequest, until_sent: ExitStack) -> HttpReply:
        """Answer a request. Raise `ClientGone` when the client goes away.

        `until_sent` holds resources that the answer needs.
        """
        if request.head_size > self.broker.config.httpMaxRequestHeaderSize:
            return page(431, NAMES[431], request.path, "", {"Connection": "close"})
        sockets = self._sockets if self._sockets is not None and self._sockets.serves(request.path) else None
        try:
            # a page may read and write a WebSocket of another site, so its GET is no harmless one
            method = UPGRADE if "upgrade" in request.headers else request.method
            self._guard.check(method, request.path, request.headers)
        except AdminError as error:
            log.warning("refused a request", peer=request.caller.host, path=request.path, reason=error.reason)
            return replace(reason(error.status, error.reason), headers={"Connection": "close"})
        if not request.path.startswith(OWN) and not self._limit.admits():
            return page(429, NAMES[429], request.path, request.headers.get("accept", ""))
        if sockets is not None:
            return await sockets.upgrade(request)
        return await self.routed(request, until_sent)

    async def routed(self, request: HttpRequest, until_sent: ExitStack) -> HttpReply:
        """Answer a request that the guard let pass, by the resource of its path."""
        found = self._resources.find(request.path, lambda resource: resource.takes(request.method))
        resource, parameters = (self._nothing, {}) if found is None else found
        return await resource.answer(request, parameters, until_sent)


class RequestLimit:
    """A limit on the rate of requests; 0: none.

    As in Pulsar, it starts without saved requests, and refuses early ones.
    """

    def __init__(self, clock: Timeline, per_second: float) -> None:
        self._clock = clock
        self._interval = 1 / per_second if per_second > 0 else 0.0
        self._next = clock.monotonic()  # when the next request may come; in the past when requests are saved

    def admits(self) -> bool:
        """Count a request. Return whether the rate admits it."""
        now = self._clock.monotonic()
        if self._interval and self._next > now:
            return False
        self._next = max(self._next, now - BURST) + self._interval
        return True
