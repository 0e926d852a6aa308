"""Fixtures of the programs of the image."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.pulsar.programs import Home


@pytest.fixture
def image_home(tmp_path: Path) -> Iterator[Home]:
    """Yield a folder for services. Whatever runs in it afterwards is ended."""
    folder = tmp_path / "pulsar"
    folder.mkdir()
    home = Home(folder)
    yield home
    home.stop()
