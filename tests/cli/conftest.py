"""Commands that run in the tests' own process leave nothing behind in it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from pulsarium.client.connection import pool


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """Undo what a command set up: levels of loggers would silence the tests that come after."""
    root, ours = logging.getLogger(), logging.getLogger("pulsarium")
    levels = root.level, ours.level
    yield
    for handler in [handler for handler in root.handlers if handler.get_name() == "pulsarium"]:
        root.removeHandler(handler)
    root.setLevel(levels[0])
    ours.setLevel(levels[1])


@pytest.fixture(autouse=True)
def _no_line_about_a_slow_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep stderr as it is on a fast machine."""
    monkeypatch.setattr(pool, "SLOW", 600.0)
