"""Timers and waits of a broker, which obey the lab's clock: days pass here in no time."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pulsarium.broker.config import Config, profile_of
from pulsarium.broker.config.keys import APPEND_BROKER_TIMESTAMP
from pulsarium.broker.lab import Lab
from pulsarium.broker.model.errors import TopicNotFoundError
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.broker.model.transaction.coordinators import ASSIGN
from pulsarium.broker.net import slices
from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.web.rates import Rates
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.auth.secured import OTHER_SECRET, SECRET, by_token, jwks, token
from tests.broker.held import HeldStorage
from tests.broker.model.upkeep.policed import set_policies
from tests.broker.web.websocket.talk import CONSUMER, PRODUCER, message, websockets
from tests.broker.wire import TOPIC, Bed, Earliest, Exclusive, Failover, Shared, Type, Wire, plain, serving

DAY = 86_400
HOUR = 3600
SCALABLE = TopicName.parse("topic://public/default/t")


ONLY_THE_BROKERS = (  # these belong to no single namespace
    "test_transactions_time_out",
    "test_changes_of_a_namespace_are_gathered_for_a_moment",
    "test_transactions_over_scalable_topics_time_out_and_are_forgotten",
    "test_rates_are_averages_over_a_minute_of_the_clock",
    "test_connections_live_on",
    "test_tokens_are_as_good_as_their_makers_clock_says",
    "test_keys_of_tokens_are_read_again_at_their_interval",
    "test_late_sends_of_a_closed_producer_are_dropped_for_as_long_as_the_client_may_not_know",
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    whose = ["broker"] if metafunc.function.__name__ in ONLY_THE_BROKERS else ["broker", "namespace"]
    metafunc.parametrize("whose", whose, indirect=True)


@pytest.fixture(autouse=True)
def whose(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run a test under the broker's clock, and under the clock of the namespace that has all the test's topics."""
    token = WHOSE.set(request.param)
    yield
    WHOSE.reset(token)


WHOSE = ContextVar[str]("WHOSE")


class Steering(NamedTuple):
    """The lab, and the clock that a test steers: the broker's or a namespace's."""

    lab: Lab

    @property
    def clock(self) -> Any:
        broker = self.lab.clock
        return broker if WHOSE.get() == "broker" else broker.of("public/default")


@asynccontextmanager
async def stage(data: Path | None = None, **config: Any) -> AsyncIterator[tuple[Bed, Steering, Wire]]:
    """Serve a broker. Yield it, its lab, and a connection with a producer 0 on the usual topic."""
    async with serving(Config(**config), data=data) as bed:
        wire = await bed.connect()
        await wire.producer()
        lab = bed.broker.cluster.attached(Lab)
        yield bed, Steering(lab), wire


async def nothing(wire: Wire) -> None:
    """Check that no message is delivered."""
    await wire.alive()
    assert not wire.inbox


def client_ms() -> int:
    """Return the time of a client's own clock, in milliseconds since the epoch."""
    return int(time.time() * 1000)


@pytest.mark.parametrize("stored", [False, True])
async def test_delayed_messages_come_when_the_clock_is_advanced(tmp_path: Path, stored: bool) -> None:
    async with stage(tmp_path if stored else None) as (_, lab, wire):
        lab.clock.freeze()
        now = lab.clock.now_ms()
        await wire.subscribe(type=Shared)
        await wire.flow()
        week = plain(b"week", deliver_at_time=now + 7 * DAY * 1000)
        await wire.publish(plain(b"2 h", deliver_at_time=now + 2 * HOUR * 1000), week, plain(b"now"))
        assert await wire.payloads(1) == [b"now"]
        await lab.clock.advance(7 * DAY - 60)
        assert await wire.payloads(1) == [b"2 h"]
        assert lab.clock.next_in == pytest.approx(60, abs=1)  # a tick is a second
        await lab.clock.run_next()
        assert await wire.payloads(1) == [b"week"]


async def test_a_delayed_message_waits_for_no_tick_while_the_lab_moves_the_clock() -> None:
    async with stage() as (_, lab, wire):
        await wire.subscribe(type=Shared)
        await wire.flow()
        lab.clock.freeze()
        await wire.publish(plain(b"x", deliver_at_time=lab.clock.now_ms() + 2 * HOUR * 1000 + 600))
        await lab.clock.advance(2 * HOUR)
        await nothing(wire)
        await lab.clock.advance(0.6)
        assert await wire.payloads(1) == [b"x"]


