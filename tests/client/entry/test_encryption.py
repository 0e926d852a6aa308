"""Encryption and decryption of payloads, the keys that allow it, and the errors without them.

Keys from files. Data keys under elliptic curve keys. Recorded entries and tests/foreign show that Java decrypts them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.client.entry import ecies
from pulsarium.client.entry.crypto import CryptoKeyReader
from pulsarium.client.entry.encryption import ROTATION, KeySource, MessageDecryptor, MessageEncryptor
from pulsarium.proto.errors import EncryptionError
from pulsarium.proto.generated.PulsarApi_pb2 import MessageMetadata
from pulsarium.proto.installing import remedy
from tests.client.entry.encrypted import KINDS, Keys, private_pem, public_bytes, public_pem

kinds = pytest.mark.parametrize("kind", KINDS)
KEYS = Keys()
NAMES: tuple[tuple[str, ...], ...] = (("rsa",), ("ec",), ("ec", "rsa"))
ENCRYPTORS = {names: MessageEncryptor(names, KEYS.get_public_key, 0.0) for names in NAMES}
DECRYPTOR = MessageDecryptor(KEYS.get_private_key)


def gives(pem: bytes) -> KeySource:
    return lambda name, metadata: pem


def encrypted(kind: str = "rsa", payload: bytes = b"payload") -> tuple[MessageMetadata, bytes]:
    metadata = MessageMetadata()
    return metadata, ENCRYPTORS[(kind,)].encrypt(metadata, payload, 0.0)


@given(st.sampled_from(NAMES), st.binary(max_size=500))
def test_a_payload_is_decrypted_again(names: tuple[str, ...], payload: bytes) -> None:
    metadata = MessageMetadata()
    sealed = ENCRYPTORS[names].encrypt(metadata, payload, 0.0)
    assert len(sealed) == len(payload) + 16
    assert len(metadata.encryption_param) == 12
    assert [key.key for key in metadata.encryption_keys] == list(names)
    assert DECRYPTOR.decrypt(metadata, sealed) == payload


@given(st.binary(min_size=1, max_size=40), st.data())
def test_damage_of_an_encrypted_payload_is_found(payload: bytes, data: st.DataObject) -> None:
    metadata, sealed = encrypted("rsa", payload)
    wrong = bytearray(sealed)
    wrong[data.draw(st.integers(0, len(wrong) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(EncryptionError, match="rsa: the payload was damaged, or encrypted with another data key"):
        DECRYPTOR.decrypt(metadata, bytes(wrong))


@pytest.mark.parametrize("nonce", [b"", b"short", bytes(12), bytes(200)])
def test_another_nonce_decrypts_nothing(nonce: bytes) -> None:
    metadata, sealed = encrypted()
    metadata.encryption_param = nonce
    with pytest.raises(EncryptionError, match="damaged"):
        DECRYPTOR.decrypt(metadata, sealed)


def test_one_key_is_enough() -> None:
    metadata = MessageMetadata()
    sealed = ENCRYPTORS["ec", "rsa"].encrypt(metadata, b"x", 0.0)

    def only_rsa(name: str, accompanying: dict[str, str]) -> bytes:
        return {"rsa": private_pem("rsa")}[name]

    assert MessageDecryptor(only_rsa).decrypt(metadata, sealed) == b"x"


@kinds
def test_the_data_key_is_unwrapped_once(kind: str) -> None:
    keys = Keys()
    decryptor = MessageDecryptor(keys.get_private_key)
    for _ in range(3):
        decryptor.decrypt(*encrypted(kind))
    assert keys.asked == [("private", kind, {})]


def test_remembered_data_keys_are_bounded() -> None:
    keys = Keys()
    decryptor = MessageDecryptor(keys.get_private_key)
    encryptor = MessageEncryptor(["ec"], KEYS.get_public_key, 0.0, rotation=1.0)
    first = encrypted("ec")
    decryptor.decrypt(*first)
    for now in range(1, 258):
        metadata = MessageMetadata()
        decryptor.decrypt(metadata, encryptor.encrypt(metadata, b"", float(now)))
    asked = len(keys.asked)
    decryptor.decrypt(*first)
    assert len(keys.asked) == asked + 1


@pytest.mark.parametrize(("now", "rotated"), [(0.0, False), (ROTATION - 1, False), (ROTATION, True)])
def test_data_keys_rotate_every_four_hours(now: float, rotated: bool) -> None:
    """The client then reads the public keys again."""
    assert ROTATION == 4 * 60 * 60
    keys = Keys()
    encryptor = MessageEncryptor(["ec"], keys.get_public_key, 100.0)
    first, second = MessageMetadata(), MessageMetadata()
    encryptor.encrypt(first, b"", 100.0)
    sealed = encryptor.encrypt(second, b"x", 100.0 + now)
    assert (first.encryption_keys[0].value != second.encryption_keys[0].value) is rotated
    assert len(keys.asked) == 1 + rotated
    assert DECRYPTOR.decrypt(second, sealed) == b"x"


def test_metadata_of_a_key_reaches_the_key_reader() -> None:
    def public(name: str, metadata: dict[str, str]) -> bytes:
        metadata["version"] = "7"
        return public_pem(name)

    keys = Keys()
    metadata = MessageMetadata()
    sealed = MessageEncryptor(["rsa"], public, 0.0).encrypt(metadata, b"x", 0.0)
    assert MessageDecryptor(keys.get_private_key).decrypt(metadata, sealed) == b"x"
    assert keys.asked == [("private", "rsa", {"version": "7"})]


def test_a_name_given_twice_is_one() -> None:
    metadata = MessageMetadata()
    MessageEncryptor(["rsa", "rsa"], KEYS.get_public_key, 0.0).encrypt(metadata, b"x", 0.0)
    assert len(metadata.encryption_keys) == 1


@pytest.mark.parametrize("form", [PrivateFormat.TraditionalOpenSSL, PrivateFormat.PKCS8])
@kinds
def test_forms_of_private_keys(kind: str, form: PrivateFormat) -> None:
    pem = load_pem_private_key(private_pem(kind), None).private_bytes(Encoding.PEM, form, NoEncryption())
    assert MessageDecryptor(gives(pem)).decrypt(*encrypted(kind)) == b"payload"


@pytest.mark.parametrize("form", [PublicFormat.PKCS1, PublicFormat.SubjectPublicKeyInfo])
def test_forms_of_public_keys(form: PublicFormat) -> None:
    pem = load_pem_public_key(public_pem("rsa")).public_bytes(Encoding.PEM, form)
    metadata = MessageMetadata()
    sealed = MessageEncryptor(["rsa"], gives(pem), 0.0).encrypt(metadata, b"x", 0.0)
    assert DECRYPTOR.decrypt(metadata, sealed) == b"x"


def raises(name: str, metadata: dict[str, str]) -> bytes:
    raise FileNotFoundError("no such file")


WRONG_FORM = ed25519.Ed25519PrivateKey.generate()
WITH_PASSWORD = load_pem_private_key(private_pem("ec"), None).private_bytes(
    Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
)


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (raises, "n: the key reader gives no public key: FileNotFoundError"),
        (gives(b""), "n: not a public RSA or EC key in PEM"),
        (gives(private_pem("rsa")), "n: not a public RSA or EC key in PEM"),
        (gives("text"), "n: the key reader returns str as public key: return the bytes"),  # type: ignore[arg-type]
        (gives(public_bytes(WRONG_FORM.public_key())), "n: encryption takes RSA or EC keys, this is Ed25519PublicKey"),
    ],
)
def test_unusable_public_keys_are_refused_by_name(source: KeySource, error: str) -> None:
    with pytest.raises(EncryptionError, match=error):
        MessageEncryptor(["n"], source, 0.0)


@pytest.mark.parametrize(
    ("kind", "source", "error"),
    [
        ("rsa", raises, "rsa: the key reader gives no private key: FileNotFoundError"),
        ("rsa", gives(b"garbage"), "rsa: not a private RSA or EC key in PEM without password"),
        ("rsa", gives(public_pem("rsa")), "rsa: not a private RSA or EC key"),
        ("ec", gives(WITH_PASSWORD), "ec: not a private RSA or EC key in PEM without password"),
        ("rsa", gives(private_pem("ec")), "rsa: this private key is not the counterpart of the public key"),
        ("ec", gives(private_pem("rsa")), "ec: this private key is not the counterpart of the public key"),
        (
            "rsa",
            gives(WRONG_FORM.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())),
            "rsa: encryption takes RSA or EC keys, this is Ed25519PrivateKey",
        ),
    ],
)
def test_unusable_private_keys_are_refused_by_name(kind: str, source: KeySource, error: str) -> None:
    with pytest.raises(EncryptionError, match=f"no key decrypts this message: {error}"):
        MessageDecryptor(source).decrypt(*encrypted(kind))


def test_the_wrong_rsa_key() -> None:
    other = rsa.generate_private_key(65537, 1024).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(EncryptionError, match="not the counterpart"):
        MessageDecryptor(gives(other)).decrypt(*encrypted("rsa"))


def test_no_keys_at_all() -> None:
    with pytest.raises(EncryptionError, match="no key decrypts this message: it names no key"):
        DECRYPTOR.decrypt(MessageMetadata(), b"x")


def test_without_cryptography_the_error_says_what_to_install() -> None:
    """The extra `client` installs cryptography. The module can be imported without the package."""
    code = """if True:
        import sys
        sys.modules["cryptography"] = None
        from pulsarium.client.entry.encryption import MessageEncryptor
        try:
            MessageEncryptor(["a"], lambda name, metadata: b"", 0.0)
        except ValueError as error:
            print(error)
    """
    run = subprocess.run([sys.executable, "-P", "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout == f"encryption needs cryptography; {remedy('client')}\n"


def test_keys_are_read_from_files_as_they_are_now(tmp_path: Path) -> None:
    """The reader reads the file at each call, because an application may replace a key. All names have the same key."""
    public, private = tmp_path / "public.pem", tmp_path / "private.pem"
    public.write_bytes(b"public")
    private.write_bytes(b"private")
    reader = CryptoKeyReader(str(public), str(private))
    assert reader.get_public_key("a", {}) == b"public"
    assert reader.get_private_key("b", {"version": "1"}) == b"private"
    public.write_bytes(b"another")
    assert reader.get_public_key("a", {}) == b"another"


def test_a_producer_needs_no_private_key(tmp_path: Path) -> None:
    public = tmp_path / "public.pem"
    public.write_bytes(b"public")
    reader = CryptoKeyReader(str(public), "")
    assert reader.get_public_key("a", {}) == b"public"
    with pytest.raises(OSError, match=r"."):
        reader.get_private_key("a", {})


CURVES = (ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1(), ec.SECP256K1())
CURVE_KEYS = [ec.generate_private_key(curve) for curve in CURVES]


@given(st.sampled_from(CURVE_KEYS), st.binary(min_size=1, max_size=64))
def test_a_wrapped_key_is_unwrapped_again(key: ec.EllipticCurvePrivateKey, data_key: bytes) -> None:
    wrapped = ecies.wrap(data_key, key.public_key())
    assert data_key not in wrapped or len(data_key) < 4
    assert ecies.unwrap(wrapped, key) == data_key
    assert ecies.wrap(data_key, key.public_key()) != wrapped


@given(st.sampled_from(CURVE_KEYS), st.data())
def test_any_damage_is_found(key: ec.EllipticCurvePrivateKey, data: st.DataObject) -> None:
    wrapped = bytearray(ecies.wrap(bytes(32), key.public_key()))
    wrapped[data.draw(st.integers(0, len(wrapped) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(EncryptionError):
        ecies.unwrap(bytes(wrapped), key)


def test_another_key_unwraps_nothing() -> None:
    other = ec.generate_private_key(ec.SECP256R1())
    with pytest.raises(EncryptionError, match="another key"):
        ecies.unwrap(ecies.wrap(bytes(32), CURVE_KEYS[0].public_key()), other)


@pytest.mark.parametrize("size", [0, 1, 85, 86])
def test_a_wrapped_key_that_is_too_short_is_refused(size: int) -> None:
    with pytest.raises(EncryptionError):
        ecies.unwrap(bytes(size), CURVE_KEYS[0])
