"""Data keys under elliptic curve keys. Recorded entries and tests/foreign show that Java decrypts them."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.client.entry import ecies
from pulsarium.proto.errors import EncryptionError

CURVES = (ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1(), ec.SECP256K1())
KEYS = [ec.generate_private_key(curve) for curve in CURVES]


@given(st.sampled_from(KEYS), st.binary(min_size=1, max_size=64))
def test_a_wrapped_key_is_unwrapped_again(key: ec.EllipticCurvePrivateKey, data_key: bytes) -> None:
    wrapped = ecies.wrap(data_key, key.public_key())
    assert data_key not in wrapped or len(data_key) < 4
    assert ecies.unwrap(wrapped, key) == data_key
    assert ecies.wrap(data_key, key.public_key()) != wrapped


@given(st.sampled_from(KEYS), st.data())
def test_any_damage_is_found(key: ec.EllipticCurvePrivateKey, data: st.DataObject) -> None:
    wrapped = bytearray(ecies.wrap(bytes(32), key.public_key()))
    wrapped[data.draw(st.integers(0, len(wrapped) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(EncryptionError):
        ecies.unwrap(bytes(wrapped), key)


def test_another_key_unwraps_nothing() -> None:
    other = ec.generate_private_key(ec.SECP256R1())
    with pytest.raises(EncryptionError, match="another key"):
        ecies.unwrap(ecies.wrap(bytes(32), KEYS[0].public_key()), other)


@pytest.mark.parametrize("size", [0, 1, 85, 86])
def test_a_wrapped_key_that_is_too_short_is_refused(size: int) -> None:
    with pytest.raises(EncryptionError):
        ecies.unwrap(bytes(size), KEYS[0])
