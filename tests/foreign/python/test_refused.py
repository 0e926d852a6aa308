"""Producers and consumers that a policy of the namespace or of the topic refuses, with the official client."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pulsar
import pytest
from pulsar.schema import AvroSchema, Integer, Record, String

from ..admin import Admin
from ..broker_process import Address
from ..conftest import Launch
from ..deadline import eventually
from .traffic import consume

QUOTA_ERRORS = {
    "producer_request_hold": (pulsar.ProducerBlockedQuotaExceededError, pulsar.Timeout),
    "producer_exception": (pulsar.ProducerBlockedQuotaExceededException,),
}


class Policies:
    """Policies of a test's namespace, and a topic in that namespace."""

    def __init__(self, admin: Admin, namespace: str) -> None:
        self._admin, self._path = admin, f"/admin/v2/namespaces/{namespace}"
        self.topic = f"persistent://{namespace}/refusing"

    def set(self, name: str, value: object) -> None:
        self._admin.call("POST", f"{self._path}/{name}", value)

    def quota(self, policy: str, size: int = 0) -> None:
        quota = {"limitSize": size, "limitTime": -1, "policy": policy}
        self._admin.call("POST", f"{self._path}/backlogQuota?backlogQuotaType=destination_storage", quota)


@pytest.fixture
def policies(admin: Admin, own_namespace: str) -> Policies:
    return Policies(admin, own_namespace)


class First(Record):  # type: ignore[misc]
    name = String()


class Second(Record):  # type: ignore[misc]
    name = Integer(required=True)
    other = Integer(required=True)


@pytest.mark.req("P-01", "P-07")
def test_a_producer_hears_of_its_first_mistake_only(connect: Any, broker: Address, policies: Policies) -> None:
    """The broker checks first the backlog, then encryption, then the schema. The client retries for encryption."""
    client, topic = connect(), policies.topic
    client.subscribe(topic, "s").close()
    producer = client.create_producer(topic, "first", AvroSchema(First))
    producer.send(First(name="backlog"))
    policy = "producer_exception"
    policies.quota(policy)
    policies.set("encryptionRequired", True)
    with closing(pulsar.Client(broker.service_url, operation_timeout_seconds=1)) as hasty:
        steps: tuple[tuple[Any, Any, Callable[[], None]], ...] = (
            (client, pulsar.ProducerBlockedQuotaExceededException, lambda: policies.quota(policy, 1 << 40)),
            (hasty, (pulsar.BrokerMetadataError, pulsar.Timeout), lambda: policies.set("encryptionRequired", False)),
            (client, pulsar.IncompatibleSchema, lambda: None),
        )
        for one, error, mend in steps:
            with pytest.raises(error):
                one.create_producer(topic, "second", AvroSchema(Second))
            mend()
    client.create_producer(topic, "second", AvroSchema(First)).send(First(name="fits"))


@pytest.mark.req("P-09")
def test_properties_of_a_producer_are_limited(launch: Launch) -> None:
    process = launch()
    url, refusal = process.address.service_url, "metadata has a max size of 1 Kb"
    with closing(pulsar.Client(url)) as client:
        client.create_producer("t", properties={"k": "v" * 1023})
    with closing(pulsar.Client(url, operation_timeout_seconds=1)) as hasty:

        def refused() -> bool:
            with pytest.raises((pulsar.BrokerMetadataError, pulsar.Timeout)):  # the client tries again
                hasty.create_producer("t", properties={"k": "v" * 600, "l": "v" * 423})
            return refusal in process.tail()

        eventually(refused, what="the refusal in the broker's log")


@pytest.mark.req("P-06", "B-26")
@pytest.mark.parametrize("policy", [*QUOTA_ERRORS, "consumer_backlog_eviction"])
def test_a_full_backlog_refuses_producers_as_its_policy_says(connect: Any, policies: Policies, policy: str) -> None:
    client = connect()
    client.subscribe(policies.topic, "s").close()
    client.create_producer(policies.topic).send(b"backlog")
    policies.quota(policy)
    if policy in QUOTA_ERRORS:
        with pytest.raises(QUOTA_ERRORS[policy]):
            connect().create_producer(policies.topic)
    else:
        connect().create_producer(policies.topic).send(b"one more")


