"""Where the keys of end-to-end encryption come from, and what becomes of messages that they do not open."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Protocol


class ConsumerCryptoFailureAction(enum.Enum):
    """What becomes of a message that cannot be decrypted.

    FAIL: `receive` raises CryptoError, and the message stays unacknowledged. DISCARD: it is acknowledged and not
    delivered. CONSUME: it is delivered as it is, a batch as one message, of a chunked message each chunk as one.
    """

    FAIL = "fail"
    DISCARD = "discard"
    CONSUME = "consume"


class KeyReader(Protocol):
    """Finds the keys: RSA, or EC where only Java clients and this one take part, as the bytes of PEM files.

    Called on the event loop, for a producer when it starts and every four hours, for a consumer with each data key that
    it has not seen. What either raises becomes a CryptoError.
    """

    def get_public_key(self, name: str, metadata: dict[str, str]) -> bytes:
        """The public key to encrypt for. What is added to `metadata` goes along with each message."""
        ...

    def get_private_key(self, name: str, metadata: dict[str, str]) -> bytes:
        """The private key for messages encrypted under `name`; `metadata` is what went along with the message."""
        ...


class CryptoKeyReader:
    """One pair of keys, whatever the name: a public key in PEM (SPKI), and a private one (PKCS1, SEC1 or PKCS8).

    A producer reads the public file only, a consumer the private one. The files are read each time a key is needed.
    """

    def __init__(self, public_key_path: str, private_key_path: str) -> None:
        self._public = Path(public_key_path)
        self._private = Path(private_key_path)

    def get_public_key(self, name: str, metadata: dict[str, str]) -> bytes:
        return self._public.read_bytes()

    def get_private_key(self, name: str, metadata: dict[str, str]) -> bytes:
        return self._private.read_bytes()
