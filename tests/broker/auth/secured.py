"""Keys, tokens, passwords and certificates of tests, and the settings of a broker that accepts them."""

from __future__ import annotations

import base64
import datetime as dt
import hmac
import ipaddress
import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from pulsarium.broker.config import Config

PREFIX = "org.apache.pulsar.broker.authentication.AuthenticationProvider"
TOKEN, BASIC, TLS = f"{PREFIX}Token", f"{PREFIX}Basic", f"{PREFIX}Tls"
SECRET = b"a secret of tests, thirty-two bytes at least"
OTHER_SECRET = b"another secret of tests, thirty-two bytes at least"
# Users admin and user with the password 123456, as htpasswd -m and htpasswd -d write them.
PASSWORDS = "admin:$apr1$FG4AO6aX$KGYPuMoLUou3i6vUkPUUf.\nuser:14UaTZqKDvWIQ\n"


def base64_of(content: bytes) -> str:
    return base64.b64encode(content).decode()


def token(
    role: str | None,
    *,
    key: Any = SECRET,
    algorithm: str = "HS256",
    headers: dict[str, str] | None = None,
    **claims: Any,
) -> str:
    """Sign a token. `exp` and `nbf` are in seconds since the epoch."""
    subject = {} if role is None else {"sub": role}
    return jwt.encode({**subject, **claims}, key, algorithm, headers)


def jwk(kid: str | None, key: Any, **others: Any) -> dict[str, Any]:
    """Return a key as a member of a JWKS document: a secret, or the public part of a pair."""
    if isinstance(key, bytes):
        made: dict[str, Any] = {"kty": "oct", "k": base64.urlsafe_b64encode(key).decode().rstrip("=")}
    else:
        kind = ECAlgorithm if isinstance(key, ec.EllipticCurvePrivateKey) else RSAAlgorithm
        made = dict(kind.to_jwk(key.public_key(), as_dict=True))
        made.pop("key_ops", None)
    return {**made, **({} if kid is None else {"kid": kid}), **others}


def jwks(**keys: Any) -> str:
    """Return a JWKS document with a key for each kid."""
    return json.dumps({"keys": [jwk(kid, key) for kid, key in keys.items()]})


def bearer(role: str | None, **claims: Any) -> dict[str, str]:
    """Return the header that authenticates a request as a role."""
    return {"authorization": f"Bearer {token(role, **claims)}"}


def by_token(**others: Any) -> Config:
    """Return settings with tokens and grants. Role admin is a superuser, role proxy may act for other roles."""
    keys: dict[str, Any] = {
        "authenticationEnabled": True,
        "authorizationEnabled": True,
        "authenticationProviders": (TOKEN,),
        "tokenSecretKey": base64_of(SECRET),
        "superUserRoles": frozenset({"admin"}),
        "proxyRoles": frozenset({"proxy"}),
    }
    return Config(**{**keys, **others})


class Files(NamedTuple):
    """PEM files of a certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority, whose own certificate is in the file `path`."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.path = folder / f"{name}.pem"
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        made = _builder(self._name, self._name, self._key.public_key())
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        made = made.add_extension(usage, critical=True)
        # Python 3.13 and later require both key identifiers.
        made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
        self.path.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))
        self._identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())

    def sign(self, *common_names: str) -> Files:
        """Sign a certificate for localhost, and for clients with these common names."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name) for name in common_names])
        hosts = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        made = _builder(subject, self._name, key.public_key())
        made = made.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        made = made.add_extension(self._identifier, critical=False)
        certificate = made.sign(self._key, hashes.SHA256())
        found = Files(self._folder / f"{common_names[0]}.crt", self._folder / f"{common_names[0]}.key")
        found.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
        found.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return found


def _builder(subject: x509.Name, issuer: x509.Name, key: Any) -> x509.CertificateBuilder:
    now = _now()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
    )


def unprotected(algorithm: str, key: bytes, **claims: Any) -> str:
    """Make a token that no library makes: without a signature, or signed with a public key in place of a secret."""
    parts = ({"alg": algorithm}, claims)
    text = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    signature = b"" if algorithm == "none" else hmac.digest(key, text.encode(), "sha256")
    return f"{text}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


@cache
def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
