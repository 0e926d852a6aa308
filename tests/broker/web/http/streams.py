"""Streams of server-sent events, read by a test."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import ExitStack
from typing import Any

from pulsarium.broker.web.http.request import HttpRequest
from tests.broker.web.admin.rest import Rest


async def stream(rest: Rest, target: bytes) -> AsyncGenerator[bytes, None]:
    """Open a stream, and return its events."""

    async def receive() -> bytes:
        return b""

    headers = [(b"accept", b"text/event-stream"), (b"host", b"broker.internal:8080")]
    with ExitStack() as until_sent:
        reply = await rest.site.answer(HttpRequest("GET", target, headers, rest.caller, receive), until_sent)
    assert reply.status == 200
    assert reply.content_type == "text/event-stream"
    assert (b"connection", b"close") in reply.head(0)
    assert reply.stream is not None
    return reply.stream


def value_of(event: bytes) -> Any:
    """Return the value of an event."""
    assert event.startswith(b"data: ")
    assert event.endswith(b"\n\n")
    return json.loads(event[6:])
