"""Pairs of keys for end-to-end encryption, in files."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from pulsarium.client import CryptoKeyReader


class KeyFiles(NamedTuple):
    public: str
    private: str

    @property
    def reader(self) -> CryptoKeyReader:
        return CryptoKeyReader(self.public, self.private)


def key_files(folder: Path, kind: str) -> KeyFiles:
    key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey = (
        rsa.generate_private_key(65537, 2048) if kind == "rsa" else ec.generate_private_key(ec.SECP521R1())
    )
    private, public = folder / "private.pem", folder / "public.pem"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return KeyFiles(str(public), str(private))
