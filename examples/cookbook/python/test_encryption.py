import subprocess

import pulsar
import pytest


@pytest.fixture
def keys(tmp_path):
    private, public = str(tmp_path / "private.pem"), str(tmp_path / "public.pem")
    subprocess.run(["openssl", "genrsa", "-out", private, "2048"], check=True, capture_output=True)
    subprocess.run(["openssl", "rsa", "-in", private, "-pubout", "-out", public], check=True, capture_output=True)
    return pulsar.CryptoKeyReader(public, private)


def test_only_the_owner_of_the_key_reads_an_order(pulsar_client, pulsar_topic, keys):
    owner = pulsar_client.subscribe(pulsar_topic, "billing", crypto_key_reader=keys)
    stranger = pulsar_client.subscribe(
        pulsar_topic, "audit", crypto_failure_action=pulsar.ConsumerCryptoFailureAction.CONSUME
    )
    producer = pulsar_client.create_producer(pulsar_topic, encryption_key="orders", crypto_key_reader=keys)

    producer.send(b"3 apples")

    assert owner.receive(timeout_millis=30_000).data() == b"3 apples"
    assert b"apples" not in stranger.receive(timeout_millis=30_000).data()
