"""A foreign program that runs many scenarios in one process. Requests and results are lines of JSON."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from pulsarium.matrix.program import Hung, LineProcess

SCENARIO_SECONDS = 50.0
"""Limit of a scenario, in seconds. A whole test may take longer, so that the failure names the scenario."""


class LineProgram(LineProcess):
    """A program that starts when it is first needed, and again after a scenario that hung."""

    seconds = SCENARIO_SECONDS

    def run(self, scenario: str, **arguments: object) -> dict[str, Any]:
        """Run a scenario, and return its result. Raise `AssertionError` with the program's log when it fails."""
        start = self.log.stat().st_size if self.log.exists() else 0
        request = {"scenario": scenario, **arguments}
        try:
            self.say(request)
            result = self.hear(time.monotonic() + self.seconds)
        except Hung as error:
            raise AssertionError(f"{json.dumps(request)}: {error}\n{self._tail(start)}") from None
        if not result["ok"]:
            raise AssertionError(f"{json.dumps(request)}\n{result['error']}\n{self._tail(start)}")
        return result

    def _tail(self, start: int, limit: int = 8000) -> str:
        with self.log.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(start, size - limit))
            return log.read().decode(errors="replace")
