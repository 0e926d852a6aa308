"""A certificate authority for tests with TLS."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.auth.secured import Authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)
