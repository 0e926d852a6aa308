"""End-to-end encryption of payloads (PIP-4), as in the official clients.

A producer makes a data key and encrypts each payload with it: AES-GCM, a random nonce in `encryption_param`, the tag
behind the ciphertext. Each message carries the data key in `encryption_keys`, once for each public key, by RSA-OAEP
with SHA-1 or ECIES. A producer compresses a payload, or a batch as one, before it encrypts it. A consumer decrypts
before it decompresses. `encryption_algo` stays empty: no official client sets or reads it.

The `cryptography` package is loaded at the first use. The extra `client` installs it.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from pulsarium.client.entry import ecies
from pulsarium.proto.errors import EncryptionError, MissingExtra, look_for
from pulsarium.proto.generated.PulsarApi_pb2 import EncryptionKeys, MessageMetadata
from pulsarium.proto.text import text_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.padding import OAEP
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

# A function that returns a PEM file's bytes for the name of a key and the texts that accompany it. The texts that the
# function adds for a public key are sent with each message, and are passed back when the private key is asked for. The
# function may raise any exception, and may return an awaitable of the bytes.
KeySource: TypeAlias = Callable[[str, dict[str, str]], bytes | Awaitable[bytes]]

# Seconds after which a producer makes a new data key.
ROTATION = 4 * 3600.0

_DATA_KEY = 32
_NONCE = 12
_MOST_DATA_KEYS = 256  # in a consumer's cache


class KeyAwaited(Exception):
    """A key that the key reader returns as an awaitable, where nothing can be awaited."""

    def __init__(self, pem: Awaitable[bytes], kind: str, name: str) -> None:
        super().__init__(f"{name}: the {kind} key must be awaited")
        self.key: EncryptionKeys | None = None
        """The encrypted data key that needs this private key."""
        self._pem = pem
        self._kind = kind
        self._name = name

    async def pem(self) -> bytes:
        """Await the key, and raise `EncryptionError` when the key reader fails."""
        try:
            return _checked(await self._pem, self._kind, self._name)
        except EncryptionError:
            raise
        except Exception as error:
            raise _no_key(self._kind, self._name, error) from error

    def close(self) -> None:
        """Forget the key, because the key reader is asked again later."""
        if inspect.iscoroutine(self._pem):
            self._pem.close()


class MessageEncryptor:
    """Encrypt the payloads of one producer for all public keys in `names`.

    With `is_async`, the key reader returns awaitables. `rotate` must be called before the first payload then, and
    instead of the own rotation.
    """

    def __init__(self, names: Sequence[str], public_key: KeySource, now: float, *, rotation: float = ROTATION) -> None:
        """Read the public keys, and raise `EncryptionError` when one of them cannot be used.

        `now` and `rotation` are in seconds, by any clock that only goes forward.
        """
        self._names = tuple(dict.fromkeys(names))
        self._public_key = public_key
        self._rotation = rotation
        self._failure: EncryptionError | None = None
        self.is_async: bool = False
        try:
            self._rotate(now)
        except KeyAwaited as awaited:
            awaited.close()
            self.is_async = True

    def encrypt(self, metadata: MessageMetadata, payload: bytes, now: float) -> bytes:
        """Return the encrypted payload, and add to `metadata` what a consumer needs to decrypt it."""
        if self._failure is not None:
            raise EncryptionError(str(self._failure))
        if not self.is_async and now - self._since >= self._rotation:
            self._rotate(now)
        nonce = os.urandom(_NONCE)
        encrypted = self._cipher.encrypt(nonce, payload, None)
        metadata.encryption_keys.extend(self._keys)
        metadata.encryption_param = nonce
        return encrypted

    async def rotate(self) -> None:
        """Make a new data key as `encrypt` does in time, and await the public keys.

        Raise `EncryptionError` when one of them cannot be used. `encrypt` raises the error then, until a later call
        succeeds.
        """
        data_key = os.urandom(_DATA_KEY)
        try:
            keys = [await self._awaited(name, data_key) for name in self._names]
        except EncryptionError as error:
            self._failure = error
            raise
        self._keys, self._cipher, self._failure = keys, _aes(data_key), None

    def _rotate(self, now: float) -> None:
        """Make a new data key, and read the public keys again, because they may have been replaced."""
        data_key = os.urandom(_DATA_KEY)
        self._keys = [self._encrypted(name, data_key) for name in self._names]
        self._cipher = _aes(data_key)
        self._since = now

    def _encrypted(self, name: str, data_key: bytes) -> EncryptionKeys:
        accompanying: dict[str, str] = {}
        return _for(name, _read(self._public_key, "public", name, accompanying), accompanying, data_key)

    async def _awaited(self, name: str, data_key: bytes) -> EncryptionKeys:
        accompanying: dict[str, str] = {}
        try:
            pem = _read(self._public_key, "public", name, accompanying)
        except KeyAwaited as awaited:
            pem = await awaited.pem()
        return _for(name, pem, accompanying, data_key)


class MessageDecryptor:
    """Decrypt the payloads that a consumer receives.

    Data keys are cached, because the private key's operation is slow.
    """

    def __init__(self, private_key: KeySource) -> None:
        self._private_key = private_key
        self._ciphers: dict[bytes, AESGCM] = {}
        self._failures: dict[bytes, EncryptionError] = {}  # of awaited keys, for the message that needs them

    def decrypt(self, metadata: MessageMetadata, payload: bytes) -> bytes:
        """Return the payload, still compressed.

        One usable key is enough. Otherwise raise `EncryptionError` with the reason for each key. Raise `KeyAwaited` for
        a key to be passed to `fetch`, after which the call is repeated.
        """
        _require_cryptography()
        from cryptography.exceptions import InvalidTag

        reasons = []
        for key in metadata.encryption_keys:
            try:
                return self._cipher(key).decrypt(metadata.encryption_param, payload, None)
            except EncryptionError as error:
                reasons.append(str(error))
            except (InvalidTag, ValueError):  # ValueError: a nonce of a size that AES-GCM does not take
                reasons.append(f"{text_of(key.key)}: the payload was damaged, or encrypted with another data key")
        self._failures.clear()
        raise EncryptionError(f"no key decrypts this message: {'; '.join(reasons) or 'it names no key'}")

    async def fetch(self, awaited: KeyAwaited) -> None:
        """Await a key. `decrypt` finds its data key, or the reason why there is none."""
        assert awaited.key is not None
        try:
            self._keep(awaited.key, await awaited.pem())
        except EncryptionError as error:
            self._failures[awaited.key.value] = error

    def _cipher(self, key: EncryptionKeys) -> AESGCM:
        cipher = self._ciphers.get(key.value)
        if cipher is not None:
            return cipher
        if key.value in self._failures:
            raise self._failures[key.value]
        accompanying = {text_of(pair.key): text_of(pair.value) for pair in key.metadata}
        try:
            return self._keep(key, _read(self._private_key, "private", text_of(key.key), accompanying))
        except KeyAwaited as awaited:
            awaited.key = key
            raise

    def _keep(self, key: EncryptionKeys, pem: bytes) -> AESGCM:
        """Return the cipher of a data key, and keep it."""
        cipher = self._ciphers[key.value] = _aes(_unwrap(text_of(key.key), pem, key.value))
        if len(self._ciphers) > _MOST_DATA_KEYS:
            del self._ciphers[next(iter(self._ciphers))]
        return cipher


def _for(name: str, pem: bytes, accompanying: dict[str, str], data_key: bytes) -> EncryptionKeys:
    """Return the data key, encrypted for a public key."""
    keys = EncryptionKeys(key=name, value=_wrap(name, pem, data_key))
    for key, value in accompanying.items():
        keys.metadata.add(key=key, value=value)
    return keys


def _read(source: KeySource, kind: str, name: str, accompanying: dict[str, str]) -> bytes:
    """Return the key of a key reader. Raise `KeyAwaited` for an awaitable."""
    _require_cryptography()
    try:
        pem = source(name, accompanying)
    except Exception as error:
        raise _no_key(kind, name, error) from error
    if inspect.isawaitable(pem):
        raise KeyAwaited(pem, kind, name)
    return _checked(pem, kind, name)


def _no_key(kind: str, name: str, error: Exception) -> EncryptionError:
    return EncryptionError(f"{name}: the key reader gives no {kind} key: {error!r}")


def _checked(pem: object, kind: str, name: str) -> bytes:
    if not isinstance(pem, bytes):
        raise EncryptionError(
            f"{name}: the key reader returns {type(pem).__name__} as {kind} key: return the bytes of a PEM file"
        )
    return pem


def _wrap(name: str, pem: bytes, data_key: bytes) -> bytes:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(pem)
        if isinstance(key, rsa.RSAPublicKey):
            return key.encrypt(data_key, _oaep())  # ValueError where the RSA key is too short
    except (ValueError, UnsupportedAlgorithm) as error:
        raise EncryptionError(f"{name}: not a public RSA or EC key in PEM: {error}") from error
    if isinstance(key, ec.EllipticCurvePublicKey):
        return ecies.wrap(data_key, key)
    raise EncryptionError(f"{name}: encryption takes RSA or EC keys, this is {type(key).__name__}")


def _unwrap(name: str, pem: bytes, wrapped: bytes) -> bytes:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:  # TypeError: the key has a password
        raise EncryptionError(f"{name}: not a private RSA or EC key in PEM without password: {error}") from error
    try:
        if isinstance(key, rsa.RSAPrivateKey):
            return key.decrypt(wrapped, _oaep())
        if isinstance(key, ec.EllipticCurvePrivateKey):
            return ecies.unwrap(wrapped, key)
    except ValueError as error:  # EncryptionError is a ValueError
        raise EncryptionError(
            f"{name}: this private key is not the counterpart of the public key that the producer used: {error}"
        ) from error
    raise EncryptionError(f"{name}: encryption takes RSA or EC keys, this is {type(key).__name__}")


def _oaep() -> OAEP:
    from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
    from cryptography.hazmat.primitives.hashes import SHA1

    return OAEP(mgf=MGF1(SHA1()), algorithm=SHA1(), label=None)


def _aes(data_key: bytes) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        return AESGCM(data_key)
    except ValueError as error:
        raise EncryptionError(f"data key of {len(data_key)} bytes: {error}") from None


def _require_cryptography() -> None:
    try:
        look_for("encryption", "client", "cryptography")
    except MissingExtra as error:
        raise EncryptionError(str(error)) from None
