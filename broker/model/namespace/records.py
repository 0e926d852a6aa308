"""What operators tell the cluster that no broker acts upon: JSON at Pulsar's metadata paths."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import quote, unquote

from pulsarium.broker.storage.interface import Done

ROOTS = (
    "/admin/clusters/",
    "/admin/configuration/",
    "/admin/local-policies/",
    "/admin/resourcegroups/",
    "/bookies/",
    "/loadbalance/resource-quota/",
)


Changed = Callable[[str, Any], None]  # the path, and what is kept there now; None: nothing


class Keeps(Protocol):
    """The store behind them."""

    def store(self, path: str, value: bytes | None) -> None: ...

    def after_commit(self, done: Done) -> None: ...


class Records:
    """By path. A name is quoted in it, so that what somebody calls a thing never is a path of its own."""

    def __init__(self, keeps: Keeps, changed: Changed = lambda path, value: None) -> None:
        self._keeps = keeps
        self._changed = changed
        self._values: dict[str, Any] = {}

    def clear(self) -> None:
        """Know nothing; what is kept stays so."""
        self._values.clear()

    def recover(self, path: str, value: bytes) -> None:
        """Take over what the store has."""
        if path.startswith(ROOTS):
            self._values[path] = json.loads(value)
            self._changed(path, self._values[path])

    def get(self, folder: str, *names: str) -> Any:
        """What is kept, None for nothing."""
        return self._values.get(_path(folder, names))

    def put(self, folder: str, *names: str, value: Any) -> None:
        """Keep it."""
        path = _path(folder, names)
        self._values[path] = value
        self._changed(path, value)
        self._keeps.store(path, json.dumps(value).encode())

    def forget(self, folder: str, *names: str) -> None:
        """Forget it, and everything in it; all is there again where that is not kept."""
        path = _path(folder, names)
        gone = {kept: value for kept, value in self._values.items() if kept == path or kept.startswith(f"{path}/")}
        for kept in gone:
            del self._values[kept]
            self._changed(kept, None)
            self._keeps.store(kept, None)
        self._keeps.after_commit(lambda error: self._values.update(gone) if error is not None else None)

    def inside(self, folder: str, *names: str) -> dict[str, Any]:
        """Everything right in a folder, by name."""
        start = f"{_path(folder, names)}/"
        found = {path[len(start) :]: value for path, value in self._values.items() if path.startswith(start)}
        return {unquote(name): value for name, value in found.items() if "/" not in name}


def _path(folder: str, names: tuple[str, ...]) -> str:
    return "/".join((folder, *(quote(name, safe="") for name in names)))
