"""Authentication of requests by one of several providers, and anonymous clients."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from pulsarium.broker.auth.authentication import Authentication, CertificateProvider
from pulsarium.broker.auth.identity import AuthenticationError, HttpCredentials, Identity
from pulsarium.broker.config import ConfigError
from tests.broker.auth.secured import BASIC, PASSWORDS, TLS, TOKEN, base64_of, by_token, token

USERS = f"data:;base64,{base64_of(PASSWORDS.encode())}"
CERTIFICATE = {"subject": ((("commonName", "certified"),),)}


def authentication(*providers: str, **keys: Any) -> Authentication:
    return Authentication(by_token(authenticationProviders=providers, basicAuthConf=USERS, **keys), lambda: 0)


def role(found: Authentication, *, certificate: dict[str, Any] | None = None, **headers: str) -> str | None:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return found.of_request(HttpCredentials(named, {}, certificate)).role


BY_TOKEN = f"Bearer {token('tokened')}"
BY_PASSWORD = f"Basic {base64.b64encode(b'admin:123456').decode()}"


def test_providers_are_asked_in_the_order_of_their_names() -> None:
    found = authentication(TOKEN, TLS, BASIC)
    assert role(found, authorization=BY_TOKEN) == "tokened"
    assert role(found, authorization=BY_PASSWORD) == "admin"
    assert role(found, certificate=CERTIFICATE) == "certified"
    assert role(found, certificate=CERTIFICATE, authorization=BY_PASSWORD) == "admin"
    assert role(found, certificate=CERTIFICATE, authorization=BY_TOKEN) == "certified"


def test_a_request_may_name_its_method() -> None:
    found = authentication(TOKEN, TLS)
    by_name = role(found, certificate=CERTIFICATE, authorization=BY_TOKEN, x_pulsar_auth_method_name="token")
    assert by_name == "tokened"
    with pytest.raises(AuthenticationError, match="Unsupported authentication method"):
        role(found, authorization=BY_TOKEN, x_pulsar_auth_method_name="basic")
    with pytest.raises(AuthenticationError, match="Invalid HTTP Authorization header"):
        role(found, certificate=CERTIFICATE, x_pulsar_auth_method_name="token")


def test_a_strict_broker_wants_the_method() -> None:
    found = authentication(TOKEN, strictAuthMethod=True)
    with pytest.raises(AuthenticationError, match="Authentication method missing"):
        role(found, authorization=BY_TOKEN)
    assert role(found, authorization=BY_TOKEN, x_pulsar_auth_method_name="token") == "tokened"


def test_a_client_without_credentials_is_anonymous_or_refused() -> None:
    with pytest.raises(AuthenticationError, match="Authentication required"):
        role(authentication(TOKEN, TLS), authorization="Bearer junk")
    found = authentication(TOKEN, anonymousUserRole="anonymous")
    assert role(found, authorization="Bearer junk") == "anonymous"
    assert found.anonymous == "anonymous"
    assert authentication(TOKEN, anonymousUserRole=" ").anonymous is None


def test_providers_by_the_method_of_connect() -> None:
    found = authentication(TOKEN, TLS)
    assert found.provider("token") is not None
    assert found.provider("tls") is not None
    assert found.provider("basic") is None


def test_authentication_without_providers_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    assert role(authentication()) is None
    assert "no client can prove a role with authenticationEnabled" in str(caplog.records[0].msg)


def test_an_unknown_provider_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"authenticationProviders: 'false' is not one of .*, \S+Token$"):
        authentication("false")


@pytest.mark.req("B-45")
def test_the_common_name_is_the_role() -> None:
    shown = {"subject": ((("countryName", "DE"),), (("commonName", "first"),), (("commonName", "last"),))}
    assert CertificateProvider().authenticate(b"", shown) == Identity("last")
    assert CertificateProvider().authenticate_http(HttpCredentials({}, {}, shown)) == Identity("last")


@pytest.mark.req("B-45")
@pytest.mark.parametrize("shown", [None, {}, {"subject": ()}, {"subject": ((("commonName", ""),),)}])
def test_no_role_comes_of_no_certificate_or_one_without_a_name(shown: dict[str, object] | None) -> None:
    with pytest.raises(AuthenticationError):
        CertificateProvider().authenticate(b"", shown)
