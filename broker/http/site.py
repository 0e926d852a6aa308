"""What a broker answers over HTTP: which resource has a request, and who is refused before that."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from pulsarium.broker.http.browser import BrowserGuard
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.registry import Finder, Handler, Route, by_path
from pulsarium.broker.http.reply import NAMES, Reply, page, reason
from pulsarium.broker.http.request import Request
from pulsarium.broker.http.resource import Resource
from pulsarium.broker.logs import Log
from pulsarium.broker.rates import Rates

if TYPE_CHECKING:
    from pulsarium.broker.broker import Broker
    from pulsarium.broker.clock import Timeline

log = Log("admin")

OWN = ("/lab/", "/pulsarium/")  # what only an emulator has is not limited
BURST = 1.0  # seconds: what was not asked in them may be asked at once


class Site:
    """Finds routes by the path as it was sent, so that an encoded slash stays inside its part."""

    def __init__(self, broker: Broker, routes: Iterable[tuple[Route, Handler]]) -> None:
        self.broker = broker
        config = broker.config
        rate = config.httpRequestsMaxPerSecond if config.httpRequestsLimitEnabled else 0
        self._limit = RequestLimit(broker.clock.machine, rate)
        self._guard = BrowserGuard(broker.hosts, config.httpAllowedHosts)
        rates = self._rates = Rates(broker)
        self._resources: Finder[Resource] = Finder()
        for path, handlers in by_path(routes, broker.profile):
            self._resources.add(path, Resource(broker, rates, handlers))
        self._nothing = Resource(broker, rates, {})

    def stop(self) -> None:
        """Nobody asks any more: let go of what runs in between."""
        self._rates.stop()

    async def answer(self, request: Request, until_sent: ExitStack) -> Reply:
        """Answer a request; `until_sent` holds what the answer needs. Raises ClientGone."""
        if request.head_size > self.broker.config.httpMaxRequestHeaderSize:
            return page(431, NAMES[431], request.path, "", {"Connection": "close"})
        try:
            self._guard.check(request.method, request.path, request.headers)
        except AdminError as error:
            log.warning("refused a request", peer=request.caller.host, path=request.path, reason=error.reason)
            return replace(reason(error.status, error.reason), headers={"Connection": "close"})
        if not request.path.startswith(OWN) and not self._limit.admits():
            return page(429, NAMES[429], request.path, request.headers.get("accept", ""))
        found = self._resources.find(request.path, lambda resource: resource.takes(request.method))
        resource, parameters = (self._nothing, {}) if found is None else found
        return await resource.answer(request, parameters, until_sent)


class RequestLimit:
    """A rate of requests; 0: any. As in Pulsar it begins without any saved up, and who comes too early is refused."""

    def __init__(self, clock: Timeline, per_second: float) -> None:
        self._clock = clock
        self._interval = 1 / per_second if per_second > 0 else 0.0
        self._next = clock.monotonic()  # when the next one may come; in the past, where some are saved up

    def admits(self) -> bool:
        """Count a request; whether it may be answered."""
        now = self._clock.monotonic()
        if self._interval and self._next > now:
            return False
        self._next = max(self._next, now - BURST) + self._interval
        return True
