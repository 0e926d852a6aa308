"""Generate keys, certificates and tokens for one run."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID
from jwt.algorithms import HMACAlgorithm

_SECRET = b"the secret of one run of the matrix, long enough"
READ_AGAIN = 60  # seconds between two looks at the keys of PIP-490
_TOKENS = "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"


class KeyId(Enum):
    """The kid of a key of tokens (PIP-490)."""

    OWN = "own"
    """The key of the token of the kit."""
    NEXT = "next"

    @property
    def secret(self) -> bytes:
        return _SECRET if self is KeyId.OWN else _SECRET.upper()


@dataclass(frozen=True)
class Material:
    """Files in `folder`: a pair of RSA keys, and a certificate for localhost with its certificate authority."""

    folder: Path

    @property
    def token(self) -> str:
        """Return the token of a superuser. Brokers that know one key pass over its kid."""
        return self.token_of(KeyId.OWN)

    @property
    def unnamed_token(self) -> str:
        """Return a token without a kid."""
        return jwt.encode({"sub": "admin"}, _SECRET, "HS256")

    def token_of(self, kid: KeyId) -> str:
        """Return a token with the signature and the name of a key."""
        return jwt.encode({"sub": "admin"}, kid.secret, "HS256", {"kid": kid.value})

    @property
    def wrong_token(self) -> str:
        """Return a token with the signature of another key."""
        return jwt.encode({"sub": "admin"}, _SECRET[::-1], "HS256")

    def settings(self) -> dict[str, str]:
        """Return the settings of a broker with token authentication and TLS on a free port."""
        return {
            "authenticationEnabled": "true",
            "authenticationProviders": _TOKENS,
            "tokenSecretKey": f"file://{self.folder / 'secret.key'}",
            "superUserRoles": "admin",
            "brokerServicePortTls": "0",
            "webServicePortTls": "0",
            "tlsCertificateFilePath": str(self.folder / "server.pem"),
            "tlsKeyFilePath": str(self.folder / "server.key"),
        }

    def key_settings(self) -> dict[str, str]:
        """Return further settings of a broker that finds the keys of tokens by kid (PIP-490)."""
        return {
            "tokenValidationKeysJwks": f"file://{self.folder / 'keys.json'}",
            "tokenValidationKeysRefreshSeconds": str(READ_AGAIN),
            "tokenRequireKid": "true",
        }

    def publish(self, *kids: KeyId) -> None:
        """Write the document of the keys, which a broker reads some time later."""
        keys = [{"kid": kid.value, **HMACAlgorithm.to_jwk(kid.secret, as_dict=True)} for kid in kids]
        (self.folder / "keys.json").write_text(json.dumps({"keys": keys}))


def make(folder: Path) -> Material:
    """Generate all files, with certificates that are valid for a day."""
    folder.mkdir(parents=True, exist_ok=True)
    pair = rsa.generate_private_key(65537, 2048)
    public = pair.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / "public.pem").write_bytes(public)
    # the format of the Go client, which the other clients can read too
    (folder / "private.pem").write_bytes(
        pair.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    )
    (folder / "secret.key").write_bytes(_SECRET)
    authority, server = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    (folder / "authority.pem").write_bytes(_certificate("authority", authority, authority))
    (folder / "server.pem").write_bytes(_certificate("localhost", server, authority))
    (folder / "server.key").write_bytes(_private(server))
    stranger = ec.generate_private_key(ec.SECP256R1())
    (folder / "other.pem").write_bytes(_certificate("authority", stranger, stranger))
    material = Material(folder)
    material.publish(KeyId.OWN)
    return material


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _certificate(name: str, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a certificate of `key`, self-signed when `key` is the signer."""
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .issuer_name(_named("authority"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=key is signer, path_length=None), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if key is signer:
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        made = made.add_extension(usage, critical=True)
        made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    else:
        hosts = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        made = made.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
    return made.sign(signer, hashes.SHA256()).public_bytes(Encoding.PEM)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
