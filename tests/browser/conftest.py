"""A browser for each file of tests, and a page for each test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pulsarium.broker.testing import PulsarBroker, running
from tests.browser.chromium import Chromium, Page, chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    """Return the settings of the broker, which a file may replace."""
    return {}


@pytest.fixture(scope="module")
def broker(settings: dict[str, Any]) -> Iterator[PulsarBroker]:
    with running(set=settings) as broker:
        yield broker


@pytest.fixture
def page(browser: Chromium) -> Iterator[Page]:
    page = browser.page()
    try:
        yield page
        assert page.complaints() == []
    finally:
        print(page.complaints())  # shown when the test failed, of which they may be the reason
        page.close()
