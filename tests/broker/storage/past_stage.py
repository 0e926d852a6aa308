"""Data directories of older versions, from past/."""

from __future__ import annotations

import tarfile
from pathlib import Path

PAST = Path(__file__).parent / "past"


def unpack(name: str, to: Path) -> None:
    """Unpack a data directory as the older version left it."""
    with tarfile.open(PAST / f"{name}.tar.xz") as packed:
        packed.extractall(to, filter="data")
