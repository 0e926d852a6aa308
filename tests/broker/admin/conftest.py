"""The admin API of a broker without ports."""

from __future__ import annotations

import pytest

from tests.broker.admin.rest import Rest, rest_of
from tests.broker.wire import Bed


@pytest.fixture
async def rest(bed: Bed) -> Rest:
    return rest_of(bed)
