"""What a scenario program says and hears, a JSON object a line. The programs of all languages do the same.

In comes {"scenario", "topic", "namespace", "service_url", "http_url", ...}. A program may then ask for something that
is the administrator's work, {"do": "unload"}, and is answered {"done": true} once it is done. Its last line is
{"outcome": "pass" | "fail", "reason": "...", "seconds": 0.1}. The end of input ends it.
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
"""Seconds for whatever must happen."""
QUIET: Final = 0.3
"""Seconds without a message before "nothing more comes" is believed."""


class Failure(Exception):
    """Something did not go as the scenario says."""


MOMENT: Final = 0.02
"""Seconds between two times that must not be the same millisecond, and between two looks at something."""


def that(holds: object, what: str) -> None:
    if not holds:
        raise Failure(what)


def equal(got: object, wanted: object, what: str = "values") -> None:
    that(got == wanted, f"{what}: got {got!r:.500}, wanted {wanted!r:.500}")


def texts(start: int, end: int, prefix: str = "a") -> list[str]:
    return [f"{prefix}{number:04}" for number in range(start, end)]


class Lines:
    """The request of one scenario, and the way to ask for more."""

    def __init__(self, request: Mapping[str, Any], write: Callable[[object], None]) -> None:
        self._request = request
        self._write = write

    def __getattr__(self, name: str) -> Any:
        """A value of the request: `topic`, `namespace`, `service_url` ..."""
        try:
            return self._request[name]
        except KeyError:
            raise AttributeError(name) from None

    def do(self, action: str, **arguments: object) -> None:
        """Has something administrated: "unload", "compact", "terminate" of the topic."""
        self._write({"do": action, **arguments})
        if not json.loads(sys.stdin.readline()).get("done"):
            raise Failure(f"{action} was refused")


Scenario = Callable[[Lines], None]


def serve(scenarios: Mapping[str, Scenario]) -> None:
    """Runs what is asked for until the end of input."""
    # What a client prints on its own must not end up among the answers.
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
