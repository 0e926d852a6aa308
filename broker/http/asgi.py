"""The little of ASGI that server and application tell each other with, and a request read out of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, MutableMapping
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class ClientGone(Exception):
    """A client went away in the middle of its request, or sent what is none."""


class Request:
    """A request as it was sent: nothing of its path is decoded, so that an encoded slash stays inside its part."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        self.path = path_of(scope)
        self.headers = headers_of(scope)
        self._receive = receive

    @cached_property
    def query(self) -> Mapping[str, str]:
        """By name; of those given several times the first, as of JAX-RS's @QueryParam."""
        return first_of(parse_qsl(self.scope["query_string"].decode("latin-1"), keep_blank_values=True))

    @property
    def peer(self) -> str:
        """The address that it came from."""
        client = self.scope.get("client")
        return "?" if client is None else str(client[0])

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Its body, as it comes. Raises ClientGone."""
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            more = message.get("more_body", False)
            if piece := message.get("body", b""):
                yield piece


def headers_of(scope: Scope) -> Mapping[str, str]:
    """By lower-case names; of those given several times the first."""
    return first_of((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])


def first_of(pairs: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """By name, in their order; of a repeated one the first."""
    found: dict[str, str] = {}
    for name, value in pairs:
        found.setdefault(name, value)
    return found


def path_of(scope: Scope) -> str:
    """The path still encoded, without a slash at its end: an encoded slash, or plus, is not a plain one."""
    path: str = scope["raw_path"].decode("latin-1")
    if path.count("/") > 1 and not path.startswith("/metrics"):
        path = path.removesuffix("/")
    return path
