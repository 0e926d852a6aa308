"""Keys and recorded entries that the tests of encryption share."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import anyio
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

VECTORS = Path(__file__).parent / "vectors"


KINDS = ("rsa", "ec")


class Recorded(NamedTuple):
    """Entries that an official client sent (see encrypted.txt)."""

    client: str
    key: str
    compression: str
    batched: bool
    entries: list[bytes]

    def __str__(self) -> str:
        return f"{self.client}-{self.key}-{self.compression}-{'batch' if self.batched else 'single'}"

    @property
    def messages(self) -> list[bytes]:
        return [b"%d" % number + b"abcd" * (20 if self.client == "python" else 2000) for number in range(2)]


def recorded() -> list[Recorded]:
    lines = (VECTORS / "encrypted.txt").read_text().splitlines()
    rows = (line.split() for line in lines if not line.startswith("#"))
    return [
        Recorded(client, key, compression, batched == "batch", [bytes.fromhex(entry) for entry in entries])
        for client, key, compression, batched, *entries in rows
    ]


def private_pem(kind: str) -> bytes:
    return (VECTORS / f"{kind}-private.pem").read_bytes()


def public_pem(kind: str) -> bytes:
    return public_bytes(load_pem_private_key(private_pem(kind), None).public_key())


def public_bytes(key: PublicKeyTypes) -> bytes:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


class Keys:
    """A key reader whose key names are kinds of keys."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, dict[str, str]]] = []

    def get_public_key(self, name: str, metadata: dict[str, str]) -> bytes:
        self.asked.append(("public", name, dict(metadata)))
        return public_pem(name)

    def get_private_key(self, name: str, metadata: dict[str, str]) -> bytes:
        self.asked.append(("private", name, dict(metadata)))
        return private_pem(name)


class AwaitedKeys:
    """A key reader whose keys come when `come` is set. With `fails`, the key of this name does not come."""

    def __init__(self, fails: str = "") -> None:
        self.come = anyio.Event()
        self.fails = fails
        self.asked = 0

    async def get_public_key(self, name: str, metadata: dict[str, str]) -> bytes:
        await self._wait(name)
        return public_pem(name)

    async def get_private_key(self, name: str, metadata: dict[str, str]) -> bytes:
        await self._wait(name)
        return private_pem(name)

    async def _wait(self, name: str) -> None:
        self.asked += 1
        await self.come.wait()
        if name == self.fails:
            raise LookupError("no such key")
