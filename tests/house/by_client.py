"""Divide the tests between the workers of pytest-xdist: by file, and those of many clients by client."""

from __future__ import annotations

import re
from typing import Final

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

CLIENTS: Final = re.compile(r"(?P<file>tests/conformance/test_clients\.py)::\w+\[(?P<client>\w+)")
"""Tests that would keep one worker busy for most of a run. Those of a client share its adapter and brokers."""


class ByFileAndClient(LoadFileScheduling):  # type: ignore[misc]
    """Give each worker whole files, and the tests of one client in `CLIENTS`."""

    def _split_scope(self, nodeid: str) -> str:
        return share_of(nodeid)


def share_of(nodeid: str) -> str:
    """Return the name of the tests that one worker runs together with this test."""
    if found := CLIENTS.match(nodeid):
        return f"{found['file']} {found['client']}"
    return nodeid.partition("::")[0]
