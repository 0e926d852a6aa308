"""Namespaces and topics of tests, created and deleted without HTTP."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest

from pulsarium.broker.testing import PulsarBroker
from tests.broker.testing.conftest import client_of


def namespaces(broker: PulsarBroker) -> list[str]:
    return broker.call(lambda it: list(it.broker.metadata.namespaces))


def policies(broker: PulsarBroker, namespace: str) -> Any:
    """Return the policies of a namespace as REST shows them."""
    with urllib.request.urlopen(f"{broker.admin_url}/admin/v2/namespaces/{namespace}") as answer:
        return json.load(answer)


def test_a_created_namespace_has_the_policies_of_one_made_over_rest(broker: PulsarBroker) -> None:
    request = urllib.request.Request(f"{broker.admin_url}/admin/v2/namespaces/public/rest", method="PUT")
    urllib.request.urlopen(request).close()
    made = broker.create_namespace("here")
    assert made == "public/here"
    assert policies(broker, made) == policies(broker, "public/rest")
    assert policies(broker, broker.create_namespace("ttl", message_ttl_in_seconds=5))["message_ttl_in_seconds"] == 5


def test_names_are_made_fit_and_unique(broker: PulsarBroker) -> None:
    assert broker.create_namespace("a test[with spaces]") == "public/a-test-with-spaces"
    assert broker.create_namespace("a test[with spaces]") == "public/a-test-with-spaces-2"
    assert broker.create_namespace("[]") == "public/test"
    assert broker.create_namespace("acme/orders") == "acme/orders"
    assert broker.call(lambda it: it.broker.metadata.tenants["acme"]["allowedClusters"]) == ["standalone"]


def test_namespaces_of_tests_refuse_what_cannot_be(broker: PulsarBroker) -> None:
    broker.create_namespace("acme/once")
    with pytest.raises(ValueError, match="the namespace acme/once exists already"):
        broker.create_namespace("acme/once")
    with pytest.raises(ValueError, match="deduplication=True is not a valid policy of a namespace"):
        broker.create_namespace("x", deduplication=True)
    with pytest.raises(ValueError, match="message_ttl_in_seconds='5' is not a valid policy"):
        broker.create_namespace("x", message_ttl_in_seconds="5")
    with pytest.raises(ValueError, match="the namespace acme/none does not exist"):
        broker.create_topic("acme/none/topic")
    broker.create_topic("acme/once/topic", partitions=2)
    with pytest.raises(ValueError, match="the topic persistent://acme/once/topic exists already"):
        broker.create_topic("acme/once/topic")


def test_they_go_with_their_last_client(broker: PulsarBroker) -> None:
    used, unused = broker.create_namespace("used"), broker.create_namespace("unused")
    broker.create_topic(f"{unused}/partitioned", partitions=3)
    client = client_of(broker)
    producer = client.create_producer(f"{used}/topic")
    producer.send(b"a")
    broker.delete_namespace(used)
    broker.delete_namespace(unused)
    assert unused not in namespaces(broker)
    broker.assert_produced(f"{used}/topic", 1)
    producer.close()
    broker.delete_namespace(unused)
    assert used not in namespaces(broker)
    assert broker.call(lambda it: [name for name in it.broker.topics.loaded if "/used/" in name]) == []
    client.close()
