"""Server-sent events: what a page shows, sent again whenever it has changed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from time import thread_time
from typing import Any, Final

import trio

from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError, from_model
from pulsarium.broker.web.http.reply import HttpReply, gathered, json_bytes, json_pieces, json_reply

EVENTS: Final = "text/event-stream"
SECONDS: Final = 1.0  # between two looks, of the machine's clock
SHARE: Final = 0.01  # of a core that the looks of a stream may take; longer looks have longer pauses between them
HEARTBEAT: Final = 15  # looks without a change until a comment shows that the broker is there
MOVED_MS: Final = 1000  # a clock that is ahead by less was not moved
LOOKS: Final = 300  # until the client has to open the stream again, and to prove its role again

Json = dict[str, Any]
View = Callable[[], Awaitable[Json]]


async def shown(call: Call, view: View) -> HttpReply:
    """Return the value of `view` as JSON, or a stream of its values for a client that accepts server-sent events.

    The stream looks once a second, less often when a look takes long, and sends only changes. Without a client that
    reads the stream, nothing runs.
    """

    async def value() -> Json:
        return _about(call) | await view()

    if EVENTS not in call.headers.get("accept", ""):
        return json_reply(await value())
    headers = {"Cache-Control": "no-store"}
    return HttpReply(200, content_type=EVENTS, headers=headers, stream=_events(value))


def _about(call: Call) -> Json:
    """Return facts for every page: the caller's role, and how the lab has changed the clock."""
    clock = call.broker.clock
    ahead_ms = round(clock.ahead_of(clock.machine) * 1000)
    changed: Json | None = None
    if clock.frozen:
        changed = {"frozen": True, "nowMs": clock.now_ms()}
    elif abs(ahead_ms) >= MOVED_MS:
        changed = {"frozen": False, "aheadMs": round(ahead_ms, -2)}
    return {"role": call.principal.role, "clock": changed}


async def _events(view: View) -> AsyncGenerator[bytes, None]:
    sent, quiet = b"", 0
    for _ in range(LOOKS):
        began = thread_time()
        try:
            data = b"".join(await gathered(json_pieces(await view())))
        except (AdminError, BrokerServiceError) as error:  # what the page shows was deleted
            told = error if isinstance(error, AdminError) else from_model(error)
            yield b"event: refused\ndata: " + json_bytes({"status": told.status, "reason": told.reason}) + b"\n\n"
            return
        quiet += 1
        if data != sent:
            sent, quiet = data, 0
            yield b"data: " + data + b"\n\n"
        elif quiet == HEARTBEAT:
            quiet = 0
            yield b":\n\n"
        await trio.sleep(max(SECONDS, (thread_time() - began) / SHARE))
