"""JSON Web Tokens as roles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from pulsarium.broker.auth.identity import AuthenticationError, HttpCredentials, Identity
from pulsarium.broker.auth.tokens import TokenProvider
from pulsarium.broker.config import Config, ConfigError
from tests.broker.auth.secured import SECRET, base64_of, by_token, token, unprotected

NOW = 1_000_000
LONG = b"k" * 64

pytestmark = pytest.mark.req("B-44")


def provider(**keys: Any) -> TokenProvider:
    return TokenProvider(by_token(**keys), lambda: NOW * 1000)


def with_public(key: Any, **keys: Any) -> TokenProvider:
    der = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return provider(tokenSecretKey=None, tokenPublicKey=f"data:;base64,{base64_of(der)}", **keys)


def verified(found: TokenProvider, text: str) -> Identity:
    return found.authenticate(text.encode(), None)


def refused(found: TokenProvider, text: str) -> str:
    with pytest.raises(AuthenticationError) as caught:
        verified(found, text)
    return str(caught.value)


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_a_token_is_verified_with_a_secret_key(algorithm: str) -> None:
    found = provider(tokenSecretKey=base64_of(LONG))
    assert verified(found, token("me", key=LONG, algorithm=algorithm)) == Identity("me")


def test_an_algorithm_that_wants_a_longer_key_is_refused() -> None:
    with pytest.warns(jwt.InsecureKeyLengthWarning):
        text = token("me", algorithm="HS512")
    assert "Failed to authentication token" in refused(provider(), text)


@pytest.fixture(scope="module")
def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS256"])
def test_a_token_is_verified_with_an_rsa_key(rsa_key: rsa.RSAPrivateKey, algorithm: str) -> None:
    assert verified(with_public(rsa_key), token("me", key=rsa_key, algorithm=algorithm)) == Identity("me")


def test_a_token_is_verified_with_an_elliptic_key() -> None:
    key = ec.generate_private_key(ec.SECP384R1())
    found = with_public(key, tokenPublicAlg="ES384")
    assert verified(found, token("me", key=key, algorithm="ES384")) == Identity("me")


def test_a_public_key_is_no_secret(rsa_key: rsa.RSAPrivateKey) -> None:
    der = rsa_key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert "Failed" in refused(with_public(rsa_key), unprotected("HS256", der, sub="admin"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "junk",
        "a.b.c",
        "\x00",
        token("me", key=b"another key that is long enough for it"),
        token("me") + "x",
        unprotected("none", b"", sub="admin"),
        jwt.encode({"sub": {"not": "a role"}}, SECRET),
        jwt.encode({"sub": "me", "exp": "soon"}, SECRET),
        jwt.encode({"sub": "me", "exp": 1e300}, SECRET),
    ],
    ids=range(11),
)
def test_a_token_that_proves_nothing_is_not_repeated(text: str) -> None:
    why = refused(provider(), text)
    assert not text.strip() or text not in why


def test_a_token_that_is_nested_too_deep_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def recursing(*args: Any, **named: Any) -> None:
        raise RecursionError

    monkeypatch.setattr(jwt, "decode", recursing)  # older releases of PyJWT raised RecursionError
    assert "RecursionError" in refused(provider(), token("me"))


def test_a_token_holds_for_its_time() -> None:
    assert verified(provider(), token("me", exp=NOW, nbf=NOW)) == Identity("me", NOW * 1000)
    assert "expired" in refused(provider(), token("me", exp=NOW - 1))
    assert "before its time" in refused(provider(), token("me", nbf=NOW + 1))
    lenient = provider(tokenAllowedClockSkewSeconds=1)
    assert verified(lenient, token("me", exp=NOW - 1, nbf=NOW + 1)).role == "me"
    assert "expired" in refused(lenient, token("me", exp=NOW - 2))


def test_other_claims_of_a_token_are_not_judged() -> None:
    assert verified(provider(), token("me", iat=NOW + 500, aud="others", iss="x", jti="y")).role == "me"


def test_the_role_may_be_absent_one_of_several_or_another_claim() -> None:
    assert verified(provider(), token(None)).role is None
    assert verified(provider(), jwt.encode({"sub": ["first", "second"]}, SECRET)).role == "first"
    assert verified(provider(), jwt.encode({"sub": []}, SECRET)).role is None
    others: list[Any] = [None, 5, {}, ["admin"]]
    for first in others:
        assert verified(provider(), jwt.encode({"sub": [first, "second"]}, SECRET)).role is None
    assert verified(provider(tokenAuthClaim="who"), token("me", who="you")).role == "you"


def test_a_token_is_for_its_audience() -> None:
    found = provider(tokenAudienceClaim="aud", tokenAudience="here")
    assert verified(found, token("me", aud="here")).role == "me"
    assert verified(found, token("me", aud=["there", "here"])).role == "me"
    for claims in ({}, {"aud": "there"}, {"aud": ["there"]}, {"aud": 5}):
        assert "Audiences" in refused(found, token("me", **claims))


def test_a_request_brings_its_token_in_a_header_or_in_its_query() -> None:
    found, text = provider(), token("me")

    def of(headers: dict[str, str], **query: str) -> Identity:
        return found.authenticate_http(HttpCredentials(headers, query))

    assert of({"authorization": f"Bearer {text}"}).role == "me"
    assert of({}, token=text).role == "me"
    assert of({}, token=f"Bearer {text}").role == "me"
    for headers in ({}, {"authorization": text}, {"authorization": f"Basic {text}"}, {"authorization": "Bearer "}):
        with pytest.raises(AuthenticationError):
            of(headers)
    with pytest.raises(AuthenticationError, match="Invalid HTTP Authorization header"):
        of({"authorization": "Basic eDp5"}, token=text)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"tokenSecretKey": None}, "tokenSecretKey: is not set, and AuthenticationProviderToken needs it"),
        ({"tokenSecretKey": base64_of(b"short")}, "tokenSecretKey: is a key of 5 bytes; HS256 needs at least 32"),
        ({"tokenAudienceClaim": "aud"}, "tokenAudience: is not set, and tokenAudienceClaim needs it"),
        ({"tokenSecretKey": None, "tokenPublicKey": "c2VjcmV0"}, "tokenPublicKey: is not a public key in DER"),
    ],
)
def test_settings_of_tokens_that_cannot_be_used_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        provider(**keys)
    assert str(caught.value).startswith(message)


def test_a_public_key_of_another_kind_is_refused(rsa_key: rsa.RSAPrivateKey) -> None:
    with pytest.raises(ConfigError, match=r"^tokenPublicAlg: ES256 does not fit the kind of key in tokenPublicKey"):
        with_public(rsa_key, tokenPublicAlg="ES256")


def test_a_public_key_that_is_too_small_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^tokenPublicKey: has 1024 bits; at least 2048 are needed"):
        with_public(rsa.generate_private_key(65537, 1024))


def test_a_secret_key_comes_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "secret.key"
    path.write_bytes(SECRET)
    assert verified(provider(tokenSecretKey=f"file://{path}"), token("me")).role == "me"


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jwt", None)
    with pytest.raises(ConfigError, match=r'needs jwt; install it with: pip install "pulsarium\[auth\]"'):
        TokenProvider(Config(tokenSecretKey=base64_of(SECRET)), lambda: 0)
