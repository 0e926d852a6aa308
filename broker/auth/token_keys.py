"""Read the keys that verify tokens: tokenSecretKey, tokenPublicKey, and those of tokenValidationKeysJwks (PIP-490)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, NoReturn

from pulsarium.broker.auth.sources import file_of, needs_extra, read_source
from pulsarium.broker.config.meaning import ConfigError

LEAST_SECRET: Final = {"HS256": 32, "HS384": 48, "HS512": 64}  # bytes, as JJWT requires
RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
LEAST_RSA: Final = 2048  # bits
EC: Final = {"ES256": 256, "ES384": 384, "ES512": 521}  # bits of the curve
CURVES: Final = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
JWKS: Final = "tokenValidationKeysJwks"
MOST_BYTES: Final = 1 << 20  # of a document; its keys take a hundredth of that


class TokenKey(NamedTuple):
    """A key, and the algorithms whose signatures the key verifies. All of them belong to the kind of the key."""

    key: Any
    algorithms: tuple[str, ...]


def secret_key(value: str) -> TokenKey:
    """Return the key of tokenSecretKey. Raise `ConfigError` when the key is too short."""
    content = read_source("tokenSecretKey", value)
    algorithms = _of_secret(content)
    if not algorithms:
        raise ConfigError("", "tokenSecretKey", f"is a key of {len(content)} bytes; HS256 needs at least 32")
    return TokenKey(content, algorithms)


def _of_secret(content: bytes) -> tuple[str, ...]:
    return tuple(name for name, least in LEAST_SECRET.items() if len(content) >= least)


def public_key(value: str, algorithm: str) -> TokenKey:
    """Return the key of tokenPublicKey. Raise `ConfigError` when the algorithm does not fit the key."""
    with needs_extra("tokenPublicKey"):
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
        from cryptography.hazmat.primitives.serialization import load_der_public_key
    content = read_source("tokenPublicKey", value)
    try:
        key = load_der_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        reason = "is not a public key in DER (X.509 SubjectPublicKeyInfo; openssl writes it with -outform DER)"
        raise ConfigError("", "tokenPublicKey", reason) from None
    if isinstance(key, RSAPublicKey) and algorithm in RSA:
        if key.key_size < LEAST_RSA:
            raise ConfigError("", "tokenPublicKey", f"has {key.key_size} bits; at least {LEAST_RSA} are needed")
        return TokenKey(key, RSA)
    if isinstance(key, EllipticCurvePublicKey) and algorithm in EC:
        return TokenKey(key, tuple(name for name, bits in EC.items() if bits == key.curve.key_size))
    raise ConfigError("", "tokenPublicAlg", f"{algorithm} does not fit the kind of key in tokenPublicKey")


def read_jwks(value: str) -> bytes:
    """Return the document that tokenValidationKeysJwks has or names.

    Raise `ConfigError` when there is none, and for what the broker's loop should not read: pipes and large files.
    """
    if value.lstrip().startswith("{"):
        return value.encode()
    path = file_of(value)
    if path is not None and path.exists() and not (path.is_file() and path.stat().st_size <= MOST_BYTES):
        raise ConfigError("", JWKS, f"{path} is no file of at most {MOST_BYTES >> 20} MiB")
    return read_source(JWKS, value)


def keys_of(document: bytes) -> dict[str, TokenKey]:
    """Return the keys of a JWKS document by kid, in their order. Keys for encryption are left out.

    Raise `ConfigError` for a document with any key that cannot be used. Its text shows no key.
    """
    try:
        listed = json.loads(document)["keys"]
    except (ValueError, TypeError, KeyError, RecursionError):
        listed = None
    if not isinstance(listed, list):
        raise ConfigError("", JWKS, 'is not a JWKS document: JSON with a list of "keys"')
    found: dict[str, TokenKey] = {}
    for number, jwk in enumerate(listed, start=1):
        if not isinstance(jwk, dict):
            _refuse(f"key {number}", "is not a JSON object")
        if jwk.get("use") == "enc":  # copied from an identity provider, whose set has such keys too
            continue
        kid = jwk.get("kid")
        if not (isinstance(kid, str) and kid):
            _refuse(f"key {number}", "has no kid")
        if kid in found:
            _refuse(f"kid {kid!r}", "names two keys")
        found[kid] = _key(jwk, f"kid {kid!r}")
    if not found:
        raise ConfigError("", JWKS, "has no key that verifies signatures")
    return found


def _refuse(which: str, why: str) -> NoReturn:
    raise ConfigError("", JWKS, f"{which} {why}")


def _key(jwk: Mapping[str, Any], which: str) -> TokenKey:
    with needs_extra(JWKS):
        from cryptography.exceptions import UnsupportedAlgorithm
        from jwt import PyJWK, PyJWTError
    if jwk.get("kty") != "oct" and "d" in jwk:
        _refuse(which, "is a private key; give the broker the public part only")
    try:
        key = PyJWK({name: value for name, value in jwk.items() if name != "alg"}).key
    except (PyJWTError, UnsupportedAlgorithm, ValueError, TypeError, KeyError, AttributeError):  # they quote the key
        _refuse(which, "cannot be read")
    fitting = _fitting(jwk, key, which)
    algorithm = jwk.get("alg")
    if algorithm is None:
        return TokenKey(key, fitting)
    if algorithm not in fitting:
        _refuse(which, f"has an alg that is none of {', '.join(fitting)}, which fit the key")
    return TokenKey(key, (algorithm,))


def _fitting(jwk: Mapping[str, Any], key: Any, which: str) -> tuple[str, ...]:
    """Return the algorithms of the kind and size of a key."""
    if jwk["kty"] == "oct":
        return _of_secret(key) or _refuse(which, f"has {len(key)} bytes; HS256 needs at least 32")
    if jwk["kty"] == "RSA":
        return RSA if key.key_size >= LEAST_RSA else _refuse(which, f"has {key.key_size} bits; RSA needs {LEAST_RSA}")
    if jwk.get("crv") in CURVES:
        return (CURVES[jwk["crv"]],)
    _refuse(which, f"is of a kind that tokens do not have; there are RSA, oct, and EC with {', '.join(CURVES)}")