async def test_a_week_passes_in_one_step() -> None:
    async with stage() as (_, lab, wire):
        await wire.subscribe(type=Shared)
        await wire.flow()
        await wire.publish(plain(b"week", deliver_at_time=client_ms() + 7 * DAY * 1000))
        await lab.clock.advance(7 * DAY)
        assert await wire.payloads(1) == [b"week"]


async def test_auto_advance_delivers_a_delayed_message_at_once() -> None:
    async with stage() as (_, lab, wire):
        lab.clock.auto_advance = True
        await wire.subscribe(type=Shared)
        await wire.flow()
        await wire.publish(plain(b"week", deliver_at_time=client_ms() + 7 * DAY * 1000))
        assert await wire.payloads(1) == [b"week"]


async def test_delays_count_anew_when_the_machines_time_comes_back() -> None:
    async with stage() as (_, lab, wire):
        await wire.subscribe(type=Shared)
        await wire.flow()
        await wire.publish(plain(b"0", deliver_at_time=client_ms() + DAY * 1000))
        await lab.clock.advance(DAY)
        assert await wire.payloads(1) == [b"0"]
        lab.clock.reset()
        await wire.publish(plain(b"1", deliver_at_time=client_ms() + HOUR * 1000))
        await lab.clock.advance(HOUR - 60)
        await nothing(wire)
        await lab.clock.advance(60)
        assert await wire.payloads(1) == [b"1"]


async def test_time_to_live() -> None:
    async with stage() as (bed, lab, wire):
        set_policies(bed.broker, message_ttl_in_seconds=HOUR)
        await wire.subscribe()
        sent = await wire.publish(plain(b"0", publish_time=client_ms()))
        await lab.clock.advance(HOUR - 1)
        assert bed.subscription().expired.total == 0
        await lab.clock.advance(301)
        assert bed.subscription().expired.total == 1
        assert bed.subscription().cursor.mark_delete == sent[0]


async def test_transactions_time_out() -> None:
    async with stage(transactionCoordinatorEnabled=True) as (bed, lab, wire):
        coordinators = bed.broker.cluster.coordinators
        assert coordinators is not None
        await wire.ask(Type.LOOKUP, topic=str(ASSIGN.partition(0)))
        await wire.ask(Type.TC_CLIENT_CONNECT_REQUEST, tc_id=0)
        lab.clock.freeze()
        await wire.ask(Type.NEW_TXN, tc_id=0, txn_ttl_millis=HOUR * 1000)
        coordinator = coordinators.served(0, bed.broker)
        await lab.clock.advance(HOUR - 1)
        assert coordinator.active == 1
        await lab.clock.advance(2)
        assert coordinator.active == 0


async def test_changes_of_a_namespace_are_gathered_for_a_moment() -> None:
    async with stage() as (bed, lab, wire):
        lab.clock.freeze()
        await wire.send(Type.WATCH_SCALABLE_TOPICS, watch_id=1, namespace="public/default")
        await wire.expect(Type.WATCH_SCALABLE_TOPICS_UPDATE)
        bed.broker.cluster.scalable.create(TopicName.parse("topic://public/default/new"))
        await nothing(wire)
        await lab.clock.advance(0.06)
        told = await wire.expect(Type.WATCH_SCALABLE_TOPICS_UPDATE)
        assert list(told.diff.added) == ["topic://public/default/new"]


async def test_transactions_over_scalable_topics_time_out_and_are_forgotten() -> None:
    async with stage() as (bed, lab, wire):
        coordinators = bed.broker.cluster.scalable_coordinators
        assert coordinators is not None
        opened = await wire.ask(Type.NEW_TXN, tc_id=0, txn_ttl_millis=HOUR * 1000, scalable=True)
        txn = {"txnid_most_bits": 0, "txnid_least_bits": opened.txnid_least_bits}
        await lab.clock.advance(HOUR - 61)
        assert coordinators.coordinator(0).active == 1
        await lab.clock.advance(122)
        assert coordinators.coordinator(0).active == 0
        assert not (await wire.ask(Type.END_TXN, **txn, txn_action=pb.ABORT, scalable=True)).HasField("error")
        await lab.clock.advance(HOUR)
        answer = await wire.ask(Type.END_TXN, **txn, txn_action=pb.ABORT, scalable=True)
        assert answer.error == pb.TransactionNotFound


