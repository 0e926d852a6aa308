"""Serve the adapter's side of the kit's protocol: requests on standard input, answers on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, TextIO

Handler = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class Refusal(Exception):
    """An error of the client, of a kind of `pulsarium.kit.adapter.KINDS`."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def answer_to(
    request: Mapping[str, Any], operations: Mapping[str, Handler], about: Mapping[str, str]
) -> dict[str, Any]:
    """Return the answer to a request. `about` has the client and its version."""
    number, name = request["id"], request["do"]
    if name == "hello":
        return {"id": number, "ok": {**about, "operations": sorted(operations)}}
    if name not in operations:
        return {"id": number, "unsupported": f"no operation {name}"}
    try:
        return {"id": number, "ok": dict(operations[name](request))}
    except Refusal as refusal:
        return {"id": number, "error": {"kind": refusal.kind, "text": str(refusal)}}
    except Exception as error:  # an adapter answers every request
        return {"id": number, "error": {"kind": "Other", "text": f"{type(error).__name__}: {error}"}}


def serve(
    operations: Mapping[str, Handler],
    about: Mapping[str, str],
    source: TextIO = sys.stdin,
    sink: TextIO = sys.stdout,
) -> None:
    """Answer requests one after another, until the input ends."""
    for line in source:
        answer = answer_to(json.loads(line), operations, about)
        sink.write(json.dumps(answer, ensure_ascii=False) + "\n")
        sink.flush()
