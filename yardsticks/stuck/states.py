"""States in which the next message does not come, each with its reason in the words of `pulsarium why`."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable
from typing import Final, TypeVar

import trio

from pulsarium.client import (
    ConsumerKeySharedPolicy,
    ConsumerType,
    KeySharedMode,
)
from pulsarium.rest.data import NamespaceIsolation
from pulsarium.rest.policies import (
    DISPATCH_RATE,
    DISPATCHER_PAUSE,
    MAX_UNACKED_PER_CONSUMER,
    MAX_UNACKED_PER_SUBSCRIPTION,
    PUBLISH_RATE,
    SUBSCRIPTION_DISPATCH_RATE,
    BacklogQuota,
    DispatchRate,
    Policy,
    PublishRate,
)
from yardsticks.stuck.stage import HOUR, SUBSCRIPTION, Stage, State

STUCK: Final[dict[str, tuple[str, State]]] = {}
ALONE: Final[dict[str, str]] = {}
"""States that need a broker for themselves, with this setting. They are recorded only when they are named."""
T = TypeVar("T")

SHARED, KEY_SHARED = ConsumerType.Shared, ConsumerType.KeyShared
EXCLUSIVE, FAILOVER = ConsumerType.Exclusive, ConsumerType.Failover


def state(reason: str, alone: str = "") -> Callable[[State], State]:
    """Register a function that brings a topic into a state with this reason."""

    def register(function: State) -> State:
        name = function.__name__.replace("_", "-")
        STUCK[name] = reason, function
        if alone:
            ALONE[name] = alone
        return function

    return register


@state("no-consumer")
async def nobody_subscribed(stage: Stage) -> None:
    await stage.admin.topics.create_non_partitioned_topic(stage.topic)
    await stage.admin.topics.create_subscription(stage.topic, SUBSCRIPTION)
    await stage.publish(3)


@state("no-consumer")
async def the_consumer_left(stage: Stage) -> None:
    consumer = await stage.consumer(EXCLUSIVE)
    await stage.publish(3)
    await stage.take(consumer, 2)
    await consumer.aclose()


@state("no-permits")
async def the_only_consumer_is_busy(stage: Stage) -> None:
    await stage.consumer(EXCLUSIVE, receiver_queue_size=1)
    await stage.publish(5)


@state("no-permits")
async def the_active_consumer_is_busy(stage: Stage) -> None:
    await stage.consumer(FAILOVER, receiver_queue_size=2, consumer_name="a")
    await stage.consumer(FAILOVER, consumer_name="b")
    await stage.publish(5)


@state("no-permits")
async def all_consumers_are_busy(stage: Stage) -> None:
    for name in "ab":
        await stage.consumer(SHARED, receiver_queue_size=1, consumer_name=name)
    await stage.publish(6)


@state("no-permits")
async def a_consumer_that_was_started_paused(stage: Stage) -> None:
    await stage.consumer(SHARED, start_paused=True)
    await stage.publish(2)


async def _policy(stage: Stage, policy: Policy[T], value: T) -> None:
    """Set a policy of the topic, and leave the dispatchers the time to learn of it."""
    await stage.admin.topic_policies[policy].set(stage.topic, value)
    await trio.sleep(3)


@state("consumers-owe")
async def a_consumer_that_does_not_acknowledge(stage: Stage) -> None:
    consumer = await stage.consumer(SHARED)
    await _policy(stage, MAX_UNACKED_PER_CONSUMER, 2)
    await stage.publish(6)
    await stage.take(consumer, 2)


@state("consumers-owe")
async def key_shared_consumers_that_do_not_acknowledge(stage: Stage) -> None:
    for name in "ab":
        await stage.consumer(KEY_SHARED, consumer_name=name)
    await _policy(stage, MAX_UNACKED_PER_CONSUMER, 1)
    for number in range(8):
        await stage.publish(1, partition_key=f"k{number}")


@state("subscription-owes")
async def a_subscription_at_its_limit(stage: Stage) -> None:
    for name in "ab":
        await stage.consumer(SHARED, consumer_name=name)
    await _policy(stage, MAX_UNACKED_PER_SUBSCRIPTION, 3)
    await stage.publish(9)


@state("draining")
async def a_hash_that_drains(stage: Stage) -> None:
    first = await stage.consumer(KEY_SHARED, consumer_name="a")
    for number in range(10):
        await stage.publish(1, partition_key=f"k{number}")
    await stage.take(first, 10)
    await stage.consumer(KEY_SHARED, consumer_name="b")
    for number in range(10):
        await stage.publish(1, partition_key=f"k{number}")


@state("waiting")
async def the_consumer_of_a_key_is_busy(stage: Stage) -> None:
    for name in "ab":
        await stage.consumer(KEY_SHARED, consumer_name=name, receiver_queue_size=2)
    await stage.publish(6, partition_key="k")


@state("no-owner")
async def a_gap_between_sticky_ranges(stage: Stage) -> None:
    policy = ConsumerKeySharedPolicy(key_shared_mode=KeySharedMode.Sticky, sticky_ranges=((0, 10),))
    await stage.consumer(KEY_SHARED, key_shared_policy=policy)
    await stage.publish(3, partition_key="k")


@state("delayed")
async def messages_of_later(stage: Stage) -> None:
    await stage.consumer(SHARED)
    await stage.publish(3, deliver_after=HOUR)


@state("delayed")
async def messages_of_later_with_keys(stage: Stage) -> None:
    consumer = await stage.consumer(KEY_SHARED)
    await stage.publish(1, partition_key="now")
    await stage.publish(2, partition_key="later", deliver_after=HOUR)
    await consumer.acknowledge(await consumer.receive())


async def _again(stage: Stage, type: ConsumerType) -> None:
    consumer = await stage.consumer(type, negative_ack_redelivery_delay=0.2)
    await stage.publish(1)
    async with trio.open_nursery() as nursery:

        async def refuse() -> None:
            while True:
                message = await consumer.receive()
                if type is EXCLUSIVE:
                    await trio.sleep(0.2)
                    await consumer.redeliver_unacknowledged_messages()
                else:
                    consumer.negative_acknowledge(message)

        nursery.start_soon(refuse)


@state("redelivery-loop")
async def a_message_that_is_always_refused(stage: Stage) -> None:
    await _again(stage, SHARED)


@state("redelivery-loop")
async def a_message_that_an_exclusive_consumer_asks_for_again(stage: Stage) -> None:
    await _again(stage, EXCLUSIVE)


@state("rate-limited")
async def the_dispatch_rate_of_the_topic(stage: Stage) -> None:
    await _rate(stage, DISPATCH_RATE, SHARED)


@state("rate-limited")
async def the_dispatch_rate_of_the_subscription(stage: Stage) -> None:
    await _rate(stage, SUBSCRIPTION_DISPATCH_RATE, EXCLUSIVE)


async def _rate(stage: Stage, policy: Policy[DispatchRate], type: ConsumerType) -> None:
    consumer = await stage.consumer(type)
    limit: DispatchRate = {
        "dispatchThrottlingRateInMsg": 1,
        "dispatchThrottlingRateInByte": -1,
        "relativeToPublishRate": False,
        "ratePeriodInSecond": 600,
    }
    await _policy(stage, policy, limit)
    await stage.publish(20)
    while True:
        await consumer.acknowledge(await consumer.receive())


@state("open-transaction")
async def a_transaction_that_stays_open(stage: Stage) -> None:
    await stage.consumer(SHARED)
    client = await stage.client()
    txn = await client.begin_transaction(timeout=HOUR)
    async with client.create_producer(stage.topic, batching_enabled=False) as sender:
        await sender.send(b"in", txn=txn)
    await stage.publish(3)


@state("open-transaction")
async def a_message_behind_a_transaction(stage: Stage) -> None:
    consumer = await stage.consumer(EXCLUSIVE)
    await stage.publish(2)
    await consumer.acknowledge_cumulative((await stage.take(consumer, 2))[-1])
    client = await stage.client()
    txn = await client.begin_transaction(timeout=HOUR)
    async with client.create_producer(stage.topic, batching_enabled=False) as sender:
        await sender.send(b"in", txn=txn)
    await stage.publish(3)


@state("pending-ack")
async def an_acknowledgement_in_an_open_transaction(stage: Stage) -> None:
    client = await stage.client()
    consumer = await stage.consumer(SHARED, client=client)
    await stage.publish(2)
    txn = await client.begin_transaction(timeout=HOUR)
    for message in await stage.take(consumer, 2):
        await consumer.acknowledge(message, txn=txn)


@state("terminated")
async def the_end_of_a_topic(stage: Stage) -> None:
    consumer = await stage.consumer(EXCLUSIVE)
    await stage.publish(2)
    for message in await stage.take(consumer, 2):
        await consumer.acknowledge(message)
    await stage.admin.topics.terminate_topic(stage.topic)


@state("backlog-quota")
async def a_backlog_that_stops_the_producers(stage: Stage) -> None:
    consumer = await stage.consumer(SHARED)
    await stage.admin.topics.create_subscription(stage.topic, "forgotten")
    quota: BacklogQuota = {"limitSize": 100, "limitTime": -1, "policy": "producer_request_hold"}
    await stage.admin.topic_policies.set_backlog_quota(stage.topic, quota)
    await stage.publish(5, content=b"x" * 100)
    for message in await stage.take(consumer, 5):
        await consumer.acknowledge(message)


@state("publish-rate")
async def a_publish_rate_that_stops_the_producers(stage: Stage) -> None:
    consumer = await stage.consumer(SHARED)
    producer = await stage.producer()
    rate: PublishRate = {"publishThrottlingRateInMsg": 1, "publishThrottlingRateInByte": -1}
    await _policy(stage, PUBLISH_RATE, rate)
    async with trio.open_nursery() as nursery:

        async def flood() -> None:
            while True:
                producer.send_nowait(b"x" * 100)
                await trio.sleep(0.05)

        nursery.start_soon(flood)
        while True:
            await consumer.acknowledge(await consumer.receive())


@state("delivered")
async def a_worker_that_hangs(stage: Stage) -> None:
    consumer = await stage.consumer(SHARED)
    await stage.publish(4)
    await stage.take(consumer, 4)


@state("delivered")
async def an_exclusive_worker_that_hangs(stage: Stage) -> None:
    consumer = await stage.consumer(EXCLUSIVE)
    await stage.publish(4)
    await consumer.acknowledge((await stage.take(consumer, 4))[0])


@state("not-writable")
async def a_client_that_reads_nothing(stage: Stage) -> None:
    await _flood(stage, SHARED)


@state("not-writable")
async def an_exclusive_client_that_reads_nothing(stage: Stage) -> None:
    await _flood(stage, EXCLUSIVE)


async def _flood(stage: Stage, kind: ConsumerType) -> None:
    """Publish more than the connection of a client that reads nothing can take."""
    await stage.consumer(kind, client=await stage.stalling())
    await trio.sleep(1)
    stage.stall()
    for _ in range(200):
        await stage.publish(1, content=b"x" * 200_000)


@state("unreadable", alone="httpServerEnabled=true")
async def a_ledger_that_bookies_lost(stage: Stage) -> None:
    await stage.admin.topics.create_non_partitioned_topic(stage.topic)
    await stage.admin.topics.create_subscription(stage.topic, SUBSCRIPTION)
    for _ in range(2):  # each time that the topic is loaded, it gets a ledger
        await stage.publish(3)
        await stage.admin.topics.unload(stage.topic)
    inside = await stage.admin.topics.get_internal_stats(stage.topic)
    await _delete_ledger(inside["ledgers"][0]["ledgerId"])
    await stage.admin.topics.unload(stage.topic)
    await stage.consumer(SHARED)


async def _delete_ledger(ledger: int) -> None:
    """Delete a ledger behind the broker's back, over the HTTP of its bookie."""
    url = f"http://localhost:8000/api/v1/ledger/delete?ledger_id={ledger}"
    request = urllib.request.Request(url, method="DELETE")
    with await trio.to_thread.run_sync(urllib.request.urlopen, request):
        pass


