"""The console of a broker with authentication."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.testing import PulsarBroker
from tests.broker.auth.secured import SECRET, TOKEN, base64_of, token
from tests.browser.chromium import Page
from tests.browser.stage import asked

pytestmark = pytest.mark.heavy

TOPIC = "public/default/kept"


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    return {
        "authenticationEnabled": True,
        "authorizationEnabled": True,
        "authenticationProviders": TOKEN,
        "tokenSecretKey": f"data:;base64,{base64_of(SECRET)}",
        "superUserRoles": "admin",
    }


def sign_in(page: Page, role: str) -> None:
    page.click("Sign in")
    page.fill("Token", token(role), within="dialog[open]")
    page.click("Use token", within="dialog[open]")


def test_a_console_without_a_token_says_what_is_missing(page: Page, broker: PulsarBroker) -> None:
    page.go(broker.admin_url)
    page.sees("401: the broker asks who you are. Enter a token with “Sign in”")
    sign_in(page, "admin")
    page.sees("Waiting for longer than a minute")
    page.sees("Role admin")
    assert not [url for url in page.requests() if token("admin") in url]


def test_a_role_that_may_only_read_gets_no_acts(page: Page, broker: PulsarBroker) -> None:
    admin = {"Authorization": f"Bearer {token('admin')}"}
    asked(broker, f"admin/v2/persistent/{TOPIC}", "PUT", {}, **admin)
    asked(broker, f"admin/v2/persistent/{TOPIC}/permissions/reader", "POST", ["consume"], **admin)
    page.go(broker.admin_url)
    sign_in(page, "reader")
    page.sees("your role may not do this.")
    page.fill("Go to topic", TOPIC)
    page.do("document.querySelector('header form').requestSubmit()")
    page.sees("Acts on the topic")
    page.until("document.querySelector('[data-act=unload]').disabled")
    assert page.do("document.querySelector('[data-act=unload]').title") == "The role reader may not do this."
    assert not page.do("document.querySelector('[data-act=subscribe]').disabled")
