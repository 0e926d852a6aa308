"""Keys of end-to-end encryption, and the actions for messages that cannot be decrypted."""

from __future__ import annotations

import enum
from collections.abc import Awaitable
from pathlib import Path
from typing import Protocol


class ConsumerCryptoFailureAction(enum.Enum):
    """Actions for a message that cannot be decrypted.

    FAIL: `receive` raises `CryptoError`, and the message stays unacknowledged. DISCARD: the consumer acknowledges the
    message and does not deliver it. CONSUME: the consumer delivers the encrypted payload: a batch as one message, and
    each chunk of a chunked message as one.
    """

    FAIL = "fail"
    DISCARD = "discard"
    CONSUME = "consume"


class KeyReader(Protocol):
    """A source of encryption keys: PEM files with RSA keys, or with EC keys for Java clients and Pulsarium only.

    The client calls the reader on the event loop: for a producer when it is made and every four hours, for a consumer
    with each data key that is new to the consumer. The client raises any exception of the reader as `CryptoError`.

    A method may be an `async def`, for example to ask a key management service. The client awaits the key: for a
    producer when the producer opens, for a consumer before it delivers the message and those behind it.
    """

    def get_public_key(self, name: str, metadata: dict[str, str]) -> bytes | Awaitable[bytes]:
        """Return the public key to encrypt for.

        Args:
            name: The key's name, from `encryption_keys` of the producer.
            metadata: Empty. Entries that the reader adds are sent along with each message.
        """
        ...

    def get_private_key(self, name: str, metadata: dict[str, str]) -> bytes | Awaitable[bytes]:
        """Return the private key for messages that are encrypted for the public key `name`.

        Args:
            name: The key's name, as the producer gave it.
            metadata: The entries that the producer's key reader added for this key.
        """
        ...


class CryptoKeyReader:
    """A key reader with one pair of keys for all names, in PEM files.

    The public key is in SPKI, the private key in PKCS1, SEC1 or PKCS8. A producer reads only the public file, a
    consumer only the private one. The files are read each time a key is needed.
    """

    def __init__(self, public_key_path: str, private_key_path: str) -> None:
        """Take the paths of two PEM files.

        Args:
            public_key_path: The public key. A consumer does not read this file.
            private_key_path: The private key, without a password. A producer does not read this file.
        """
        self._public = Path(public_key_path)
        self._private = Path(private_key_path)

    def get_public_key(self, name: str, metadata: dict[str, str]) -> bytes:
        """Return the content of the public key's file."""
        return self._public.read_bytes()

    def get_private_key(self, name: str, metadata: dict[str, str]) -> bytes:
        """Return the content of the private key's file."""
        return self._private.read_bytes()
