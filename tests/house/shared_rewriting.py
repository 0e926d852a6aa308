"""Divide the rewriting of assertions between the workers of pytest-xdist."""

from __future__ import annotations

import contextlib
import importlib
from pathlib import Path

import pytest


class SharedRewriting:
    """Let each worker import its own share of the test modules before the collection.

    The first import of a module rewrites its assertions, and stores the result for all other processes. Without shares,
    each worker of the first run on a checkout rewrites all modules, at the same time as the others.
    """

    def __init__(self, folder: Path, *, without: tuple[Path, ...] = ()) -> None:
        self._folder = folder
        self._without = without

    def pytest_collection(self, session: pytest.Session) -> None:
        worker = getattr(session.config, "workerinput", None)
        if worker is None or session.config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
            return
        first = int(worker["workerid"].removeprefix("gw"))
        for path in self._modules()[first :: worker["workercount"]]:
            with contextlib.suppress(Exception):  # the collection reports the error
                importlib.import_module(".".join(path.relative_to(self._folder.parent).with_suffix("").parts))

    def _modules(self) -> list[Path]:
        found = self._folder.rglob("test_*.py")
        return sorted(path for path in found if not any(map(path.is_relative_to, self._without)))
