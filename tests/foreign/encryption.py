"""Parameters of the tests of encryption."""

from __future__ import annotations

import pytest

batched = pytest.mark.parametrize("batched", [False, True], ids=["single", "batch"])