@state("ack-gaps", alone="managedLedgerMaxUnackedRangesToPersist=5")
async def acknowledgements_with_too_many_gaps(stage: Stage) -> None:
    consumer = await stage.consumer(SHARED, receiver_queue_size=100)
    await _policy(stage, DISPATCHER_PAUSE, True)
    await stage.publish(100)
    for number, message in enumerate(await stage.take(consumer, 100)):
        if number % 2:
            await consumer.acknowledge(message)
    await stage.publish(20)


@state("no-consumer")
async def one_of_three_without_a_consumer(stage: Stage) -> None:
    await stage.admin.topics.create_partitioned_topic(stage.topic, 3)
    await stage.admin.topics.create_subscription(stage.topic, SUBSCRIPTION)
    consumer = await stage.consumer(SHARED, topic=f"{stage.topic}-partition-0")
    await stage.publish(1, topic=f"{stage.topic}-partition-0")
    await consumer.acknowledge(await consumer.receive())
    await stage.publish(2, topic=f"{stage.topic}-partition-1")


@state("topic-not-found")
async def a_topic_that_is_not_there(stage: Stage) -> None:
    await stage.admin.brokers.get_version()


@state("topic-unavailable", alone="loadManagerClassName=...ModularLoadManagerImpl, loadBalancerEnabled=true")
async def a_namespace_that_no_broker_may_serve(stage: Stage) -> None:
    await stage.admin.topics.create_non_partitioned_topic(stage.topic)
    nowhere: NamespaceIsolation = {
        "namespaces": ["public/default"],
        "primary": ["nowhere"],
        "secondary": [],
        "auto_failover_policy": {
            "policy_type": "min_available",
            "parameters": {"min_limit": "1", "usage_threshold": "100"},
        },
    }
    [cluster] = await stage.admin.clusters.get_clusters()
    await stage.admin.clusters.create_namespace_isolation_policy(cluster, stage.name, nowhere)
    await stage.admin.namespaces.unload("public/default")
    try:
        await trio.sleep_forever()
    finally:
        with trio.CancelScope(shield=True):
            await stage.admin.clusters.delete_namespace_isolation_policy(cluster, stage.name)


@state("broker-owes", alone="maxUnackedMessagesPerBroker=3000")
async def a_broker_at_its_limit(stage: Stage) -> None:
    await stage.admin.topics.create_non_partitioned_topic(stage.topic)
    await stage.admin.topics.create_subscription(stage.topic, SUBSCRIPTION)
    await stage.publish_many(8000)
    await stage.consumer(SHARED, receiver_queue_size=8000)


@state("recently-joined", alone="subscriptionKeySharedUseClassicPersistentImplementation=true, or Pulsar 3.x")
async def a_consumer_that_joined_late(stage: Stage) -> None:
    first = await stage.consumer(KEY_SHARED, consumer_name="a")
    for number in range(10):
        await stage.publish(1, partition_key=f"k{number}")
    await stage.take(first, 10)
    await stage.consumer(KEY_SHARED, consumer_name="b")
    for number in range(10):
        await stage.publish(1, partition_key=f"k{number}")
