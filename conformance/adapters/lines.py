"""Serve the adapter's side of the kit's protocol: requests on standard input, answers on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from threading import Lock, Thread
from typing import Any, Final, TextIO

from pulsarium.conformance.protocol import PROTOCOL, Unsupported

Handler = Callable[[Mapping[str, Any]], Mapping[str, Any] | None]
_HANDLES: Final = ("as", "handle", "producer", "consumer", "reader", "view", "client")
"""Fields of a request that name what it works on. The first of them counts."""
_ASIDE: Final = ("receive", "receive-batch")
"""Operations that wait for messages while others go on."""


class Refusal(Exception):
    """An error of the client, of a kind of `pulsarium.conformance.protocol.KINDS`."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def answer_to(
    request: Mapping[str, Any],
    operations: Mapping[str, Handler],
    about: Mapping[str, Any],
    kind_of: Callable[[Exception], str] = lambda error: "Other",
) -> dict[str, Any]:
    """Return the answer to a request. `about` has the client, its version, its topics and what it lacks."""
    number, name = request["id"], request["do"]
    if name == "hello":
        return {"id": number, "ok": {"protocol": PROTOCOL, **about, "operations": sorted(operations)}}
    if name not in operations:
        return {"id": number, "unsupported": f"no operation {name}"}
    try:
        return {"id": number, "ok": dict(operations[name](request) or {})}
    except Unsupported as lack:
        return {"id": number, "unsupported": str(lack)}
    except Refusal as refusal:
        return {"id": number, "error": {"kind": refusal.kind, "text": str(refusal)}}
    except Exception as error:  # an adapter answers every request
        return {"id": number, "error": {"kind": kind_of(error), "text": f"{type(error).__name__}: {error}"}}


def serve(
    operations: Mapping[str, Handler],
    about: Mapping[str, Any],
    source: TextIO = sys.stdin,
    sink: TextIO = sys.stdout,
) -> None:
    """Answer requests one after another, until the input ends."""
    for line in source:
        answer = answer_to(json.loads(line), operations, about)
        sink.write(json.dumps(answer, ensure_ascii=False) + "\n")
        sink.flush()


def serve_in_threads(
    adapter: object,
    about: Mapping[str, Any],
    kind_of: Callable[[Exception], str],
    source: Iterable[str] = sys.stdin,
    sink: TextIO = sys.stdout,
) -> None:
    """Answer requests by the public methods of an adapter, until the input ends. `kind_of` an error of the client.

    Each request has a thread. It waits for the requests before it for the same handle, except for those that receive.
    """
    names = [name for name in dir(type(adapter)) if not name.startswith("_")]
    operations: dict[str, Handler] = {name.replace("_", "-"): getattr(adapter, name) for name in names}
    lock = Lock()
    last: dict[str, Thread] = {}

    def answer(request: Mapping[str, Any], before: Thread | None) -> None:
        if before is not None:
            before.join()
        line = json.dumps(answer_to(request, operations, about, kind_of), ensure_ascii=False)
        with lock:
            sink.write(line + "\n")
            sink.flush()

    for line in source:
        request = json.loads(line)
        handle = next((request[name] for name in _HANDLES if name in request), "")
        is_aside = request["do"] in _ASIDE
        thread = Thread(target=answer, args=(request, None if is_aside else last.get(handle)), daemon=True)
        if not is_aside:
            last[handle] = thread
        thread.start()
