"""Helpers for the tests of past stage."""

from __future__ import annotations

import tarfile
from pathlib import Path

PAST = Path(__file__).parent / "past"


def unpack(name: str, to: Path) -> None:
    """Have a folder as it was left."""
    with tarfile.open(PAST / f"{name}.tar.xz") as packed:
        packed.extractall(to, filter="data")
