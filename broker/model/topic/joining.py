"""What a topic asks of a consumer before it may join a subscription, or make one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsarium.broker.clock import Clock
from pulsarium.broker.model.compaction.record import COMPACTION_CURSOR
from pulsarium.broker.model.errors import NamingError, NotAllowedError
from pulsarium.broker.model.policy.policies import Rate
from pulsarium.broker.model.topic.deduplication import DEDUPLICATION_CURSOR
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.broker.model.topic.base import Topic

SubType = pb.CommandSubscribe.SubType
IN_ORDER = (SubType.Exclusive, SubType.Failover)
OWN_CURSORS = (DEDUPLICATION_CURSOR, COMPACTION_CURSOR)
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
        self._limit = rate.subscribes
        self._period = rate.period_seconds
        self._since = clock.monotonic()
        self._counts: dict[tuple[str, str, int], int] = {}  # in this period

    def check(self, address: str, consumer_name: str, consumer_id: int) -> None:
        """Count a SUBSCRIBE, or raise what it is told when it comes too early."""
        if self._limit <= 0:
            return
        now = self._clock.monotonic()
        if now - self._since >= self._period:
            self._since = now
            self._counts.clear()
        consumer = (address.partition(":")[0], consumer_name, consumer_id)
        count = self._counts.get(consumer, 0)
        if count >= self._limit:
            raise NotAllowedError("Subscribe limited by subscribe rate limit per consumer.")
        self._counts[consumer] = count + 1
