"""Message ids by index (PIP-415): the client seeks to the id that REST gives."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import quote

import pulsar
import pytest

from tests.foreign.python.message_index import STAMPING

from ..admin import Admin, AdminError
from ..broker_process import BrokerProcess
from ..conftest import Launch

TOPIC = "persistent://public/default/indexed"


@pytest.fixture
def stamping(launch: Launch) -> BrokerProcess:
    """Start a broker with interceptors, which give each entry an index."""
    return launch(
        *STAMPING,
        *("--set", "exposingBrokerEntryMetadataToClientEnabled=true"),
    )


@pytest.fixture
def client(stamping: BrokerProcess) -> Iterator[Any]:
    with closing(pulsar.Client(stamping.address.service_url, operation_timeout_seconds=30)) as client:
        yield client


@pytest.fixture
def admin(stamping: BrokerProcess) -> Admin:
    return Admin(stamping.address.admin_url)


def path(topic: str, rest: str) -> str:
    return f"/admin/v2/persistent/{quote(topic.removeprefix('persistent://'))}/{rest}"


def publish(client: Any, *batches: int) -> list[bytes]:
    """Publish batches of the given sizes, and return the payloads, one for each index."""
    producer = client.create_producer(
        TOPIC, batching_enabled=True, batching_max_messages=1000, batching_max_publish_delay_ms=60_000
    )
    sent: list[bytes] = []
    for count in batches:
        for _ in range(count):
            sent.append(b"%d" % len(sent))
            producer.send_async(sent[-1], None)
        producer.flush()
    producer.close()
    return sent


def id_of(admin: Admin, index: int) -> Any:
    found = admin.call("GET", path(TOPIC, f"getMessageIdByIndex?index={index}"))
    assert set(found) == {"ledgerId", "entryId", "partitionIndex"}
    return pulsar.MessageId(found["partitionIndex"], found["ledgerId"], found["entryId"], -1)


def index_of(admin: Admin, message_id: Any) -> int:
    """Return the index of a message, computed from the entry's.

    The index of an entry is that of the batch's last message (S415-29).
    """
    where = f"ledger/{message_id.ledger_id()}/entry/{message_id.entry_id()}"
    with urllib.request.urlopen(admin.url + path(TOPIC, where), timeout=30) as answer:
        last = int(answer.headers["X-Pulsar-Broker-Entry-METADATA-index"])
        size = int(answer.headers.get("X-Pulsar-num-batch-message", 1))
    in_batch: int = max(message_id.batch_index(), 0)
    return last - size + 1 + in_batch


@pytest.mark.req("S415-28", "S415-29", "S415-35")
def test_consuming_from_an_index_inside_a_batch(client: Any, admin: Admin) -> None:
    sent = publish(client, 3, 2)
    consumer = client.subscribe(TOPIC, "s", initial_position=pulsar.InitialPosition.Latest)
    consumer.seek(id_of(admin, 1))
    received = [consumer.receive(30_000) for _ in range(5)]
    indexes = [index_of(admin, message.message_id()) for message in received]
    assert indexes == [0, 1, 2, 3, 4]
    wanted = [message.data() for message, index in zip(received, indexes, strict=True) if index >= 1]
    assert wanted == sent[1:]
    for message, index in zip(received, indexes, strict=True):
        found, message_id = id_of(admin, index), message.message_id()
        assert (found.ledger_id(), found.entry_id()) == (message_id.ledger_id(), message_id.entry_id())


@pytest.mark.req("S415-41")
def test_seeking_to_an_index(client: Any, admin: Admin) -> None:
    sent = publish(client, 1, 1, 1, 1, 1)
    consumer = client.subscribe(TOPIC, "s", initial_position=pulsar.InitialPosition.Earliest)
    consumer.seek(id_of(admin, 3))
    assert [consumer.receive(30_000).data() for _ in range(2)] == sent[3:]
    reader = client.create_reader(TOPIC, id_of(admin, 2), start_message_id_inclusive=True)
    assert reader.read_next(30_000).data() == sent[2]
    with pytest.raises(AdminError) as absent:
        id_of(admin, 5)
    assert absent.value.status == 404


@pytest.mark.req("S415-41")
def test_acknowledging_up_to_an_index(client: Any, admin: Admin) -> None:
    publish(client, 2, 3, 1)
    consumer = client.subscribe(TOPIC, "s", initial_position=pulsar.InitialPosition.Earliest)
    for _ in range(6):
        consumer.receive(30_000)
    consumer.acknowledge_cumulative(id_of(admin, 4))
    consumer.close()
    assert admin.backlog(TOPIC, "s") == 1