async def test_registered_consumers_leave_after_their_grace_period() -> None:
    async with stage(scalableTopicConsumerSessionGracePeriodSeconds=DAY) as (bed, lab, _):
        topic = bed.broker.cluster.scalable.create(SCALABLE)
        registered = await bed.connect()
        await registered.ask(
            Type.SCALABLE_TOPIC_SUBSCRIBE,
            topic=str(SCALABLE),
            subscription="s",
            consumer_name="c",
            consumer_id=1,
            consumer_type=0,
        )
        await registered.aclose()
        await lab.clock.advance(DAY - 60)
        assert topic.registered == {"s": ["c"]}
        await lab.clock.advance(120)
        assert topic.registered == {}


async def test_cold_segments_of_scalable_topics_are_merged() -> None:
    async with stage(scalableTopicMergeWindowSeconds=HOUR) as (bed, lab, _):
        topic = bed.broker.cluster.scalable.create(SCALABLE, 2)
        controller = bed.broker.cluster.controllers.lead(topic, bed.broker)
        await lab.clock.advance(120)
        assert len(topic.layout.active()) == 2
        await lab.clock.advance(2 * HOUR)
        assert controller.last is not None
        assert (controller.last.kind, len(topic.layout.active())) == ("merge", 1)


async def test_a_message_that_expires_before_its_delivery_time_is_never_delivered() -> None:
    async with stage() as (bed, lab, wire):
        set_policies(bed.broker, message_ttl_in_seconds=DAY)
        await wire.subscribe(type=Shared)
        await wire.flow()
        now = client_ms()
        await wire.publish(plain(b"0", publish_time=now, deliver_at_time=now + 3 * DAY * 1000))
        await lab.clock.advance(7 * DAY)
        await nothing(wire)
        assert bed.subscription().expired.total == 1


@pytest.mark.parametrize(("interceptors", "expired"), [((), 1), ((APPEND_BROKER_TIMESTAMP,), 0)])
async def test_clients_stamp_messages_by_a_clock_that_did_not_advance(
    interceptors: tuple[str, ...], expired: int
) -> None:
    """A message that is new after an advance is old by its publish_time, unless the broker stamps entries itself."""
    async with stage(brokerEntryMetadataInterceptors=interceptors) as (bed, lab, wire):
        set_policies(bed.broker, message_ttl_in_seconds=HOUR)
        await wire.subscribe()
        await lab.clock.advance(DAY)
        await wire.publish(plain(b"0", publish_time=client_ms()))
        await lab.clock.advance(301)
        assert bed.subscription().expired.total == expired


async def test_a_delay_counts_from_the_clients_clock() -> None:
    """A message whose delay is shorter than the clock's advance is due at once."""
    async with stage() as (_, lab, wire):
        await wire.subscribe(type=Shared)
        await wire.flow()
        await lab.clock.advance(DAY)
        hour, week = client_ms() + HOUR * 1000, client_ms() + 7 * DAY * 1000
        await wire.publish(plain(b"hour", deliver_at_time=hour), plain(b"week", deliver_at_time=week))
        assert await wire.payloads(1) == [b"hour"]
        await lab.clock.advance(6 * DAY)
        assert await wire.payloads(1) == [b"week"]


