"""Requests of tests to a broker in another process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from email.message import Message
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

NOT_FOUND: Final = 404
OF_OWNERS: Final = (307, 308)
NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
NO_QUERY: Final[Mapping[str, object]] = MappingProxyType({})


class RemoteRefusal(Exception):
    """A refusal of the broker."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class HttpAnswer(NamedTuple):
    """The body and the headers of an answer."""

    body: bytes
    headers: Message


class _ToTheOwner(HTTPRedirectHandler):
    """Repeat any request at the broker that owns its topic. urllib itself repeats only those that read."""

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        if code not in OF_OWNERS or (req.type == "https" and not newurl.startswith("https:")):
            return super().redirect_request(req, fp, code, msg, headers, newurl)
        return Request(newurl, req.data, req.headers, method=req.get_method())


class Http:
    """Requests to one broker, in plain code.

    `headers` go with each request. `seconds` is the longest silence of the broker, or None without a limit.
    """

    def __init__(self, url: str, *, headers: Mapping[str, str] = NO_HEADERS, seconds: float | None = None) -> None:
        self.url = url.rstrip("/")
        opener = build_opener(ProxyHandler({}), _ToTheOwner)
        opener.addheaders = [*headers.items()]
        self._open = partial(opener.open, timeout=seconds)

    def call(self, method: str, path: str, body: object = None, query: Mapping[str, object] = NO_QUERY) -> Any:
        """Return the JSON of the answer, or None. Raise `RemoteRefusal`, or `ConnectionError` without a broker."""
        data = None if body is None else json.dumps(body).encode()
        said = self.send(method, path, data, query).body
        return json.loads(said) if said else None

    def send(
        self,
        method: str,
        path: str,
        data: bytes | None = None,
        query: Mapping[str, object] = NO_QUERY,
        media_type: str = "application/json",
    ) -> HttpAnswer:
        """Return the answer. Raise as `call` does."""
        target = f"{self.url}{path}?{urlencode(query)}" if query else f"{self.url}{path}"
        headers = {"Content-Type": media_type, "X-Pulsarium-By": "test"}
        request = Request(target, data, headers, method=method)
        try:
            with self._open(request) as answer:
                return HttpAnswer(answer.read(), answer.headers)
        except HTTPError as error:
            raise RemoteRefusal(error.code, _reason(error)) from None
        except (URLError, TimeoutError) as error:
            why = error.reason if isinstance(error, URLError) else error
            raise ConnectionError(f"no broker answers at {self.url}: {why}; start it first") from None

    def remove(self, path: str) -> None:
        """Delete a resource, which may be gone already."""
        try:
            self.call("DELETE", path)
        except RemoteRefusal as refused:
            if refused.status != NOT_FOUND:
                raise


def _reason(error: HTTPError) -> str:
    said = error.read().decode(errors="replace")
    try:
        return str(json.loads(said)["reason"])
    except (ValueError, KeyError, TypeError):
        return said or f"status {error.code}"
