"""Record encrypted vectors of the official clients: `PYTHONPATH=. python -P -m tests.foreign.encrypted_vectors`.

The vectors in tests/client/entry/vectors are entries that the Python and Java clients encrypted, and the private keys.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pulsar
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.foreign.java_client import java_program

from .broker_process import Address, BrokerProcess
from .raw import RawConsumer

VECTORS = Path(__file__).parents[1] / "client" / "entry" / "vectors"
MESSAGES = 2
HEAD = f"""\
# Entries of {MESSAGES} messages that the official clients of Python 3.13.0 and Java 4.2.4 compressed and encrypted.
# The private keys beside this file were made for them and protect nothing else.
# Columns: client, kind of key, compression, single or batch, the entries in hexadecimal.
# A message is its number and then "abcd", 20 times (Python) or 2000 times (Java); its key is k and the number.
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _make_keys(folder)
        process = BrokerProcess(folder / "broker")
        try:
            lines = [*_python(process.address, folder), *_java(process.address, folder)]
        finally:
            process.stop()
    (VECTORS / "encrypted.txt").write_text(HEAD + "\n".join(lines) + "\n")


def _make_keys(folder: Path) -> None:
    keys: dict[str, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey] = {
        "rsa": rsa.generate_private_key(65537, 2048),
        "ec": ec.generate_private_key(ec.SECP256R1()),
    }
    for name, key in keys.items():
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        (VECTORS / f"{name}-private.pem").write_bytes(pem)
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (folder / f"{name}-public.pem").write_bytes(public)


def _python(address: Address, folder: Path) -> Iterator[str]:
    client = pulsar.Client(address.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn))
    reader = pulsar.CryptoKeyReader(str(folder / "rsa-public.pem"), "")
    for compression, batched in itertools.product(pulsar.CompressionType.__members__.values(), (False, True)):
        topic = f"python-{compression.name}-{batched}"
        producer = client.create_producer(
            topic,
            producer_name="p",
            compression_type=compression,
            batching_enabled=batched,
            batching_max_messages=MESSAGES,
            batching_max_publish_delay_ms=60_000,
            encryption_key="python",
            crypto_key_reader=reader,
        )
        for number in range(MESSAGES):
            producer.send_async(f"{number}{'abcd' * 20}".encode(), None, partition_key=f"k{number}")
        producer.flush()
        yield _line("python", "rsa", compression.name.upper(), batched, _entries(address, topic, batched))
    client.close()


def _java(address: Address, folder: Path) -> Iterator[str]:
    program = java_program(address, folder)
    for kind, compression, batched in itertools.product(("rsa", "ec"), ("LZ4", "ZSTD"), (False, True)):
        topic = f"java-{kind}-{compression}-{batched}"
        program.run(
            "encryption-publish",
            topic=topic,
            public_key=str(folder / f"{kind}-public.pem"),
            private_key=str(VECTORS / f"{kind}-private.pem"),
            compression=compression,
            batched=batched,
            messages=MESSAGES,
        )
        yield _line("java", kind, compression, batched, _entries(address, topic, batched))
    program.close()


def _entries(address: Address, topic: str, batched: bool) -> list[bytes]:
    with RawConsumer(address, f"persistent://public/default/{topic}", "s") as consumer:
        return consumer.entries(1 if batched else MESSAGES)


def _line(client: str, kind: str, compression: str, batched: bool, entries: list[bytes]) -> str:
    return " ".join((client, kind, compression, "batch" if batched else "single", *(e.hex() for e in entries)))


if __name__ == "__main__":
    main()
