"""The ASGI application of the admin API."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.routing import Route, Router

from pulsarium.broker.admin.http.resource import Resource
from pulsarium.broker.admin.routes import by_path
from pulsarium.broker.admin.topic.rates import Rates

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from pulsarium.broker.broker import Broker


class AdminApp:
    """Routes by the path as it was sent, so that an encoded slash stays inside its part."""

    def __init__(self, broker: Broker) -> None:
        rates = self._rates = Rates(broker)
        self._router = Router(
            [Route(path, Resource(broker, rates, handlers)) for path, handlers in by_path(broker.profile)],
            redirect_slashes=False,
            default=Resource(broker, rates, {}),
        )

    def stop(self) -> None:
        """Nobody asks any more: let go of what runs in between."""
        self._rates.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await until_shutdown(receive, send)
            return
        if scope["type"] == "http":
            scope["path"] = path_of(scope)
        await self._router(scope, receive, send)


async def until_shutdown(receive: Receive, send: Send) -> None:
    """Nothing is to be made ready. Starlette's own would take the server's being cancelled for a failure."""
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await send({"type": "lifespan.shutdown.complete"})


def path_of(scope: Scope) -> str:
    """The path still encoded, without a slash at its end: an encoded slash, or plus, is not a plain one."""
    raw = scope.get("raw_path")
    path = raw.decode("latin-1").partition("?")[0] if raw is not None else quote(scope["path"])
    if path.count("/") > 1 and not path.startswith("/metrics"):
        path = path.removesuffix("/")
    return path
