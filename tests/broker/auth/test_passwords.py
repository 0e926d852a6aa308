"""Users and passwords as roles."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from pulsarium.broker.auth.identity import AuthenticationError, HttpCredentials, Identity
from pulsarium.broker.auth.passwords import PasswordProvider
from pulsarium.broker.config import Config, ConfigError
from tests.broker.auth.secured import PASSWORDS, base64_of

pytestmark = pytest.mark.req("B-45")


def provider(users: str = PASSWORDS) -> PasswordProvider:
    return PasswordProvider(Config(basicAuthConf=f"data:;base64,{base64_of(users.encode())}"))


def header(text: str) -> HttpCredentials:
    return HttpCredentials({"authorization": text}, {})


@pytest.mark.parametrize("user", ["admin", "user"])
def test_a_password_is_checked_against_what_htpasswd_writes(user: str) -> None:
    assert provider().authenticate(f"{user}:123456".encode(), None) == Identity(user)
    basic = base64.b64encode(f"{user}:123456".encode()).decode()
    assert provider().authenticate_http(header(f"Basic {basic}")) == Identity(user)
    assert provider().authenticate_http(header(f"basic {basic}")) == Identity(user)
    assert provider().authenticate_http(header(f"Basic {basic.rstrip('=')}")) == Identity(user)


@pytest.mark.parametrize(
    "data",
    [
        "",
        ":",
        "admin",
        "admin:",
        "admin:wrong",
        "user:wrong",
        "nobody:123456",
        "admin:123456:more",
        "admin:\x00",
        "é:é",
    ],
)
def test_a_wrong_password_proves_nothing(data: str) -> None:
    with pytest.raises(AuthenticationError) as caught:
        provider().authenticate(data.encode(), None)
    assert "wrong" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "Basic", "Basic !", "Bearer x", "Basic YWRtaW4=", "Basic a b", "Basic é"])
def test_headers_that_prove_nothing(text: str) -> None:
    with pytest.raises(AuthenticationError):
        provider().authenticate_http(header(text))


def test_a_hash_that_pulsar_does_not_take_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    found = provider("sha:{SHA}fEqNCco3Yq9h5ZUglD3CZJT4lBs=\n")
    assert [str(record.msg) for record in caplog.records] == [
        "this user's password has a hash that Pulsar does not take: use htpasswd -m user=sha"
    ]
    with pytest.raises(AuthenticationError):
        found.authenticate(b"sha:123456", None)


@pytest.mark.parametrize(
    ("users", "message"),
    [("one\n", "its line 1 is not user:hash"), (PASSWORDS + "a:b:c", "its line 3 is not user:hash")],
)
def test_a_file_that_htpasswd_did_not_write_is_refused(users: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^basicAuthConf: {message}"):
        provider(users)


def test_users_are_wanted() -> None:
    with pytest.raises(ConfigError, match=r"^basicAuthConf: is wanted by AuthenticationProviderBasic"):
        PasswordProvider(Config())


def test_users_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / ".htpasswd"
    path.write_text(PASSWORDS)
    assert PasswordProvider(Config(basicAuthConf=str(path))).authenticate(b"admin:123456", None).role == "admin"