@pytest.mark.req("C-02", "B-40")
def test_a_topic_that_may_not_be_created_is_not_found(client: Any, policies: Policies) -> None:
    policies.set("autoTopicCreation", {"allowAutoTopicCreation": False})
    with pytest.raises(pulsar.TopicNotFound):
        client.subscribe(policies.topic, "s")


@pytest.mark.req("C-13")
def test_a_subscription_and_a_topic_have_room_for_so_many_consumers(client: Any, policies: Policies) -> None:
    for policy, second in (("maxConsumersPerSubscription", "s"), ("maxConsumersPerTopic", "other")):
        policies.set(policy, 1)
        consumer = client.subscribe(policies.topic, "s", pulsar.ConsumerType.Shared)
        with pytest.raises(pulsar.ConsumerBusy):
            client.subscribe(policies.topic, second, pulsar.ConsumerType.Shared)
        consumer.close()
        policies.set(policy, 0)


@pytest.mark.req("B-39")
def test_a_policy_of_the_topic_goes_before_that_of_its_namespace(client: Any, admin: Admin, policies: Policies) -> None:
    client.create_producer(policies.topic).close()
    policies.set("maxProducersPerTopic", 1)
    admin.call("POST", f"/admin/v2/{policies.topic.replace('://', '/')}/maxProducers", 2)
    kept = [client.create_producer(policies.topic) for _ in range(2)]
    with pytest.raises(pulsar.ProducerBusy):
        client.create_producer(policies.topic)
    assert len(kept) == 2


@pytest.mark.req("C-03", "C-11")
def test_subscriptions_may_need_a_proper_name_and_somebody_to_create_them(launch: Launch) -> None:
    process = launch(*("--set", "strictlyVerifySubscriptionName=true", "--set", "allowAutoSubscriptionCreation=false"))
    url = process.address.service_url
    with closing(pulsar.Client(url)) as client, closing(pulsar.Client(url, operation_timeout_seconds=1)) as hasty:
        client.create_producer("t").close()
        for name, refusal in (("a b", "error=ProducerBusy"), ("a-b", "error=SubscriptionNotFound")):

            def refused(name: str = name, refusal: str = refusal) -> bool:
                with pytest.raises(pulsar.PulsarException):
                    hasty.subscribe("t", name)
                return refusal in process.tail()  # the client itself raises other errors

            eventually(refused, what=refusal)
        Admin(process.address.admin_url).call("PUT", "/admin/v2/persistent/public/default/t/subscription/a-b", "latest")
        client.subscribe("t", "a-b")


@pytest.mark.req("B-24", "B-25", "B-41")
def test_messages_expire_are_deleted_and_an_unused_topic_goes(launch: Launch) -> None:
    """The test advances the clock of the broker, and need not wait."""
    address = launch("--set", "brokerDeleteInactiveTopicsEnabled=true").address
    admin, topic = Admin(address.admin_url), "persistent://public/default/expiring"
    path = "/admin/v2/namespaces/public/default"

    def later(seconds: int) -> None:
        admin.call("POST", "/lab/clock/advance", {"seconds": seconds})

    with closing(pulsar.Client(address.service_url)) as client:
        client.subscribe(topic, "s").close()
        producer = client.create_producer(topic)
        producer.send(b"old")
        admin.call("POST", f"{path}/messageTTL", 60)
        later(600)
        eventually(lambda: admin.backlog(topic, "s") == 0, what="that the message expires")
        producer.send(b"new")
        consumer = client.subscribe(topic, "s")
        assert consume(consumer, 1) == [b"new"]
        consumer.unsubscribe()
        producer.close()
    later(7200)
    eventually(lambda: topic not in admin.topics("public/default"), what="that the topic is deleted")