async def test_retention_deletes_an_old_ledger_when_its_time_is_over() -> None:
    """A ledger is closed when it is old enough, and deleted when its retention time is over."""
    async with stage() as (bed, lab, wire):
        set_policies(bed.broker, retention_policies={"retentionTimeInMinutes": DAY // 60, "retentionSizeInMB": -1})
        await wire.publish(plain(b"0"))
        first = bed.topic().ledger.last_confirmed.ledger_id
        await lab.clock.advance(DAY)
        assert first in bed.topic().ledger.ledgers
        await lab.clock.advance(DAY)
        assert first not in bed.topic().ledger.ledgers


async def test_retention_keeps_unacknowledged_messages() -> None:
    async with stage() as (bed, lab, wire):
        set_policies(bed.broker, retention_policies={"retentionTimeInMinutes": DAY // 60, "retentionSizeInMB": -1})
        await wire.subscribe()
        await wire.publish(plain(b"0"))
        await lab.clock.advance(3 * DAY)
        await wire.flow()
        assert await wire.payloads(1) == [b"0"]


async def test_a_failover_consumer_becomes_active_after_its_delay() -> None:
    async with stage(activeConsumerFailoverDelayTimeMillis=HOUR * 1000) as (_, lab, wire):
        lab.clock.freeze()
        await wire.subscribe(type=Failover)
        await wire.flow()
        await wire.publish(plain(b"0"))
        await lab.clock.advance(HOUR - 1)
        await nothing(wire)
        await lab.clock.advance(1)
        assert (await wire.expect(Type.ACTIVE_CONSUMER_CHANGE)).is_active
        assert await wire.payloads(1) == [b"0"]


async def test_an_inactive_topic_is_deleted_when_its_time_is_over() -> None:
    async with stage(brokerDeleteInactiveTopicsMaxInactiveDurationSeconds=DAY) as (bed, lab, wire):
        await wire.ask(Type.CLOSE_PRODUCER, producer_id=0)
        await lab.clock.advance(DAY - 120)
        bed.topic()
        await lab.clock.advance(240)
        with pytest.raises(TopicNotFoundError):
            bed.topic()


async def test_an_unused_subscription_is_deleted_when_its_time_is_over() -> None:
    async with stage(subscriptionExpirationTimeMinutes=60) as (bed, lab, wire):
        await wire.subscribe()
        await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
        await lab.clock.advance(50 * 60)
        assert list(bed.topic().subscriptions) == ["sub"]
        await lab.clock.advance(20 * 60)
        assert not bed.topic().subscriptions


async def test_a_check_of_many_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands still until the check is over."""
    monkeypatch.setattr(slices, "SLICE", 0)
    async with stage() as (bed, lab, wire):
        for number in range(1, 10):
            await wire.producer(f"{TOPIC}-{number}", number)
        await wire.aclose()
        await bed.connect()
        await lab.clock.advance(180)
        assert not bed.broker.topics.loaded


async def test_a_deduplication_snapshot_is_taken_after_an_hour() -> None:
    async with stage(brokerDeduplicationEnabled=True) as (bed, lab, wire):
        await wire.ask(Type.CLOSE_PRODUCER, producer_id=0)
        await wire.producer(producer_name="p")
        (position,) = await wire.publish(plain(b"0"))
        deduplication = bed.topic().deduplication
        assert deduplication is not None
        assert deduplication.cursor.mark_delete < position
        await lab.clock.advance(HOUR)
        assert deduplication.cursor.mark_delete == position
        assert deduplication.cursor.properties == {"p": 0}


async def test_producers_that_left_are_forgotten() -> None:
    async with stage(brokerDeduplicationEnabled=True) as (bed, lab, wire):
        await wire.ask(Type.CLOSE_PRODUCER, producer_id=0)
        await wire.producer(producer_name="p")
        await wire.publish(plain(b"0"))
        await wire.subscribe(consumer_id=9)  # keeps the topic loaded
        await wire.ask(Type.CLOSE_PRODUCER, producer_id=0)
        deduplication = bed.topic().deduplication
        assert deduplication is not None
        await lab.clock.advance(5 * HOUR)
        assert deduplication.last_sequence_id("p") == 0
        await lab.clock.advance(4 * HOUR)
        assert deduplication.last_sequence_id("p") == -1


async def test_backlog_quotas_by_age() -> None:
    async with stage(managedLedgerMaxLedgerRolloverTimeMinutes=1, managedLedgerMinLedgerRolloverTimeMinutes=0) as (
        bed,
        lab,
        wire,
    ):
        quota = {"limitTime": HOUR, "limitSize": -1, "policy": "producer_request_hold"}
        set_policies(bed.broker, backlog_quota_map={"message_age": quota})
        await wire.subscribe()
        await wire.publish(plain(b"0", publish_time=client_ms()))
        await lab.clock.advance(2 * HOUR)
        await wire.expect(Type.CLOSE_PRODUCER)


async def test_a_subscribe_rate_allows_another_subscribe_in_the_next_period() -> None:
    rate = {"subscribeThrottlingRatePerConsumer": 1, "ratePeriodInSecond": HOUR}
    async with stage() as (bed, lab, wire):
        lab.clock.freeze()
        set_policies(bed.broker, clusterSubscribeRate={"standalone": rate})
        options: dict[str, Any] = {"topic": TOPIC, "subscription": "sub", "subType": Exclusive, "consumer_name": "c"}
        await wire.ask(Type.SUBSCRIBE, consumer_id=0, **options)
        await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
        await wire.refused(Type.SUBSCRIBE, consumer_id=0, **options)
        await lab.clock.advance(HOUR)
        await wire.ask(Type.SUBSCRIBE, consumer_id=0, **options)


async def test_a_publish_rate_lets_messages_in_when_its_tokens_come_back() -> None:
    rate = {"publishThrottlingRateInMsg": 1}
    async with stage() as (bed, lab, wire):
        lab.clock.freeze()
        set_policies(bed.broker, publishMaxMessageRate={"standalone": rate})
        await wire.write(wire.sends(plain(b"0"), plain(b"1"), plain(b"2"), num_messages=HOUR))
        await wire.receipts(1)
        await lab.clock.advance(HOUR - 10)
        await wire.quiet(0.01)
        await lab.clock.advance(10)
        await wire.receipts(1)
        await lab.clock.advance(HOUR)
        await wire.receipts(1)


async def test_a_dispatch_rate_delivers_the_next_message_in_the_next_period() -> None:
    rate = {"dispatchThrottlingRateInMsg": 1, "ratePeriodInSecond": HOUR}
    async with stage() as (bed, lab, wire):
        lab.clock.freeze()
        set_policies(bed.broker, topicDispatchRate={"standalone": rate})
        await wire.subscribe()
        await wire.flow()
        await wire.publish(plain(b"0"))
        await wire.message()
        await wire.publish(plain(b"1"))
        await lab.clock.advance(HOUR - 1)
        await nothing(wire)
        await lab.clock.advance(1)
        assert await wire.payloads(1) == [b"1"]


async def test_a_dispatch_rate_beyond_what_comes_in() -> None:
    rate = {"dispatchThrottlingRateInMsg": 1, "relativeToPublishRate": True}
    async with stage() as (bed, lab, wire):
        lab.clock.freeze()
        set_policies(bed.broker, topicDispatchRate={"standalone": rate})
        await wire.subscribe()
        await wire.publish(*[plain(b"0")] * 130)
        await lab.clock.advance(60)
        await wire.flow()
        await wire.messages(3)  # two messages a second came in
        await nothing(wire)


async def test_a_read_that_failed() -> None:
    store = HeldStorage()
    reading = store.read
    config = Config(managedLedgerCacheSizeMB=0, dispatcherReadFailureBackoffInitialTimeInMs=HOUR * 1000)
    async with serving(config, storage=store) as bed:
        wire, lab = await bed.connect(), bed.broker.cluster.attached(Lab)
        lab.clock.freeze()
        await wire.producer()
        await wire.subscribe()
        await wire.publish(plain(b"0"))
        store.read = lambda ledger_id, first, last, done: done(StorageError("bad disk"))  # type: ignore[method-assign]
        await wire.flow()
        await nothing(wire)
        assert bed.subscription().reason is Reason.UNREADABLE
        store.read = reading  # type: ignore[method-assign]
        await lab.clock.advance(HOUR - 1)
        await nothing(wire)
        await lab.clock.advance(1)
        assert await wire.payloads(1) == [b"0"]


async def test_cursors_are_kept_after_a_while() -> None:
    async with stage() as (bed, lab, wire):
        lab.clock.freeze()
        await wire.subscribe()
        await wire.flow()
        (position,) = await wire.publish(plain(b"0"))
        await wire.message()
        saves = bed.subscription().cursor.saves
        bed.subscription().acknowledge(None, [position], save_now=False)
        assert bed.subscription().cursor.saves == saves
        await lab.clock.advance(HOUR)
        assert bed.subscription().cursor.saves == saves + 1


async def test_rates_are_averages_over_a_minute_of_the_clock() -> None:
    async with stage() as (bed, lab, wire):
        rates = Rates(bed.broker)
        await wire.publish(*(plain(b"0") for _ in range(120)))
        await lab.clock.advance(60)
        (producer,) = bed.topic().producers.by_name.values()
        assert rates.of(producer).messages == 2
        rates.stop()


async def test_seek_by_time_stands_on_what_clients_stamped() -> None:
    async with stage() as (bed, lab, wire):
        await wire.subscribe()
        sent = await wire.publish(plain(b"0", publish_time=client_ms()), plain(b"1", publish_time=client_ms()))
        await lab.clock.advance(DAY)
        later = await wire.publish(plain(b"2", publish_time=client_ms() + DAY * 1000))
        await wire.ask(Type.SEEK, consumer_id=0, message_publish_time=client_ms() + HOUR * 1000)
        assert bed.subscription().cursor.read_position == later[0] > sent[1]


async def test_a_cursor_is_moved_by_the_brokers_time() -> None:
    """The subscription starts one hour back by the broker's clock (start_message_rollback_duration_sec)."""
    async with stage() as (bed, lab, wire):
        now = client_ms()
        await wire.publish(plain(b"0", publish_time=now))
        await lab.clock.advance(DAY)
        later = await wire.publish(plain(b"1", publish_time=now + DAY * 1000))
        await wire.subscribe(start_message_rollback_duration_sec=HOUR)
        assert bed.subscription().cursor.read_position == later[0]


# timers that do not obey


async def test_connections_live_on() -> None:
    async with stage() as (_, lab, wire):
        await lab.clock.advance(DAY)
        await nothing(wire)
        lab.clock.include("keep-alive")
        await lab.clock.advance(DAY)
        await wire.expect(Type.PING)
        await wire.send(Type.PONG)
        await wire.alive()
        await lab.clock.advance(31)
        await wire.expect(Type.PING)
        await lab.clock.advance(31)
        await wire.closed()


async def test_tokens_are_as_good_as_their_makers_clock_says() -> None:
    async with serving(by_token()) as bed:
        lab = bed.broker.cluster.attached(Lab)
        await lab.clock.advance(DAY)
        good: dict[str, Any] = {"auth_method_name": "token", "auth_data": token("me", exp=time.time() + HOUR).encode()}
        wire = await bed.connect(flags=["supports_auth_refresh"], **good)
        await lab.clock.advance(DAY)
        await nothing(wire)
        lab.clock.include("token-expiry")
        await lab.clock.advance(60)
        await wire.expect(Type.AUTH_CHALLENGE)
        await lab.clock.advance(60)
        await wire.closed()
        late = bed.dial()
        await late.send(Type.CONNECT, client_version="wire", protocol_version=21, **good)
        assert (await late.expect(Type.ERROR)).error == pb.AuthenticationError


async def test_keys_of_tokens_are_read_again_at_their_interval(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text(jwks(a=SECRET))
    config = by_token(tokenValidationKeysJwks=f"file://{keys}", tokenValidationKeysRefreshSeconds=DAY)
    async with serving(config, profile=profile_of("pip", pip=[490])) as bed:
        lab = bed.broker.cluster.attached(Lab)
        signed = token("me", key=OTHER_SECRET, headers={"kid": "b"}).encode()
        keys.write_text(jwks(a=SECRET, b=OTHER_SECRET))
        early = bed.dial()
        await early.send(Type.CONNECT, client_version="wire", auth_method_name="token", auth_data=signed)
        assert (await early.expect(Type.ERROR)).error == pb.AuthenticationError
        await lab.clock.advance(DAY)
        await bed.connect(auth_method_name="token", auth_data=signed)


async def test_late_sends_of_a_closed_producer_are_dropped_for_as_long_as_the_client_may_not_know() -> None:
    async with stage() as (bed, lab, wire):
        await wire.subscribe(initialPosition=Earliest)
        bed.broker.topics.unload(bed.topic().name)
        await wire.expect(Type.CLOSE_PRODUCER)
        await wire.expect(Type.CLOSE_CONSUMER)
        await lab.clock.advance(DAY)
        await wire.write(wire.sends(plain(b"late")))
        await nothing(wire)


async def test_redelivery_to_websockets() -> None:
    async with websockets() as client:
        lab = client.broker.cluster.attached(Lab)
        consumer = await client.talk(CONSUMER, "subscriptionType=Shared&negativeAckRedeliveryDelay=3600000")
        await client.publish("a")
        frame = await consumer.frame()
        await consumer.send({"type": "negativeAcknowledge", "messageId": frame["messageId"]})
        await consumer.alive()
        await lab.clock.advance(HOUR + 1)
        assert (await consumer.frame())["redeliveryCount"] == 1


async def test_batches_of_websockets() -> None:
    async with websockets() as client:
        lab = client.broker.cluster.attached(Lab)
        producer = await client.talk(PRODUCER, "batchingEnabled=true&batchingMaxPublishDelay=3600000")
        await producer.send(message("a"))
        await producer.alive()
        await lab.clock.advance(HOUR + 1)
        assert (await producer.frame())["result"] == "ok"
