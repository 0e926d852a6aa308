"""Encrypt data keys for elliptic curve keys, by ECIES in the form of the Java client's library, Bouncy Castle.

    [ephemeral public key, an uncompressed point][data key xor keystream][HMAC-SHA1, 20 bytes]

By IEEE 1363a DHAES, KDF2 with SHA-1 over the point and the shared secret yields 16 bytes for the HMAC, then the
keystream. The HMAC covers eight more bytes, the length of an empty encoding vector. Of the official clients, only
Java's supports EC keys.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

from pulsarium.proto.errors import EncryptionError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import (
        EllipticCurve,
        EllipticCurvePrivateKey,
        EllipticCurvePublicKey,
    )

_MAC_KEY = 16
_MAC = 20
_NO_ENCODING_VECTOR = bytes(8)


def wrap(data_key: bytes, public_key: EllipticCurvePublicKey) -> bytes:
    """Return the data key, encrypted for the holder of the private key."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    ephemeral = ec.generate_private_key(public_key.curve)
    point = ephemeral.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    mac_key, stream = _derive(point + ephemeral.exchange(ec.ECDH(), public_key), len(data_key))
    sealed = _xor(data_key, stream)
    return point + sealed + _tag(mac_key, sealed)


def unwrap(wrapped: bytes, private_key: EllipticCurvePrivateKey) -> bytes:
    """Return the data key. Raise `EncryptionError` when the data key was encrypted for another public key."""
    from cryptography.hazmat.primitives.asymmetric import ec

    size = _point_size(private_key.curve)
    if len(wrapped) <= size + _MAC:
        raise EncryptionError(f"an encrypted data key of {len(wrapped)} bytes is too short for this curve")
    point, sealed, tag = wrapped[:size], wrapped[size:-_MAC], wrapped[-_MAC:]
    try:
        sender = ec.EllipticCurvePublicKey.from_encoded_point(private_key.curve, point)
    except ValueError:
        raise EncryptionError("the data key was encrypted for a key on another curve") from None
    mac_key, stream = _derive(point + private_key.exchange(ec.ECDH(), sender), len(sealed))
    if not hmac.compare_digest(tag, _tag(mac_key, sealed)):
        raise EncryptionError("the data key was encrypted for another key")
    return _xor(sealed, stream)


def _derive(secret: bytes, size: int) -> tuple[bytes, bytes]:
    """Return the HMAC key and `size` bytes of keystream, by KDF2 (ISO 18033-2)."""
    blocks = -(-(_MAC_KEY + size) // hashlib.sha1().digest_size)
    output = b"".join(hashlib.sha1(secret + number.to_bytes(4, "big")).digest() for number in range(1, blocks + 1))
    return output[:_MAC_KEY], output[_MAC_KEY : _MAC_KEY + size]


def _tag(mac_key: bytes, sealed: bytes) -> bytes:
    return hmac.digest(mac_key, sealed + _NO_ENCODING_VECTOR, "sha1")


def _xor(data: bytes, stream: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(data, stream, strict=True))


def _point_size(curve: EllipticCurve) -> int:
    return 1 + 2 * -(-curve.key_size // 8)
