"""What a topic asks of a consumer before it may join a subscription, or make one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsarium.broker.clock import Clock
from pulsarium.broker.model.compaction.record import COMPACTION_CURSOR
from pulsarium.broker.model.errors import NamingError, NotAllowedError
from pulsarium.broker.model.policy.policies import Rate
from pulsarium.broker.model.rate.token_bucket import TokenBucket
from pulsarium.broker.model.topic.deduplication import DEDUPLICATION_CURSOR
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.broker.model.topic.base import Topic

SubType = pb.CommandSubscribe.SubType
IN_ORDER = (SubType.Exclusive, SubType.Failover)
OWN_CURSORS = (DEDUPLICATION_CURSOR, COMPACTION_CURSOR)
MANY = 1_000  # consumers that a rate is counted for, from which on it is worth a look who is gone
RESERVED = "pulsar.repl"  # replicatorPrefix: the cursors of replicators
RESERVED_NAME = "Subscription with reserved subscription name attempted"


def check_consumer(topic: Topic, subscription: str, type: int, *, read_compacted: bool) -> None:
    """Raise what SUBSCRIBE is told that asks for something the topic does not have."""
    if subscription.startswith(RESERVED):
        raise NamingError(RESERVED_NAME)
    if not topic.name.is_persistent:  # any type and even no name will do
        if read_compacted:
            raise NotAllowedError("readCompacted only valid on persistent topics")
        return
    if read_compacted and type not in IN_ORDER:
        raise NotAllowedError("readCompacted only allowed on failover or exclusive subscriptions")
    if type == SubType.Key_Shared and not topic.stores.config.subscriptionKeySharedEnable:
        raise NotAllowedError("Key_Shared subscription is disabled by broker.")
    type_name = SubType.Name(type)
    if type_name not in topic.policies.subscription_types:
        raise NotAllowedError(f"Topic[{{{topic.name}}}] doesn't support {type_name} sub type!")
    if not subscription.strip():
        raise NamingError("Empty subscription name")


def check_new_subscription(topic: Topic, name: str) -> None:
    """Raise when a topic has all the subscriptions it may have (maxSubscriptionsPerTopic); those of readers count.

    So does the name of a cursor of the broker's own, also over REST.
    """
    if 0 < topic.policies.max_subscriptions <= len(topic.subscriptions):
        raise NotAllowedError(f"Exceed the maximum number of subscriptions of the topic: {topic.name}")
    if name in OWN_CURSORS:
        raise NamingError(RESERVED_NAME)


class SubscribeRate:
    """How often one consumer may subscribe (C-12): a host, a consumer name and an id together are one consumer."""

    def __init__(self, clock: Clock, rate: Rate) -> None:
        self._clock = clock
        self._rate = rate
        self._buckets: dict[tuple[str, str, int], TokenBucket] = {}

    def check(self, address: str, consumer_name: str, consumer_id: int) -> None:
        """Count a SUBSCRIBE, or raise what it is told when it comes too early."""
        rate = self._rate
        if rate.subscribes <= 0 or rate.period_seconds <= 0:
            return
        consumer = (address.partition(":")[0], consumer_name, consumer_id)
        bucket = self._buckets.get(consumer)
        if bucket is None:
            self._forget_idle()
            bucket = self._buckets[consumer] = TokenBucket(self._clock, rate.subscribes, rate.period_seconds)
        if bucket.available() <= 0:
            raise NotAllowedError("Subscribe limited by subscribe rate limit per consumer.")
        bucket.take(1)

    def _forget_idle(self) -> None:
        """A bucket that is full again is as good as a new one."""
        if len(self._buckets) >= MANY:
            limit = self._rate.subscribes
            self._buckets = {each: bucket for each, bucket in self._buckets.items() if bucket.available() < limit}
