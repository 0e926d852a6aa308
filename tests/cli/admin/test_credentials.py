"""Credentials: the header that is sent, and never shown."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from .conftest import Played

JAVA = "org.apache.pulsar.client.impl.auth.Authentication"
SECRET = "xyzzy-secret"


def authorization(played: Played, *options: str, env: dict[str, str | None] | None = None) -> str | None:
    """Return the header that these options make."""
    result = played.run(*options, "tenants", "list", env=env)
    assert result.exit_code == 0, result.stderr
    return played.headers[-1].get("Authorization")


@pytest.mark.parametrize("plugin", ["token", f"{JAVA}Token"])
@pytest.mark.parametrize("params", [f"token:{SECRET}", SECRET, f'{{"token": "{SECRET}"}}'])
def test_a_token_goes_out_as_bearer(plugin: str, params: str, played: Played) -> None:
    assert authorization(played, "--auth-plugin", plugin, "--auth-params", params) == f"Bearer {SECRET}"


@pytest.mark.parametrize("form", ["file://{}", "file:{}"])
def test_a_token_in_a_file(form: str, played: Played, tmp_path: Path) -> None:
    (tmp_path / "a token").write_text(f"{SECRET}\n")
    url = form.format(str(tmp_path / "a token").replace(" ", "%20"))
    assert authorization(played, "--auth-plugin", "token", "--auth-params", url) == f"Bearer {SECRET}"
    assert authorization(played, "--token", url) == f"Bearer {SECRET}"


def test_a_token_of_its_own_option_or_of_the_environment(played: Played) -> None:
    assert authorization(played, "--token", SECRET) == f"Bearer {SECRET}"
    assert authorization(played, "--token", f"token:{SECRET}") == f"Bearer {SECRET}"
    assert authorization(played, env={"PULSARIUM_TOKEN": SECRET}) == f"Bearer {SECRET}"


@pytest.mark.parametrize("plugin", ["basic", f"{JAVA}Basic"])
@pytest.mark.parametrize("params", [f'{{"userId": "u", "password": "{SECRET}"}}', f"userId:u,password:{SECRET}"])
def test_a_user_and_a_password_go_out_as_basic(plugin: str, params: str, played: Played) -> None:
    expected = base64.b64encode(f"u:{SECRET}".encode()).decode()
    assert authorization(played, "--auth-plugin", plugin, "--auth-params", params) == f"Basic {expected}"


def test_without_credentials_no_authorization_goes_out(played: Played) -> None:
    assert authorization(played) is None
    assert authorization(played, "--auth-plugin", f"{JAVA}Disabled", "--auth-params", "x") is None


@pytest.mark.parametrize(
    "options",
    [
        ("--auth-params", SECRET),
        ("--auth-plugin", "token"),
        ("--auth-plugin", "com.example.Mine", "--auth-params", SECRET),
        ("--auth-plugin", "basic", "--auth-params", SECRET),
        ("--auth-plugin", "basic", "--auth-params", f'{{"userId": "{SECRET}"}}'),
        ("--auth-plugin", "basic", "--auth-params", f'{{"userId": "{SECRET}"'),
        ("--auth-plugin", "token", "--auth-params", f'{{"toke": "{SECRET}"}}'),
        ("--auth-plugin", "token", "--auth-params", "file:///no/where"),
        ("--auth-plugin", "tls", "--auth-params", f"tlsCertFile:{SECRET}"),
    ],
)
def test_errors_of_credentials_hide_the_secret(options: tuple[str, ...], played: Played) -> None:
    said = played.refused(*options, "tenants", "list")
    assert SECRET not in said
    assert "--auth-p" in said or "/no/where" in said
    assert played.sent == []


def test_a_refusal_shows_no_secret(played: Played) -> None:
    played.refuse("GET", "tenants", 401, "HTTP 401 Unauthorized")
    said = played.refused("--token", SECRET, "--admin-url", f"http://user:{SECRET}@broker:8080", "tenants", "list")
    assert SECRET not in said
