"""Scenarios of messages between producer and consumer."""

from __future__ import annotations

import base64
import json
import os
import time
from functools import partial
from pathlib import Path

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from pulsarium.matrix.python.lines import MOMENT, Lines, Scenario, equal, texts, that
from pulsarium.matrix.python.websocket.support import (
    BATCH_INDEX,
    ENTRY,
    LEDGER,
    Message,
    Sockets,
    acknowledge,
    consume,
    hear,
    nothing_more,
    place,
    receive,
    say,
    send,
    share,
    sockets,
    text,
)

_OAEP = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None)


def produce_consume(cell: Lines) -> None:
    with sockets(cell) as ours:
        consumer = ours.consumer(cell.topic)
        send(ours.producer(cell.topic), texts(0, 10), key="k", properties={"p": "v"})
        for wanted, message in zip(texts(0, 10), receive(consumer, 10), strict=True):
            equal((text(message), message["key"], message["properties"]), (wanted, "k", {"p": "v"}))
            acknowledge(consumer, message)
        consumer.close()
        nothing_more(ours.consumer(cell.topic))


def batching(cell: Lines) -> None:
    with sockets(cell) as ours:
        consumer = ours.consumer(cell.topic)
        batches = {"batchingEnabled": "true", "batchingMaxMessages": 10, "batchingMaxPublishDelay": 10_000}
        send(ours.producer(cell.topic, **batches), texts(0, 10))
        messages = receive(consumer, 10)
        equal([text(message) for message in messages], texts(0, 10))
        places = [place(message["messageId"]) for message in messages]
        equal(len({(each[LEDGER], each[ENTRY]) for each in places}), 1, "entries")
        equal([each[BATCH_INDEX] for each in places], list(range(10)), "batch indexes")


def compression(kind: str, cell: Lines) -> None:
    with sockets(cell) as ours:
        consumer = ours.consumer(cell.topic)
        sent = [each * 1000 for each in texts(0, 10)]
        send(ours.producer(cell.topic, compressionType=kind.upper()), sent)
        equal(consume(consumer, 10), sent)


def delayed(cell: Lines) -> None:
    with sockets(cell) as ours:
        consumer = ours.consumer(cell.topic, subscriptionType="Shared")
        producer = ours.producer(cell.topic)
        start = time.monotonic()
        send(producer, ["later"], deliverAfterMs=1000)
        send(producer, ["now"])
        equal(consume(consumer, 2), ["now", "later"])
        that(time.monotonic() - start > 0.9, "too early")


def non_persistent(cell: Lines) -> None:
    topic = cell.topic.replace("persistent://", "non-persistent://")
    with sockets(cell) as ours:
        consumer = ours.consumer(topic)
        send(ours.producer(topic), texts(0, 10))
        equal(consume(consumer, 10), texts(0, 10))


def encryption(cell: Lines) -> None:
    """Encrypt and decrypt in this program, because the broker has no keys. As in Pulsar, AES has a key of 256 bits."""
    public, private = (Path(each).read_bytes() for each in (cell.public_key, cell.private_key))
    encrypting, decrypting = load_pem_public_key(public), load_pem_private_key(private, None)
    assert isinstance(encrypting, rsa.RSAPublicKey)
    assert isinstance(decrypting, rsa.RSAPrivateKey)
    data_key = os.urandom(32)
    key = {"keyValue": _base64(encrypting.encrypt(data_key, _OAEP)), "metadata": {}}

    def decrypted(message: Message) -> str:
        context = message["encryptionContext"]
        used = decrypting.decrypt(base64.b64decode(context["keys"]["k"]["keyValue"]), _OAEP)
        payload = base64.b64decode(message["payload"])
        return AESGCM(used).decrypt(base64.b64decode(context["param"]), payload, None).decode()

    with sockets(cell) as ours:
        consumer = ours.consumer(cell.topic, cryptoFailureAction="CONSUME")
        without = ours.reader(cell.topic, "earliest")  # fails as long as it cannot decrypt
        producer = ours.producer(cell.topic, encryptionKeys=_base64(json.dumps({"k": key}).encode()))
        for each in texts(0, 3):
            nonce = os.urandom(12)
            payload = AESGCM(data_key).encrypt(nonce, each.encode(), None)
            say(producer, payload=_base64(payload), encryptionParam=_base64(nonce))
            equal((hear(producer) or {}).get("result"), "ok")
        messages = receive(consumer, 3)
        equal([decrypted(message) for message in messages], texts(0, 3))
        that(
            not {_base64(each.encode()) for each in texts(0, 3)} & {one["payload"] for one in messages}, "in the clear"
        )
        nothing_more(without)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def key_shared(cell: Lines) -> None:
    with sockets(cell) as ours:
        consumers = [ours.consumer(cell.topic, subscriptionType="Key_Shared") for _ in range(2)]
        producer = ours.producer(cell.topic)
        for number in range(10):
            for each in range(5):
                send(producer, [str(number)], key=f"key-{each}")
        found: dict[str, list[tuple[int, str]]] = {}
        for consumer, message in share(consumers, 50):
            found.setdefault(message["key"], []).append((consumer, text(message)))
        for key, arrivals in found.items():
            equal("".join(sent for _, sent in arrivals), "0123456789", f"order of {key}")
            equal(len({consumer for consumer, _ in arrivals}), 1, f"consumers of {key}")


def reader(cell: Lines) -> None:
    with sockets(cell) as ours:
        ids = send(ours.producer(cell.topic), texts(0, 10))
        equal(_read(ours, cell.topic, "earliest", 10), texts(0, 10))
        equal(_read(ours, cell.topic, ids[4], 5), texts(5, 10))


def _read(ours: Sockets, topic: str, start: str, count: int) -> list[str]:
    # A reader acknowledges too: a message without an acknowledgement takes a place in the queue.
    return consume(ours.reader(topic, start), count)


def deduplication(cell: Lines) -> None:
    """Count on from `initialSequenceId`: the first message has the next number."""
    with sockets(cell) as ours:
        consumer = ours.consumer(cell.topic)
        for last, first, end in ((-1, 0, 3), (0, 1, 4)):
            producer = ours.producer(cell.topic, producerName="p", initialSequenceId=last)
            send(producer, texts(first, end))
            producer.close()
            time.sleep(MOMENT)
        equal(consume(consumer, 4), texts(0, 4))
        nothing_more(consumer)


MESSAGES: dict[str, Scenario] = {
    "produce-consume": produce_consume,
    "batching": batching,
    **{f"compression-{kind}": partial(compression, kind) for kind in ("lz4", "zlib", "zstd", "snappy")},
    "delayed": delayed,
    "non-persistent": non_persistent,
    "encryption": encryption,
    "key-shared": key_shared,
    "reader": reader,
    "deduplication": deduplication,
}
