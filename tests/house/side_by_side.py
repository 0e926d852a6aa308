"""What stays together when tests run in several processes (pytest -n)."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

COSTLY = ("spark",)
"""Session fixtures that take long to make: their tests share one process, and so one fixture."""


class SideBySide:
    """A file's tests run in one process, in their order; so do those that share a costly fixture."""

    @pytest.hookimpl(tryfirst=True)  # xdist reads the marks in the same hook
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            item.add_marker(pytest.mark.xdist_group(group_of(item.nodeid, _fixtures(item))))


def group_of(nodeid: str, fixtures: Iterable[str]) -> str:
    """The name of a test's group."""
    return next((fixture for fixture in COSTLY if fixture in fixtures), nodeid.partition("::")[0])


def _fixtures(item: pytest.Item) -> Iterable[str]:
    names: Iterable[str] = getattr(item, "fixturenames", ())
    return names
