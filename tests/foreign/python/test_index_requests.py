"""Requests of PIP-415 over TCP, on topics of the official client: the message of each index, and each refusal."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pulsar
import pytest

from tests.broker.auth.secured import bearer, token

from ..admin import Admin
from ..broker_process import BrokerProcess, is_pulsarium
from ..conftest import Launch
from ..secured import SECRET_OF_TEST, by_tokens
from .message_index import INTERCEPTORS, STAMPING
from .traffic import consume, payloads, send_all

pytestmark = pytest.mark.skipif(not is_pulsarium(), reason="PIP-415 as proposed differs from the released brokers")

TOPIC = "persistent://public/default/indexed"
EARLIEST_ID = {"ledgerId": -1, "entryId": -1, "partitionIndex": -1}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Start a broker whose entries have an index, for all tests here."""
    process = BrokerProcess(tmp_path_factory.mktemp("stamping"), STAMPING)
    yield process.address
    assert process.stop() == 0


@pytest.fixture
def admin(broker: Any) -> Admin:
    return Admin(broker.admin_url)


@pytest.fixture
def topic(admin: Admin, request: pytest.FixtureRequest) -> str:
    return f"persistent://public/default/{request.node.name}"


def path_of(topic: str, query: str) -> str:
    domain, _, name = topic.partition("://")
    return f"/admin/v2/{domain}/{quote(name)}/getMessageIdByIndex{query}"


def asked(admin: Admin, topic: str, query: str, **headers: str) -> int:
    return admin.answer("GET", path_of(topic, query), **headers)[0]


def id_of(admin: Admin, topic: str, index: int) -> Any:
    return admin.call("GET", path_of(topic, f"?index={index}"))


def publish(client: Any, topic: str, *batches: int) -> list[dict[str, int]]:
    """Publish batches of the given sizes, and return the id of each batch in the form of REST."""
    ids = []
    for count in batches:
        batch = {"batching_max_messages": 1000, "batching_max_publish_delay_ms": 60_000}
        options: dict[str, Any] = batch if count > 1 else {}
        producer = client.create_producer(topic, batching_enabled=count > 1, **options)
        found = send_all(producer, payloads(count))[-1]
        producer.close()
        ids.append(
            {"ledgerId": found.ledger_id(), "entryId": found.entry_id(), "partitionIndex": max(found.partition(), -1)}
        )
    return ids


@pytest.mark.req("S415-01", "S415-02", "S415-03", "S415-04", "S415-06", "S415-07", "S415-08", "S415-09", "S415-22")
@pytest.mark.req("S415-17", "S415-27", "B-52")
def test_the_indexes_of_the_proposals_example(client: Any, admin: Admin) -> None:
    topic = "persistent://public/default/a b+c"
    a, b = publish(client, topic, 3, 2)
    assert (a["entryId"], b["entryId"], a["partitionIndex"]) == (0, 1, -1)
    assert [id_of(admin, topic, index) for index in range(5)] == [a, a, a, b, b]
    assert asked(admin, topic, "?index=5") == 404
    assert admin.call("GET", path_of(topic, "?index=1&authoritative=true")) == a


@pytest.mark.req("S415-10", "S415-11", "S415-12", "S415-13", "S415-14", "S415-18")
def test_an_invalid_index_is_not_found(client: Any, admin: Admin, topic: str) -> None:
    publish(client, topic, 1)
    for query in ("?index=-1", "", "?index=", "?index=abc", "?index=1.5", "?index=9223372036854775808"):
        assert asked(admin, topic, query) == 404, query
    client.create_producer(f"{topic}-empty").close()
    for absent in (f"{topic}-empty", f"{topic}-absent", "persistent://public/absent/t"):
        assert asked(admin, absent, "?index=0") == 404
    loose = topic.replace("persistent", "non-persistent")
    kept_open = client.create_producer(loose)
    assert asked(admin, loose, "?index=0") == 406
    kept_open.close()


@pytest.mark.req("S415-05", "S415-19", "S415-32")
def test_each_partition_counts_for_itself(client: Any, admin: Admin, topic: str) -> None:
    admin.create_partitioned(topic, 2)
    for partition in (0, 1):
        name = f"{topic}-partition-{partition}"
        publish(client, name, 1, 1)
        found = [id_of(admin, name, index) for index in (0, 1)]
        assert [(each["entryId"], each["partitionIndex"]) for each in found] == [(0, partition), (1, partition)]
    assert asked(admin, topic, "?index=0") == 405


