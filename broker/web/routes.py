"""The HTTP site of a broker: admin API, console, lab and WebSocket API. Imported after the binary port answers."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.broker.cluster import Broker
from pulsarium.broker.web import console, lab
from pulsarium.broker.web.admin import routes as admin
from pulsarium.broker.web.console.watch import watch_of
from pulsarium.broker.web.http.registry import Handler, Route, declared
from pulsarium.broker.web.http.server import serve_http
from pulsarium.broker.web.http.site import Site
from pulsarium.broker.web.websocket import stats as websocket_stats
from pulsarium.broker.web.websocket.service import WebSocketService

__all__ = ["all_routes", "serve_http", "site_of"]


def all_routes() -> Iterator[tuple[Route, Handler]]:
    """Yield all routes with their handlers, in no particular order."""
    return declared((*admin.MODULES, *console.MODULES, *lab.MODULES, websocket_stats))


def site_of(broker: Broker) -> Site:
    """Return the site of one broker with all routes."""
    return Site(broker, all_routes(), WebSocketService(broker), [watch_of(broker)])
