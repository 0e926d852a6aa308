"""An adapter: it lets the conformance kit of Pulsarium drive a client in Python.

The kit writes one request a line to standard input, and reads one answer a line from standard output. Logs belong on
standard error. Add a function for each operation that the client has. docs/conformance.md lists the operations.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from threading import Lock, Thread
from typing import Any

Request = dict[str, Any]

things: dict[str, Any] = {}  # clients, producers, consumers, ... by the kit's handles


class Refusal(Exception):
    """An error of the client, of one of the kit's kinds, such as NotFound or Timeout."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def thing(handle: str) -> Any:
    """Return what is open as a handle. The kit also asks for handles of nothing."""
    if handle not in things:
        raise Refusal("AlreadyClosed", f"nothing is open as {handle}")
    return things[handle]


def open_client(request: Request) -> dict[str, Any]:
    """Open a client. TODO: connect it to the URL, and keep the client instead of the URL."""
    things[request["as"]] = request["url"]
    return {}  # an operation that returns something has it here, such as {"ids": ["1:0"]}


def close(request: Request) -> dict[str, Any]:
    """Close a client, a producer or a consumer. TODO: close the thing itself too."""
    thing(request["handle"])
    del things[request["handle"]]
    return {}


OPERATIONS: dict[str, Callable[[Request], dict[str, Any]]] = {"open": open_client, "close": close}
LACKS: dict[str, str] = {}  # why the client lacks an operation or option: {"send.delay": "no delayed messages"}
ABOUT = {"protocol": 2, "client": "My-Client", "version": "1.0", "topics": ["classic"], "lacks": LACKS}


def answer(request: Request) -> dict[str, Any]:
    """Return ok, unsupported or error. Every request is answered, whatever happens."""
    name = request["do"]
    if name == "hello":
        return {"ok": {**ABOUT, "operations": list(OPERATIONS)}}
    if name not in OPERATIONS:
        return {"unsupported": f"no operation {name}"}
    try:
        return {"ok": OPERATIONS[name](request)}
    except Refusal as refusal:
        return {"error": {"kind": refusal.kind, "text": str(refusal)}}
    except Exception as error:  # TODO: find the kind of the client's own errors
        return {"error": {"kind": "Other", "text": repr(error)}}


def main() -> None:
    """Answer requests until the input ends. Those of one handle keep their order, and a receive holds up no other."""
    lock, last = Lock(), dict[str, Thread]()

    def work(request: Request, before: Thread | None) -> None:
        if before is not None:
            before.join()
        line = json.dumps({"id": request["id"], **answer(request)})
        with lock:
            print(line, flush=True)

    names = ("as", "handle", "producer", "consumer", "reader", "view", "transaction", "client")
    for line in sys.stdin:
        request = json.loads(line)
        turn = next((request[name] for name in names if name in request), "")
        turn += " receive" if request["do"].startswith("receive") else ""
        last[turn] = Thread(target=work, args=(request, last.get(turn)), daemon=True)
        last[turn].start()


if __name__ == "__main__":
    main()
