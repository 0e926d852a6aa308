"""Requests of PIP-423 over TCP: each form of the body, each refusal, and the official client's backlog after them."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pulsar
import pytest

from tests.broker.auth.secured import bearer, token

from ..admin import Admin
from ..broker_process import is_pulsarium
from ..conftest import Launch
from ..secured import SECRET_OF_TEST, by_tokens
from .traffic import assert_nothing_more, consume, payloads, send_all

pytestmark = pytest.mark.skipif(not is_pulsarium(), reason="no released broker has PIP-423")

EARLIEST, SHARED = pulsar.InitialPosition.Earliest, pulsar.ConsumerType.Shared
TOPIC = "persistent://public/default/skipped"
SAMPLE = base64.b64decode("CLlgEAQwAA==")


def path_of(topic: str, subscription: str = "s", version: str = "v2") -> str:
    return f"/admin/{version}/{topic.replace('://', '/', 1)}/subscription/{subscription}/skipByMessageIds"


def post(admin: Admin, topic: str, body: object, subscription: str = "s") -> tuple[int, str]:
    return admin.answer("POST", path_of(topic, subscription), body)


def triplet(message_id: Any, batch_index: int | None = None) -> dict[str, Any]:
    found = {"ledgerId": message_id.ledger_id(), "entryId": message_id.entry_id()}
    return found if batch_index is None else {**found, "batchIndex": batch_index}


def format_1(*ids: object) -> dict[str, Any]:
    return {"type": "messageId", "messageIds": list(ids)}


def encoded(message_id: Any) -> str:
    return base64.b64encode(message_id.serialize()).decode()


def subscribe(client: Any, topic: str, kind: Any = SHARED, name: str = "s") -> Any:
    return client.subscribe(topic, name, kind, initial_position=EARLIEST, batch_index_ack_enabled=True)


def publish(client: Any, topic: str, count: int, batch: int = 0) -> list[Any]:
    """Publish single messages, or batches of `batch`, and return the ids of the messages."""
    options = {"batching_max_messages": batch, "batching_max_publish_delay_ms": 60_000} if batch else {}
    producer = client.create_producer(topic, batching_enabled=bool(batch), **options)
    ids = send_all(producer, payloads(count))
    producer.close()
    return ids


def left(client: Any, topic: str, numbers: Sequence[int], name: str = "s") -> None:
    """Check that a new consumer receives these messages and no others."""
    consumer = subscribe(client, topic, name=name)
    assert consume(consumer, len(numbers)) == [payloads(1, number)[0] for number in numbers]
    assert_nothing_more(consumer)
    consumer.close()


@pytest.mark.req("S423-01", "S423-03", "S423-38", "S423-39", "S423-60", "S423-74", "SREV-01", "SREV-10", "SREV-12")
def test_a_skipped_message_is_gone_for_its_subscription_alone(client: Any, admin: Admin, topic: str) -> None:
    for name in ("s", "other"):
        subscribe(client, topic, name=name).close()
    ids = publish(client, topic, 5)
    assert post(admin, topic, format_1(triplet(ids[2]))) == (204, "")
    left(client, topic, [0, 1, 3, 4])
    left(client, topic, [0, 1, 2, 3, 4], "other")
    assert admin.stats(topic)["msgInCounter"] == 5
    assert admin.call("GET", f"{path_of(topic).partition('/subscription/')[0]}/internalStats")["numberOfEntries"] == 5


@pytest.mark.req("S423-30", "S423-31", "S423-37")
@pytest.mark.parametrize("kind", [SHARED, pulsar.ConsumerType.KeyShared])
def test_subscriptions_that_several_consumers_share_may_skip(
    client: Any, admin: Admin, topic: str, kind: pulsar.ConsumerType
) -> None:
    subscribe(client, topic, kind).close()
    ids = publish(client, topic, 3)
    assert post(admin, topic, format_1(triplet(ids[1])))[0] == 204
    consumer = subscribe(client, topic, kind)
    assert consume(consumer, 2) == [payloads(1)[0], payloads(1, 2)[0]]
    assert_nothing_more(consumer)


@pytest.mark.req("S423-03", "S423-07", "S423-08", "S423-11", "S423-21", "S423-22", "S423-50")
def test_each_form_of_the_body_skips_its_message(client: Any, admin: Admin, topic: str) -> None:
    sample = pulsar.MessageId.deserialize(SAMPLE)
    assert (sample.ledger_id(), sample.entry_id(), sample.batch_index()) == (12345, 4, -1)
    subscribe(client, topic).close()
    ids = publish(client, topic, 8)
    batch = publish(client, topic, 3, batch=3)[0]
    whole = pulsar.MessageId(-1, batch.ledger_id(), batch.entry_id(), -1).serialize()
    as_sample = base64.b64encode(whole.removesuffix(b"\x30\x00") + b"\x30\x00").decode()
    bodies: list[tuple[object, int]] = [
        ([], 0),
        (format_1(), 0),
        ([base64.b64encode(SAMPLE).decode()], 0),  # the ledger does not exist
        ([encoded(ids[0])], 1),
        ([encoded(ids[0])], 0),  # the message is skipped already
        ({"type": "byteArray", "messageIds": [encoded(ids[1])]}, 1),
        ({"messageIds": [encoded(ids[2])]}, 1),
        ({"type": "BYTEarray", "messageIds": [None, encoded(ids[3])]}, 1),
        (format_1(None, triplet(ids[4]), triplet(ids[5])), 2),
        ([as_sample], 1),
    ]
    for body, fewer in bodies:
        before = admin.backlog(topic, "s")
        assert (post(admin, topic, body), before - admin.backlog(topic, "s")) == ((204, ""), fewer), body
    left(client, topic, [6, 7])


@pytest.mark.req("S423-04", "S423-05", "S423-06", "S423-46", "S423-47", "S423-48", "S423-51", "SREV-08")
def test_whole_batches_and_parts_of_batches_go_together(client: Any, admin: Admin, topic: str) -> None:
    consumer = subscribe(client, topic)
    ids = publish(client, topic, 25, batch=5)
    first, second, third, fourth, fifth = ids[::5]
    messages = [consumer.receive(30_000) for _ in range(25)]
    consumer.acknowledge(messages[15])  # of the fourth batch
    consumer.close()
    together = [triplet(first), triplet(second, 1), triplet(second, 3)]
    assert post(admin, topic, format_1(*together, triplet(third, 0), triplet(third), triplet(third, 2)))[0] == 204
    assert post(admin, topic, format_1(triplet(fourth, 1), triplet(fourth, 0)))[0] == 204
    for index in range(5):
        assert post(admin, topic, format_1(triplet(fifth, index)))[0] == 204
    left(client, topic, [5, 7, 9, 17, 18, 19])
    assert admin.backlog(topic, "s") == 0


@pytest.mark.req("S423-33")
def test_a_subscription_that_had_no_consumer_yet_may_skip(client: Any, admin: Admin, topic: str) -> None:
    ids = publish(client, topic, 2)
    admin.call("PUT", path_of(topic).removesuffix("/skipByMessageIds"), "earliest")
    assert post(admin, topic, format_1(triplet(ids[0])))[0] == 204
    left(client, topic, [1])


@pytest.mark.req("S423-43", "S423-44", "S423-45")
def test_the_cursor_is_that_of_the_same_acknowledgements(client: Any, admin: Admin, topic: str) -> None:
    consumer = subscribe(client, topic, name="acks")
    subscribe(client, topic).close()
    ids = publish(client, topic, 6)
    kept = f"{path_of(topic).partition('/subscription/')[0]}/internalStats"
    for numbers, mark_delete in (((2, 4), -1), ((0,), 0), ((1, 3), 4)):
        for number in numbers:
            consumer.acknowledge(ids[number])
        assert post(admin, topic, format_1(*[triplet(ids[number]) for number in numbers]))[0] == 204
        consumer.close()  # closing sends the consumer's acknowledgements
        consumer = subscribe(client, topic, name="acks")
        cursors = admin.call("GET", kept)["cursors"]
        for key in ("markDeletePosition", "individuallyDeletedMessages", "messagesConsumedCounter"):
            assert cursors["s"][key] == cursors["acks"][key], key
        assert cursors["s"]["markDeletePosition"].endswith(f":{mark_delete}")


@pytest.mark.req("S423-42")
def test_delayed_messages_that_are_skipped_are_no_backlog(client: Any, admin: Admin, topic: str) -> None:
    subscribe(client, topic)
    producer = client.create_producer(topic, batching_enabled=False)
    ids = [producer.send(b"x", deliver_at=4_000_000_000_000) for _ in range(2)]
    ids.append(producer.send(b"now"))
    assert admin.backlog(topic, "s") == 3
    assert post(admin, topic, format_1(triplet(ids[1])))[0] == 204
    assert admin.backlog(topic, "s") == 2


@pytest.mark.req("S423-10", "S423-56")
def test_one_partition_skips_only_its_own_ids(client: Any, admin: Admin, topic: str) -> None:
    admin.create_partitioned(topic, 2)
    subscribe(client, topic).close()
    ids = publish(client, topic, 4)
    of = {partition: [each for each in ids if each.partition() == partition] for partition in (0, 1)}
    assert {len(each) for each in of.values()} == {2}
    first, second = (f"{topic}-partition-{partition}" for partition in (0, 1))
    assert post(admin, first, [encoded(of[0][0]), encoded(of[1][0])])[0] == 204
    assert [admin.backlog(name, "s") for name in (first, second)] == [1, 2]


@pytest.mark.req("S423-12", "S423-13", "S423-14", "S423-15", "S423-16", "S423-17", "S423-18", "S423-19", "S423-20")
@pytest.mark.req("S423-36", "S423-53", "SREV-03", "SREV-07")
def test_a_wrong_body_is_a_400_and_acknowledges_nothing(client: Any, admin: Admin, topic: str) -> None:
    subscribe(client, topic).close()
    (single, other), batch = publish(client, topic, 2), publish(client, topic, 5, batch=5)[0]
    at = triplet(single)
    wrong_ids: list[object] = [
        *({**at, field: value} for field in at for value in ("abc", -1, 1.5, None)),
        {"ledgerId": 7},
        {"entryId": 3},
        triplet(single, 0),
        triplet(batch, 5),
        triplet(batch, -1),
        {**at, "entryId": 999},  # the entry does not exist yet
        *("not_base64!!", "", "AAAA", 5),
    ]
    bodies: list[object] = [
        *(b"{", b"[", b"", b"null", b"\xff", b'{"type":"messageId","messageIds":[}'),
        *(5, "CLlgEAQwAA==", {}, {"12345": "100"}, {"messageIds": at}, {"messageIds": "x"}, {"messageIds": None}),
        {"type": "map", "messageIds": []},
        *(["not_base64!!"], [""], ["AAAA"], [5], [at]),
        *(format_1(triplet(other), triplet(batch, 1), wrong) for wrong in wrong_ids),
    ]
    for body in bodies:
        status, text = post(admin, topic, body)
        assert (status, admin.backlog(topic, "s")) == (400, 3), (body, text)
    left(client, topic, [0, 1, 0, 1, 2, 3, 4])


@pytest.mark.req("S423-02", "S423-26", "S423-27", "SREV-06")
def test_other_methods_paths_and_names_are_refused(client: Any, admin: Admin, topic: str) -> None:
    subscribe(client, topic).close()
    (message_id,) = publish(client, topic, 1)
    for method in ("GET", "PUT", "DELETE"):
        assert admin.answer(method, path_of(topic))[0] == 405
    body = format_1(triplet(message_id))
    assert post(admin, f"{topic}-absent", body)[0] == post(admin, topic, body, "absent")[0] == 404
    v1 = topic.replace("://public/", "://public/standalone/")
    assert admin.answer("POST", path_of(v1, version="v1"), body)[0] == 404
    assert admin.answer("POST", path_of(topic.replace("persistent", "non-persistent")), body)[0] == 404
    assert admin.backlog(topic, "s") == 1


@pytest.mark.req("S423-59", "SREV-02", "SREV-04", "SREV-05", "SREV-11")
def test_the_older_skip_takes_a_count_and_no_ids(client: Any, admin: Admin, topic: str) -> None:
    subscribe(client, topic).close()
    ids = publish(client, topic, 5)
    by_count = path_of(topic).removesuffix("ByMessageIds")
    for body in (None, {str(ids[3].ledger_id()): str(ids[3].entry_id())}, format_1(triplet(ids[3]))):
        assert admin.answer("POST", f"{by_count}/0", body) == (204, "")
        assert admin.backlog(topic, "s") == 5
    assert admin.answer("POST", f"{by_count}/2", format_1(triplet(ids[3]))) == (204, "")
    left(client, topic, [2, 3, 4])


@pytest.mark.req("S423-28", "S423-29", "S423-32", "S423-34", "S423-35", "SREV-09")
@pytest.mark.parametrize("kind", [pulsar.ConsumerType.Exclusive, pulsar.ConsumerType.Failover])
def test_a_subscription_of_one_active_consumer_may_not_skip(
    client: Any, admin: Admin, topic: str, kind: pulsar.ConsumerType
) -> None:
    consumer = subscribe(client, topic, kind)
    ids = publish(client, topic, 2)
    for body in (format_1(triplet(ids[0])), format_1(triplet(ids[0], 7)), format_1({"ledgerId": "abc"}), {}, [""]):
        status, text = post(admin, topic, body)
        assert (status, "Unsupported subscription type." in text) == (405, True), body
    consumer.close()
    assert post(admin, topic, format_1(triplet(ids[0])))[0] == 405
    left(client, topic, [0, 1])


@pytest.mark.req("S423-87")
def test_the_cursor_of_compaction_may_not_skip(client: Any, admin: Admin, topic: str) -> None:
    (message_id,) = publish(client, topic, 1)
    admin.compact(topic)
    assert post(admin, topic, format_1(triplet(message_id)), "__compaction")[0] == 405


# Tests that start their own brokers


@pytest.mark.req("S423-72")
def test_a_released_broker_has_no_such_path(launch: Launch) -> None:
    admin = Admin(launch("--profile", "pulsar-4.2").address.admin_url)
    assert post(admin, TOPIC, [])[0] == 404


@pytest.mark.req("S423-85")
def test_parts_of_batches_stay_where_the_broker_acknowledges_whole_entries(launch: Launch) -> None:
    address = launch("--set", "acknowledgmentAtBatchIndexLevelEnabled=false").address
    admin = Admin(address.admin_url)
    with closing(pulsar.Client(address.service_url)) as client:
        subscribe(client, TOPIC).close()
        batch = publish(client, TOPIC, 3, batch=3)[0]
        assert post(admin, TOPIC, format_1(triplet(batch, 1)))[0] == 405
        left(client, TOPIC, [0, 1, 2])


@pytest.mark.req("S423-57")
def test_another_broker_sends_a_skip_to_the_owner(launch: Launch) -> None:
    addresses = launch("--brokers", "2").addresses
    with closing(pulsar.Client(addresses[0].service_url)) as client:
        subscribe(client, TOPIC).close()
        ids = publish(client, TOPIC, 2)
        statuses = [post(Admin(each.admin_url), TOPIC, format_1(triplet(ids[0])))[0] for each in addresses]
        assert sorted(statuses) == [204, 307]
        left(client, TOPIC, [1])


@pytest.mark.req("S423-63", "S423-64", "S54-24")
def test_skips_beyond_the_caps_come_again_after_a_kill(launch: Launch, data: str) -> None:
    caps = ("managedLedgerMaxUnackedRangesToPersist=2", "managedLedgerMaxBatchDeletedIndexToPersist=1")
    options = ("--data", data, *(word for cap in caps for word in ("--set", cap)))
    broker = launch(*options)
    with closing(pulsar.Client(broker.address.service_url)) as client:
        subscribe(client, TOPIC).close()
        ids, batches = publish(client, TOPIC, 8), publish(client, TOPIC, 4, batch=2)[::2]
    skipped = (*map(triplet, ids[1::2]), *(triplet(batch, 0) for batch in batches))
    assert post(Admin(broker.address.admin_url), TOPIC, format_1(*skipped))[0] == 204
    assert Admin(broker.address.admin_url).backlog(TOPIC, "s") < 12
    broker.kill()
    broker = launch(*options)
    with closing(pulsar.Client(broker.address.service_url)) as client:
        left(client, TOPIC, [0, 2, 4, 5, 6, 7, 1, 2, 3])


@pytest.mark.req("S423-23", "S423-24", "S423-25")
def test_only_a_role_that_may_consume_may_skip(launch: Launch, tmp_path: Path) -> None:
    address = launch(*by_tokens(tmp_path)).address
    admin = Admin(address.admin_url)
    superuser, producer, consumer = (bearer(role, key=SECRET_OF_TEST) for role in ("admin", "producer", "consumer"))
    for role in ("produce", "consume"):
        path = f"/admin/v2/namespaces/public/default/permissions/{role}r"
        assert admin.answer("POST", path, [role], **superuser) == (204, "")
    authentication = pulsar.AuthenticationToken(token("admin", key=SECRET_OF_TEST))
    with closing(pulsar.Client(address.service_url, authentication)) as client:
        subscribe(client, TOPIC).close()
        ids = publish(client, TOPIC, 2)
        wrong = {"authorization": "Bearer nonsense"}
        for headers, status in (({}, 401), (wrong, 401), (producer, 403), (consumer, 204)):
            assert admin.answer("POST", path_of(TOPIC), format_1(triplet(ids[0])), **headers)[0] == status
        left(client, TOPIC, [1])
