"""Say at the end of a run which tests it left out, and how to run them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

REASONS = {
    "heavy": "take long",
    "foreign": "need a client in Java or Go, or a real Pulsar",
    "spark": "need Spark and a JVM",
}


class LeftOut:
    """Count deselected tests by their marks. Workers of pytest-xdist tell the process that prints."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        for item in items:
            mark = next((name for name in REASONS if item.get_closest_marker(name)), None)
            if mark:
                self.counts[mark] += 1

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["left_out"] = dict(self.counts)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.counts |= Counter(getattr(node, "workeroutput", {}).get("left_out", {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.counts:
            said = ", ".join(f"{self.counts[name]} that {why}" for name, why in REASONS.items() if self.counts[name])
            terminalreporter.write_line(f"left out: {said}; scripts/test --all runs them too")
