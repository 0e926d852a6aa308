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
    page.sees("The broker asks who you are. Press “Sign in”, and enter a token.")
    sign_in(page, "admin")
    page.sees("Role admin")
    page.until("document.querySelector('main section')")
    assert not [url for url in page.requests() if token("admin") in url]


def test_a_role_that_may_only_read_gets_no_acts(page: Page, broker: PulsarBroker) -> None:
    admin = {"Authorization": f"Bearer {token('admin')}"}
    asked(broker, f"admin/v2/persistent/{TOPIC}", "PUT", {}, **admin)
    asked(broker, f"admin/v2/persistent/{TOPIC}/permissions/reader", "POST", ["consume"], **admin)
    page.go(broker.admin_url)
    sign_in(page, "reader")
    page.sees("Your role may not do this.")
    page.click("Find")
    page.fill("Find", TOPIC, within="dialog[open]")
    page.click(f"Open topic {TOPIC}", within="dialog[open]")
    page.click("Acts")
    page.until("document.querySelector('[data-act=unload]').disabled")
    assert page.do("document.querySelector('[data-act=unload]').title") == "The role reader may not do this."
    assert not page.do("document.querySelector('[data-act=subscribe]').disabled")


def test_a_token_that_is_not_accepted_is_not_a_role_without_rights(page: Page, broker: PulsarBroker) -> None:
    page.go(broker.admin_url)
    page.click("Sign in")
    page.fill("Token", "made.up.token", within="dialog[open]")
    page.click("Use token", within="dialog[open]")
    page.sees("The broker does not accept your token.")
    page.sees("Token not accepted")
