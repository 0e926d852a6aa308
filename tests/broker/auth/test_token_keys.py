"""Keys of a JWKS document that verify tokens by their kid (PIP-490)."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import OKPAlgorithm, RSAAlgorithm

from pulsarium.broker.auth.identity import AuthenticationError
from pulsarium.broker.auth.token_keys import MOST_BYTES, keys_of
from pulsarium.broker.auth.tokens import LONGEST_HEADER, MANY_KEYS, TokenProvider
from pulsarium.broker.config import ConfigError, profile_of
from tests.broker.auth.secured import OTHER_SECRET, SECRET, base64_of, by_token, jwk, jwks, token, unprotected
from tests.broker.web.admin.rest import ADMIN, rest_of
from tests.broker.web.websocket.talk import PRODUCER, websockets
from tests.broker.wire import serving

NOW = 1_000_000
RSA_KEY, OTHER_RSA_KEY = (rsa.generate_private_key(65537, 2048) for _ in range(2))
EC_KEY = ec.generate_private_key(ec.SECP256R1())
UNKNOWN_KID, INVALID = "INVALID_TOKEN_KID", "INVALID_TOKEN"


def provider(document: str | None, *, secret: bytes | None = None, **keys: Any) -> TokenProvider:
    single = None if secret is None else base64_of(secret)
    config = by_token(tokenSecretKey=single, tokenValidationKeysJwks=document, **keys)
    return TokenProvider(config, lambda: NOW * 1000)


def signed(key: Any, kid: str | None = None, algorithm: str | None = None, **claims: Any) -> str:
    kind = "HS256" if isinstance(key, bytes) else "ES256" if key is EC_KEY else "RS256"
    headers = None if kid is None else {"kid": kid}
    return token("me", key=key, algorithm=algorithm or kind, headers=headers, **claims)


def role(found: TokenProvider, text: str) -> str | None:
    return found.authenticate(text.encode(), None).role


def refusal(found: TokenProvider, text: str) -> str:
    """Return the code of a refusal."""
    with pytest.raises(AuthenticationError) as caught:
        role(found, text)
    assert text not in str(caught.value)
    return caught.value.code


# choosing the key


def test_a_token_is_verified_with_the_key_that_its_kid_names() -> None:
    found = provider(jwks(old=RSA_KEY, new=EC_KEY, secret=SECRET))
    for kid, key in (("old", RSA_KEY), ("new", EC_KEY), ("secret", SECRET)):
        assert role(found, signed(key, kid)) == "me"


def test_a_kid_of_another_key_is_not_followed_by_tries() -> None:
    assert refusal(provider(jwks(a=RSA_KEY, b=OTHER_RSA_KEY)), signed(RSA_KEY, "b")) == INVALID


@pytest.mark.parametrize("kid", [None, "unknown"])
def test_a_token_without_a_known_kid_is_tried_with_each_key(kid: str | None) -> None:
    found = provider(jwks(a=RSA_KEY, b=OTHER_RSA_KEY, c=EC_KEY), secret=SECRET)
    for key in (RSA_KEY, OTHER_RSA_KEY, EC_KEY, SECRET):
        assert role(found, signed(key, kid)) == "me"


@pytest.mark.parametrize(("kid", "code"), [(None, INVALID), ("unknown", UNKNOWN_KID)])
def test_a_refusal_says_whether_the_kid_was_the_problem(kid: str | None, code: str) -> None:
    assert refusal(provider(jwks(a=RSA_KEY)), signed(OTHER_RSA_KEY, kid)) == code


@pytest.mark.parametrize("kid", [None, "unknown", ""])
def test_a_required_kid_must_be_that_of_a_key(kid: str | None) -> None:
    found = provider(jwks(a=RSA_KEY), secret=SECRET, tokenRequireKid=True)
    assert role(found, signed(RSA_KEY, "a")) == "me"
    for key in (RSA_KEY, SECRET):
        assert refusal(found, signed(key, kid)) == UNKNOWN_KID


def test_a_required_kid_needs_keys_that_have_one() -> None:
    with pytest.raises(ConfigError, match="tokenRequireKid: needs tokenValidationKeysJwks"):
        provider(None, secret=SECRET, tokenRequireKid=True)


def test_without_a_document_the_kid_of_a_token_means_nothing() -> None:
    found = provider(None, secret=SECRET)
    assert role(found, signed(SECRET, "any")) == "me"
    assert refusal(found, signed(OTHER_SECRET, "any")) == INVALID


# algorithms


@pytest.mark.parametrize("form", [Encoding.DER, Encoding.PEM])
@pytest.mark.parametrize("kid", ["a", None, "unknown"])
def test_a_public_key_is_never_the_secret_of_a_token(form: Encoding, kid: str | None) -> None:
    """A forger signs with HS256 and the bytes of the public key, which everybody knows."""
    public = RSA_KEY.public_key().public_bytes(form, PublicFormat.SubjectPublicKeyInfo)
    forged = unprotected("HS256", public, sub="admin")
    if kid is not None:
        header = base64.urlsafe_b64encode(json.dumps({"alg": "HS256", "kid": kid}).encode()).decode().rstrip("=")
        forged = f"{header}.{forged.partition('.')[2]}"
    code = UNKNOWN_KID if kid == "unknown" else INVALID
    assert refusal(provider(jwks(a=RSA_KEY, b=SECRET)), forged) == code


def test_a_token_without_a_signature_is_refused() -> None:
    assert refusal(provider(jwks(a=RSA_KEY)), unprotected("none", b"", sub="admin")) == INVALID


def test_a_key_with_an_algorithm_verifies_no_other() -> None:
    found = provider(json.dumps({"keys": [jwk("a", RSA_KEY, alg="PS256")]}))
    assert role(found, signed(RSA_KEY, "a", "PS256")) == "me"
    for kid in ("a", None):
        assert refusal(found, signed(RSA_KEY, kid, "RS256")) == INVALID


def test_a_key_without_an_algorithm_verifies_those_of_its_kind() -> None:
    found = provider(jwks(a=RSA_KEY, b=b"k" * 48))
    for algorithm in ("RS256", "RS512", "PS384"):
        assert role(found, signed(RSA_KEY, "a", algorithm)) == "me"
    assert role(found, signed(b"k" * 48, "b", "HS384")) == "me"


# bounds


def never(*given: object, **options: object) -> None:
    raise AssertionError("it must not be called")


def test_a_huge_header_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    found, huge = provider(jwks(a=SECRET)), signed(SECRET, "k" * LONGEST_HEADER)
    monkeypatch.setattr(found._jwt, "get_unverified_header", never)
    assert refusal(found, huge) == INVALID


def test_keys_of_other_algorithms_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    found = provider(jwks(a=RSA_KEY, b=EC_KEY))
    monkeypatch.setattr(found._jwt, "decode", never)
    assert refusal(found, signed(SECRET)) == INVALID


def test_very_many_keys_are_worth_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    many = {f"k{number}": bytes([number]) * 32 for number in range(MANY_KEYS + 1)}
    for count, strict, warned in ((MANY_KEYS, False, 0), (MANY_KEYS + 1, True, 0), (MANY_KEYS + 1, False, 1)):
        found = provider(jwks(**dict(list(many.items())[:count])), tokenRequireKid=strict)
        found.watch(lambda seconds, reload: None)
        assert caplog.text.count("very many keys") == warned


# the document


@pytest.mark.parametrize(
    "form",
    [
        lambda path: f"file://{path}",
        lambda path: f"file:{path}",
        str,
        lambda path: f"data:;base64,{base64_of(path.read_bytes())}",
        lambda path: base64_of(path.read_bytes()),
        lambda path: path.read_text(),
    ],
    ids=["url", "short-url", "path", "data", "base64", "json"],
)
def test_a_document_is_given_in_each_form_of_a_key(form: Callable[[Path], str], tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text(jwks(a=SECRET))
    assert role(provider(form(path)), signed(SECRET, "a")) == "me"


def test_keys_for_encryption_are_left_out() -> None:
    document = json.dumps({"keys": [jwk("e", RSA_KEY, use="enc", alg="RSA-OAEP"), jwk("s", SECRET, use="sig")]})
    assert list(keys_of(document.encode())) == ["s"]


PRIVATE = RSAAlgorithm.to_jwk(RSA_KEY, as_dict=True)
EDWARDS = OKPAlgorithm.to_jwk(ed25519.Ed25519PrivateKey.generate().public_key(), as_dict=True)
SMALL = rsa.generate_private_key(65537, 1024)


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ("x", "is not a JWKS document"),
        ('{"keys": {}}', "is not a JWKS document"),
        ("[" * 100_000, "is not a JWKS document"),
        ([], "has no key that verifies signatures"),
        ([5], "key 1 is not a JSON object"),
        ([jwk("a", SECRET), jwk(None, SECRET)], "key 2 has no kid"),
        ([jwk("a", SECRET), jwk("a", RSA_KEY)], "kid 'a' names two keys"),
        ([{**PRIVATE, "kid": "a"}], "kid 'a' is a private key"),
        ([{"kid": "a", "kty": ["oct"]}], "kid 'a' cannot be read"),
        ([{"kid": "a", "kty": "oct", "k": 5}], "kid 'a' cannot be read"),
        ([jwk("a", b"short")], "kid 'a' has 5 bytes; HS256 needs at least 32"),
        ([jwk("a", SMALL)], "kid 'a' has 1024 bits; RSA needs 2048"),
        ([jwk("a", ec.generate_private_key(ec.SECP256K1()))], "kid 'a' is of a kind that tokens do not have"),
        ([{**EDWARDS, "kid": "a"}], "kid 'a' is of a kind that tokens do not have"),
        ([jwk("a", RSA_KEY, alg="HS256")], "kid 'a' has an alg that is none of RS256"),
        ([jwk("a", SECRET, alg={})], "kid 'a' has an alg that is none of HS256"),
    ],
)
def test_a_document_with_an_unusable_key_is_refused_as_a_whole(document: Any, says: str) -> None:
    text = document if isinstance(document, str) else json.dumps({"keys": document})
    with pytest.raises(ConfigError) as caught:
        keys_of(text.encode())
    assert str(caught.value).startswith(f"tokenValidationKeysJwks: {says}")
    assert jwk("", SECRET)["k"] not in str(caught.value)


# reading the document again


def test_a_changed_document_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text(jwks(a=SECRET))
    found = provider(str(path))
    path.write_text(jwks(a=SECRET, b=OTHER_SECRET))
    found.reload()
    assert (role(found, signed(SECRET, "a")), role(found, signed(OTHER_SECRET, "b"))) == ("me", "me")
    path.write_text(jwks(b=OTHER_SECRET))
    found.reload()
    assert refusal(found, signed(SECRET, "a")) == UNKNOWN_KID


@pytest.mark.parametrize("text", ["", '{"keys": []}', None], ids=["empty", "no-keys", "no-file"])
def test_a_document_that_cannot_be_used_leaves_the_last_good_keys(
    text: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "keys.json"
    path.write_text(jwks(a=SECRET))
    found = provider(str(path))
    path.unlink() if text is None else path.write_text(text)
    for _ in range(2):
        found.reload()
    assert role(found, signed(SECRET, "a")) == "me"
    assert caplog.text.count("the broker keeps the old ones") == 1
    samples = {name: value for name, _, value in found.samples()}
    assert samples["pulsar_authentication_token_keys"] == 1
    assert samples["pulsar_authentication_token_keys_reload_failures_total"] == 2
    path.write_text(jwks(a=SECRET, b=OTHER_SECRET))
    found.reload()
    assert role(found, signed(OTHER_SECRET, "b")) == "me"


def test_no_log_has_a_key_or_a_token(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    path = tmp_path / "keys.json"
    path.write_text(jwks(a=SECRET))
    found, text = provider(str(path)), signed(OTHER_SECRET, "b")
    refusal(found, text)
    path.write_text(json.dumps({"keys": [jwk("a", SECRET, alg="HS512")]}))
    found.reload()
    assert "the broker keeps the old ones" in caplog.text
    assert [secret for secret in (jwk("a", SECRET)["k"], text) if secret in caplog.text] == []


# where tokens are verified

KEYS: dict[str, Any] = {"tokenSecretKey": None, "tokenValidationKeysJwks": jwks(a=SECRET, b=EC_KEY)}
ON = profile_of("pip", pip=[490])


async def test_http_takes_tokens_of_each_key_and_counts_unknown_kids() -> None:
    async with serving(by_token(**KEYS, superUserRoles=frozenset({"me"})), profile=ON) as bed:
        rest, answers = rest_of(bed), list[int]()
        for text in (signed(SECRET, "a"), signed(EC_KEY, "b"), signed(RSA_KEY, "c")):
            answer = await rest.call("GET", f"{ADMIN}/clusters", authorization=f"Bearer {text}")
            answers.append(answer.status)
        metrics = (await rest.call("GET", "/metrics/")).body.decode()
    assert answers == [200, 200, 401]
    assert 'auth_method="token",reason="INVALID_TOKEN_KID"} 1\n' in metrics
    assert 'pulsar_authentication_token_keys{cluster="standalone"} 2\n' in metrics


async def test_websockets_take_tokens_of_each_key() -> None:
    async with websockets(by_token(**KEYS, superUserRoles=frozenset({"me"}))) as client:
        for text, status in ((signed(SECRET, "a"), 101), (signed(EC_KEY, "b"), 101), (signed(RSA_KEY, "c"), 401)):
            assert (await client.talk(PRODUCER, Authorization=f"Bearer {text}")).status == status


def test_an_interval_without_a_file_to_read_again_is_refused() -> None:
    for document in (None, jwks(a=SECRET)):
        with pytest.raises(ConfigError, match="tokenValidationKeysRefreshSeconds: needs a file"):
            provider(document, secret=SECRET, tokenValidationKeysRefreshSeconds=1)


def test_a_document_that_is_no_file_of_a_fair_size_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large.jwks").write_bytes(b" " * (MOST_BYTES + 1))
    for name in ("pipe", "large.jwks"):
        with pytest.raises(ConfigError, match=f"{name} is no file of at most 1 MiB"):
            provider((tmp_path / name).as_uri())