@pytest.mark.req("S415-26", "S415-31")
def test_indexes_go_on_in_the_next_ledger_and_those_of_deleted_messages_find_the_earliest_id(
    client: Any, admin: Admin, topic: str
) -> None:
    publish(client, topic, 3, 2)
    admin.unload(topic)
    (kept,) = publish(client, topic, 4)
    assert [id_of(admin, topic, index) for index in (5, 8)] == [kept, kept]
    admin.call("DELETE", f"/admin/v2/{topic.replace('://', '/')}/truncate")
    assert id_of(admin, topic, 4) == EARLIEST_ID


@pytest.mark.req("W-03")
def test_a_client_gets_entries_without_what_the_broker_put_before_them(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s", initial_position=pulsar.InitialPosition.Earliest)
    publish(client, topic, 1, 3)
    assert consume(consumer, 4) == [payloads(1)[0], *payloads(3)]


# Tests that start their own brokers


@pytest.mark.req("S415-20", "S415-21", "S415-23")
def test_a_broker_or_an_entry_without_an_index_is_a_412(launch: Launch, data: str) -> None:
    bare = launch("--data", data)
    with closing(pulsar.Client(bare.address.service_url)) as client:
        publish(client, TOPIC, 1)
    for topic, query in ((TOPIC, "?index=0"), (TOPIC, "?index=-1"), (f"{TOPIC}-absent", "?index=0")):
        assert asked(Admin(bare.address.admin_url), topic, query) == 412
    bare.stop()
    only_times = INTERCEPTORS.partition(",")[0]
    admin = Admin(launch("--data", data, "--set", f"brokerEntryMetadataInterceptors={only_times}").address.admin_url)
    status, text = admin.answer("GET", path_of(TOPIC, "?index=0"))
    assert (status, "Broker entry metadata is not present in the message" in text) == (412, True)


@pytest.mark.req("S415-33")
def test_the_index_goes_on_after_a_kill(launch: Launch, data: str) -> None:
    ids: list[dict[str, int]] = []
    for batches in ((2, 3), (1,)):
        broker = launch("--data", data, *STAMPING)
        with closing(pulsar.Client(broker.address.service_url)) as client:
            ids += publish(client, TOPIC, *batches)
            assert id_of(Admin(broker.address.admin_url), TOPIC, 4) == ids[1]
        broker.kill()
    broker = launch("--data", data, *STAMPING)
    assert [id_of(Admin(broker.address.admin_url), TOPIC, index) for index in (1, 4, 5)] == ids


@pytest.mark.req("S415-16")
def test_another_broker_sends_the_request_to_the_owner(launch: Launch) -> None:
    addresses = launch("--brokers", "2", *STAMPING).addresses
    with closing(pulsar.Client(addresses[0].service_url)) as client:
        found = publish(client, TOPIC, 1)
    answers = []
    for each in addresses:
        connection = http.client.HTTPConnection("127.0.0.1", each.http_port, timeout=30)
        connection.request("GET", path_of(TOPIC, "?index=0"))
        answers.append(connection.getresponse().status)
        connection.close()
        assert [id_of(Admin(each.admin_url), TOPIC, 0)] == found  # this client follows redirects
    assert sorted(answers) == [200, 307]


@pytest.mark.req("S415-15")
def test_only_a_role_that_may_consume_may_ask_for_an_index(launch: Launch, tmp_path: Path) -> None:
    interceptors = f"brokerEntryMetadataInterceptors={INTERCEPTORS}"
    address = launch(*by_tokens(tmp_path, interceptors)).address
    admin = Admin(address.admin_url)
    superuser, producer, consumer = (bearer(role, key=SECRET_OF_TEST) for role in ("admin", "producer", "consumer"))
    for role in ("produce", "consume"):
        path = f"/admin/v2/namespaces/public/default/permissions/{role}r"
        assert admin.answer("POST", path, [role], **superuser) == (204, "")
    authentication = pulsar.AuthenticationToken(token("admin", key=SECRET_OF_TEST))
    with closing(pulsar.Client(address.service_url, authentication)) as client:
        publish(client, TOPIC, 1)
    for headers, status in (({}, 401), (producer, 403), (consumer, 200), (superuser, 200)):
        assert asked(admin, TOPIC, "?index=0", **headers) == status
