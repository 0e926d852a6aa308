"""Scenarios of end-to-end encryption."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from pulsarium.conformance.protocol import ClientError
from pulsarium.conformance.scenario import QUIET_SECONDS, Stage, scenario, texts

SOURCE = "PIP-4"


def encrypted(stage: Stage, topic: str, **options: Any) -> str:
    keys = stage.material
    return stage.producer(topic, encrypt={"name": "key", "public": str(keys.folder / "public.pem")}, **options)


def private(stage: Stage) -> str:
    return str(stage.material.folder / "private.pem")


@scenario(
    "SEND",
    "A consumer with the private key reads what a producer with the public key sent.",
    SOURCE,
    bug="without consumer.decrypt",
)
def encrypted_messages_are_read_with_the_key(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, decrypt=private(stage))
    stage.send(encrypted(stage, topic), texts(0, 3))
    stage.receive_in_order(consumer, texts(0, 3))


@scenario("SEND", "What is encrypted is not readable on the wire.", SOURCE, bug="without producer.encrypt")
def encrypted_messages_are_not_readable_on_the_wire(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, decrypt=private(stage))
    stage.send(encrypted(stage, topic), ["a secret text"])
    stage.receive_all(consumer, ["a secret text"])
    entries = stage.history().entries(topic)
    stage.that(entries, "no entry was sent")
    for entry in entries:
        stage.that(b"secret" not in entry.payload, "the payload is readable")
        stage.that(entry.metadata and entry.metadata.encryption_keys, "the entry names no key")


@scenario("SEND", "A batch is encrypted as a whole.", SOURCE, bug="without producer.batch")
def a_batch_is_encrypted(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, decrypt=private(stage))
    stage.send(encrypted(stage, topic, batch=5), texts(0, 5))
    stage.receive_in_order(consumer, texts(0, 5))
    stage.equal(len(stage.history().entries(topic)), 1, "entries")


@scenario("SEND", "What is compressed and encrypted arrives as it was.", SOURCE, bug="without consumer.decrypt")
def compressed_messages_are_encrypted(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, decrypt=private(stage))
    values = [each * 1000 for each in texts(0, 3)]
    stage.send(encrypted(stage, topic, compression="LZ4"), values)
    stage.receive_in_order(consumer, values)


@scenario(
    "SEND",
    "A consumer without the key that consumes anyway gets the text encrypted.",
    SOURCE,
    bug="without producer.encrypt",
)
def a_consumer_without_the_key_gets_no_text(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, crypto_failure="consume")
    stage.send(encrypted(stage, topic), texts(0, 3))
    got = stage.receive(consumer, 3)
    stage.equal(len(got), 3, "messages")
    stage.that(not {each["value"] for each in got} & set(texts(0, 3)), "a message arrived in the clear")


@scenario(
    "SEND",
    "A consumer without the key that discards gets none of the messages, and they leave the backlog.",
    SOURCE,
    bug="ignores acknowledge",
)
def a_consumer_that_discards_gets_nothing(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, crypto_failure="discard")
    stage.send(encrypted(stage, topic), texts(0, 3))
    stage.send(stage.producer(topic), ["plain"])
    stage.receive_all(consumer, ["plain"], acknowledge=True)
    stage.until(lambda: stage.backlog(topic) == 0, "they are in the backlog")


@scenario(
    "SEND",
    "A consumer without the key that fails gets none of the messages, and keeps them.",
    SOURCE,
    bug="without producer.encrypt",
)
def a_consumer_that_fails_keeps_the_messages(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, crypto_failure="fail")
    stage.send(encrypted(stage, topic), texts(0, 3))
    with suppress(ClientError):  # some clients fail the call
        stage.equal(stage.receive(consumer, 1, QUIET_SECONDS), [], "messages")
    stage.close(consumer)
    stage.receive_in_order(stage.consumer(topic, decrypt=private(stage)), texts(0, 3))


@scenario("SEND", "A reader with the private key reads encrypted messages.", SOURCE, bug="without reader.decrypt")
def a_reader_with_the_key_reads_encrypted_messages(stage: Stage) -> None:
    topic = stage.topic()
    stage.send(encrypted(stage, topic), texts(0, 3))
    stage.receive_in_order(stage.reader(topic, decrypt=private(stage)), texts(0, 3))


@scenario(
    "SEND",
    "A reader without the key that consumes anyway gets the text encrypted.",
    SOURCE,
    bug="without producer.encrypt",
)
def a_reader_without_the_key_gets_no_text(stage: Stage) -> None:
    topic = stage.topic()
    stage.send(encrypted(stage, topic), texts(0, 3))
    got = stage.receive(stage.reader(topic, crypto_failure="consume"), 3)
    stage.equal(len(got), 3, "messages")
    stage.that(not {each["value"] for each in got} & set(texts(0, 3)), "a message arrived in the clear")


@scenario(
    "PRODUCER",
    "Where encryption is required, a producer without a key is refused.",
    "encryptionRequired",
    bug="succeeds producer",
)
def a_producer_without_a_key_is_refused(stage: Stage) -> None:
    stage.side.call("POST", f"/admin/v2/namespaces/{stage.namespace}/encryptionRequired", True)
    topic = stage.topic()
    kinds = ("InvalidConfiguration", "Other", "Timeout")
    stage.refused(kinds, "producer", client=stage.client, topic=topic, **{"as": "x"})
    stage.send(encrypted(stage, topic), ["a"])
