"""Exchange JSON objects with the runner, one a line. The programs of all languages do the same.

A request is {"scenario", "topic", "namespace", "service_url", "http_url", ...}. A program may then ask for admin work,
such as {"do": "unload"}, and gets {"done": true} when the work is done. Its last line is {"outcome": "pass" | "fail",
"reason": "...", "seconds": 0.1}. The program ends with its input.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Final

PATIENCE: Final = 20.0
"""Seconds to wait for an expected event."""
QUIET: Final = 0.3
"""Seconds without a message after which no more messages are expected."""


class Failure(Exception):
    """A scenario that did not go as expected."""


MOMENT: Final = 0.02
"""Seconds between two times that must not be the same millisecond, and between two checks of a condition."""


def that(holds: object, what: str) -> None:
    if not holds:
        raise Failure(what)


def equal(got: object, wanted: object, what: str = "values") -> None:
    that(got == wanted, f"{what}: got {got!r:.500}, wanted {wanted!r:.500}")


def texts(start: int, end: int, prefix: str = "a") -> list[str]:
    return [f"{prefix}{number:04}" for number in range(start, end)]


class Lines:
    """The request of one scenario, and the channel for admin work."""

    def __init__(self, request: Mapping[str, Any], write: Callable[[object], None]) -> None:
        self._request = request
        self._write = write

    def __getattr__(self, name: str) -> Any:
        """Return a value of the request, such as `topic`, `namespace` or `service_url`."""
        try:
            return self._request[name]
        except KeyError:
            raise AttributeError(name) from None

    def do(self, action: str, **arguments: object) -> None:
        """Ask for admin work on the topic: "unload", "compact" or "terminate"."""
        self._write({"do": action, **arguments})
        if not json.loads(sys.stdin.readline()).get("done"):
            raise Failure(f"{action} was refused")


Scenario = Callable[[Lines], None]


def serve(scenarios: Mapping[str, Scenario]) -> None:
    """Run the requested scenarios until the end of input."""
    # Output of the client itself must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def write(answer: object) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        start = time.perf_counter()
        outcome, reason = "pass", ""
        try:
            scenarios[request["scenario"]](Lines(request, write))
        except BaseException as error:
            outcome, reason = "fail", _reason(error)
            traceback.print_exc()
        write({"outcome": outcome, "reason": reason, "seconds": time.perf_counter() - start})


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) if isinstance(error, Failure) else f"{type(error).__name__}: {error}"
