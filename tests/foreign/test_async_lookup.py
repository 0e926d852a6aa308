"""Lookups of our client: over HTTP and HTTPS, from one broker to another, and for topics of a pattern."""

from __future__ import annotations

import re
import uuid
from typing import Any

import anyio
import pytest

from pulsarium.client import (
    Authentication,
    AuthenticationBasic,
    AuthenticationTLS,
    Client,
    InitialPosition,
    connect,
    errors,
)
from tests.client.both import FIRST_FAILURE, on_both
from tests.foreign.async_secured import by_token
from tests.foreign.secured import OTHER, Secured, secured

from .broker_process import Address, is_pulsarium
from .conftest import Launch

__all__ = ["secured"]  # the fixture

OURS = pytest.mark.skipif(not is_pulsarium(), reason="needs several brokers, keys, or a start within seconds")
EARLIEST = InitialPosition.Earliest


async def there_and_back(client: Client, name: str, **options: Any) -> None:
    """Publish one message to each partition, and receive all of them."""
    partitions = len(await client.get_topic_partitions(name))
    async with (
        client.subscribe(name, "s", initial_position=EARLIEST) as consumer,
        client.create_producer(name) as producer,
    ):
        contents = [b"%d" % n for n in range(partitions)]
        for content in contents:
            await producer.send(content)
        assert sorted([(await consumer.receive()).data() for _ in contents]) == contents


@on_both
async def test_a_topic_is_looked_up_over_http(broker: Address, topic: str) -> None:
    async with connect(broker.admin_url) as client:
        await there_and_back(client, topic)
        await there_and_back(client, topic.replace("persistent", "non-persistent"))
        await there_and_back(client, f"{topic} &%ä")


@on_both
async def test_a_pattern_over_http(broker: Address, own_namespace: str) -> None:
    """An HTTP client has no connection for a topic watcher. So it polls the list of topics."""
    name = f"{own_namespace}/t-{uuid.uuid4().hex[:6]}"
    async with (
        connect(broker.admin_url) as client,
        client.subscribe(
            re.compile(f"persistent://{own_namespace}/t-.*"),
            "s",
            initial_position=EARLIEST,
            pattern_auto_discovery_period=0.05,
        ) as consumer,
    ):
        async with client.create_producer(name) as producer:
            await producer.send(b"x")
        with anyio.fail_after(30):
            assert (await consumer.receive()).data() == b"x"


@pytest.mark.parametrize("over", ["http", "binary"])
@on_both
async def test_a_topic_that_is_not_there_is_not_found(broker: Address, over: str) -> None:
    url = broker.admin_url if over == "http" else broker.service_url
    async with connect(url) as client:
        with pytest.raises((errors.TopicNotFound, errors.BrokerMetadataError, errors.UnknownError)) as caught:
            await client.get_topic_partitions("public/nonesuch/t")
        assert type(caught.value) is errors.TopicNotFound
        with pytest.raises(errors.TopicNotFound):
            await client.get_topic_partitions(f"no-{uuid.uuid4().hex}", metadata_auto_creation_enabled=False)


@pytest.mark.parametrize("over", ["http", "binary"])
@on_both
async def test_a_listener_that_is_not_there(broker: Address, topic: str, over: str) -> None:
    url = broker.admin_url if over == "http" else broker.service_url
    async with connect(url, listener_name="outside", **FIRST_FAILURE) as client:
        with pytest.raises(errors.PulsarError, match="do not have outside listener"):
            async with client.create_producer(topic):
                pass


@on_both
async def test_a_client_uses_all_its_connections_to_a_broker(broker: Address, topic: str) -> None:
    async with connect(broker.service_url, connections_per_broker=3) as client:
        async with anyio.create_task_group() as tasks:
            for number in range(6):
                tasks.start_soon(there_and_back, client, f"{topic}-{number}")
        assert {way.number for way in client._core.brokers._pool._connections} == {0, 1, 2}


@OURS
@on_both
async def test_a_broker_that_comes_back(launch: Launch, data: str) -> None:
    process = launch("--data", data)
    async with connect(process.address.admin_url) as client, client.create_producer("t") as producer:
        await producer.send(b"1")
        process.kill()
        receipt = producer.send_nowait(b"2")
        launch("--data", data, port=process.address.port, http_port=process.address.http_port)
        await receipt.wait()
        await there_and_back(client, "other")


@OURS
@on_both
async def test_http_leads_from_broker_to_broker(launch: Launch) -> None:
    """The client may begin at either broker. Redirects lead to the owner of the topic."""
    process = launch("--brokers", "2")
    names = [f"t{number}" for number in range(12)]
    for broker in process.addresses:
        async with connect(broker.admin_url) as client:
            for name in names:
                await there_and_back(client, name)
            led = {way.address.port for way in client._core.brokers._pool._connections}
            assert led == {address.port for address in process.addresses}


def ways(secured: Secured) -> dict[str, Authentication]:
    files = secured.authority.sign("admin")
    return {
        "token": by_token("admin"),
        "password": AuthenticationBasic("admin", "123456"),
        "certificate": AuthenticationTLS(str(files.certificate), str(files.key)),
    }


@OURS
@pytest.mark.parametrize("way", ["token", "password", "certificate"])
@on_both
async def test_a_lookup_over_https_leads_to_tls_connections(secured: Secured, way: str) -> None:
    trust = str(secured.authority.path)
    async with connect(secured.admin_url, authentication=ways(secured)[way], tls_trust_certs_file_path=trust) as client:
        await there_and_back(client, f"t-{uuid.uuid4().hex[:8]}")
        assert {way.address.tls for way in client._core.brokers._pool._connections} == {True}


@OURS
@pytest.mark.parametrize(
    ("who", "expected"),
    [
        (None, errors.AuthenticationError),
        (by_token("admin", key=OTHER), errors.AuthenticationError),
        (AuthenticationBasic("admin", "wrong"), errors.AuthenticationError),
        (by_token("stranger"), errors.AuthorizationError),
    ],
    ids=["nobody", "another key", "password", "stranger"],
)
@on_both
async def test_wrong_credentials_over_https(
    secured: Secured, who: Authentication | None, expected: type[errors.PulsarError]
) -> None:
    trust = str(secured.authority.path)
    with anyio.fail_after(30), pytest.raises(expected) as caught:
        async with connect(secured.admin_url, authentication=who, tls_trust_certs_file_path=trust) as client:
            await client.get_topic_partitions("t")
    assert type(caught.value) is expected


@OURS
@on_both
async def test_a_lookup_over_https_refuses_a_broker_that_is_not_trusted(secured: Secured) -> None:
    with pytest.raises(errors.AuthenticationError, match="the certificate is not trusted"):
        async with connect(secured.admin_url) as client:
            await client.get_topic_partitions("t")
