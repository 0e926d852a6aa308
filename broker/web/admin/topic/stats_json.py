"""Write stats of topics as JSON, with Pulsar's fields in Pulsar's order."""

from __future__ import annotations

from typing import Any, Protocol

from pulsarium.broker.clock import instant_text
from pulsarium.broker.config.profile import Profile
from pulsarium.broker.config.proposals import BACKLOG_AGE, NEGATIVE_ACKS
from pulsarium.broker.model.compaction.compaction import LastRun
from pulsarium.broker.model.dispatch.key_shared import KeySharedDispatcher
from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.policy.policies import AGE, STORAGE
from pulsarium.broker.model.subscription.base import Consumer, Dispatcher, Subscription
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.topic.backlog import backlog_size, oldest_ms, oldest_of, quota_of, size_after
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.model.topic.producers import Producer
from pulsarium.broker.net.slices import Slice
from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.web.rates import Rates
from pulsarium.proto.entry import parse_metadata
from pulsarium.proto.errors import EntryError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.numbers import signed
from pulsarium.proto.special_names import COMPACTION_CURSOR, is_system_topic

Json = dict[str, Any]
OLDEST_AGE = "oldestBacklogMessageAgeSeconds"
RETRYING = ("retryingHashesCount", "retryingPositionsCount")
UNKNOWN_AGE = -1  # also of no backlog

NO_RANGES = {
    "nonContiguousDeletedMessagesRanges": 0,
    "nonContiguousDeletedMessagesRangesSerializedSize": 0,
    "delayedMessageIndexSizeInBytes": 0,
}
NO_THROTTLING = {
    f"dispatchThrottled{unit}EventsBy{whose}Limit": 0
    for whose in ("Subscription", "Topic", "Broker")
    for unit in ("Msg", "Bytes")
}
SUBSCRIPTION_TIMES = (
    "lastConsumedFlowTimestamp",
    "lastConsumedTimestamp",
    "lastAckedTimestamp",
    "lastMarkDeleteAdvancedTimestamp",
)
NO_FILTERS = {f"filter{what}MsgCount": 0 for what in ("Processed", "Accepted", "Rejected", "Rescheduled")}


def time_text(ms: int) -> str:
    """Return an instant as Jackson writes it, without zeros at the end."""
    seconds, dot, fraction = instant_text(ms).removesuffix("Z").partition(".")
    fraction = fraction.rstrip("0")
    return f"{seconds}{dot if fraction else ''}{fraction}Z"


def compaction_figures(topic: Topic) -> Json:
    """Return the result of the last compaction."""
    last = LastRun() if topic.compaction is None else topic.compaction.last_run
    return {
        "lastCompactionRemovedEventCount": last.removed,
        "lastCompactionSucceedTimestamp": last.succeeded_ms,
        "lastCompactionFailedTimestamp": last.failed_ms,
        "lastCompactionDurationTimeInMills": last.duration_ms,
    }


class Into(Protocol):
    """A receiver of the stats of subscriptions, such as a dict."""

    def __setitem__(self, name: str, stats: Json, /) -> None: ...


class StatsWriter:
    """Write the stats of a topic. The options are those in the query of GET .../stats."""

    def __init__(
        self,
        rates: Rates,
        owner: str,
        *,
        exclude_publishers: bool = False,
        exclude_consumers: bool = False,
        earliest_time: bool = False,
        backlog_size: bool = True,
    ) -> None:
        self._rates = rates
        self._owner = owner
        self._exclude_publishers = exclude_publishers
        self._exclude_consumers = exclude_consumers
        self._earliest_time = earliest_time
        self._backlog_size = backlog_size
        self._slice = Slice()

    async def topic(self, topic: Topic, subscriptions: Into) -> Json:
        """Return all stats of a topic, and put those of each subscription into `subscriptions`.

        Other tasks run between two subscriptions. A subscription deleted before its turn is left out.
        """
        sums = Sums(topic)
        await self._put_subscriptions(topic, subscriptions, sums)
        publishers = []
        for producer in () if self._exclude_publishers else list(topic.producers.by_name.values()):
            publishers.append(self.publisher(producer))
            await self._slice.pause()
        stats = of_release(topic.stores.profile, self._numbers(topic, sums))
        await self._slice.pause()  # each of these looks at all subscriptions
        limits = quotas(topic)
        await self._slice.pause()
        stats |= {
            **limits,
            "publishRateLimitedTimes": self._rates.limited(topic),
            "earliestMsgPublishTimeInBacklogs": sums.earliest,
            "offloadedStorageSize": 0,
            "lastOffloadLedgerId": 0,
            "lastOffloadSuccessTimeStamp": 0,
            "lastOffloadFailureTimeStamp": 0,
            **transaction_counts(topic),
        }
        waiting = {"waitingPublishers": len(topic.producers.waiting)}
        compaction = of_release(
            topic.stores.profile,
            {
                "compaction": compaction_figures(topic),
                "ownerBroker": self._owner,
                "topicCreationTimeStamp": 0 if topic.ledger is None else topic.ledger.created_ms,
                "lastPublishTimeStamp": last_publish_ms(topic),
            },
        )
        if not topic.name.is_persistent:
            clients = {"publishers": publishers, "subscriptions": subscriptions, "replication": {}}
            drops = sum(map(self._rates.drops, topic.producers.by_name.values()))
            return stats | waiting | NO_RANGES | compaction | {"msgDropRate": drops} | clients
        stats |= {"publishers": publishers, **waiting, "subscriptions": subscriptions, "replication": {}}
        if topic.producers.epoch is not None:
            stats["topicEpoch"] = topic.producers.epoch
        deduplication = {"deduplicationStatus": "Enabled" if topic.deduplication is not None else "Disabled"}
        return stats | deduplication | {field: sums.of[field] for field in NO_RANGES} | compaction

    async def _put_subscriptions(self, topic: Topic, into: Into, sums: Sums) -> None:
        for name, each in list(topic.subscriptions.items()):
            if topic.subscriptions.get(name) is each:
                into[name] = stats = await self.subscription(each)
                sums.add(stats)
            else:
                sums.add_gone(each)
            await self._slice.pause()
        if isinstance(topic, PersistentTopic) and topic.log.compaction.cursor is not None:
            shown = PersistentSubscription(topic, topic.log.compaction.cursor)  # Pulsar shows it too
            into[shown.name] = stats = {**await self.subscription(shown), "type": "Exclusive"}
            sums.add(stats)

    def _numbers(self, topic: Topic, sums: Sums) -> Json:
        rate_in = self._rates.total(topic.producers.by_name.values())
        size = backlog = 0
        if isinstance(topic, PersistentTopic):
            size = topic.ledger.size
            backlog = backlog_size(topic.log)
        return {
            "msgRateIn": rate_in.messages,
            "msgThroughputIn": rate_in.bytes,
            "msgRateOut": sums.of["msgRateOut"],
            "msgThroughputOut": sums.of["msgThroughputOut"],
            "bytesInCounter": topic.bytes_in,
            "msgInCounter": topic.messages_in,
            "systemTopicBytesInCounter": topic.bytes_in if is_system_topic(topic.name) else 0,
            "bytesOutCounter": sums.of["bytesOutCounter"],
            "msgOutCounter": sums.of["msgOutCounter"],
            "bytesOutInternalCounter": topic.internal_bytes_out,
            "averageMsgSize": rate_in.average_size,
            "msgChunkPublished": False,
            "storageSize": size,
            "backlogSize": backlog,
        }

    def publisher(self, producer: Producer) -> Json:
        """Return the stats of one producer."""
        rate = self._rates.of(producer)
        stats = {
            "accessMode": pb.ProducerAccessMode.Name(producer.access_mode),
            "msgRateIn": rate.messages,
            "msgThroughputIn": rate.bytes,
            "averageMsgSize": rate.average_size,
            "chunkedMessageRate": 0.0,
            "producerId": producer.producer_id,
            "supportsPartialProducer": producer.topic.stores.config.aggregatePublisherStatsByProducerName
            and producer.client.supports_partial_producer,
            "producerName": producer.name,
            "address": producer.client.address,
            "connectedSince": time_text(producer.connected_ms),
            "clientVersion": producer.client.client_version,
            "metadata": producer.metadata,
        }
        if not producer.topic.name.is_persistent:
            stats["msgDropRate"] = self._rates.drops(producer)
        return stats

    async def subscription(self, subscription: Subscription) -> Json:
        """Return the stats of one subscription with its consumers."""
        consumers = list(subscription.consumers)
        rate = self._rates.total(consumers)
        dispatcher = subscription.dispatcher
        active = None if dispatcher is None else dispatcher.active
        durable = subscription.cursor is not None
        ranges, waiting = key_ranges(dispatcher), held_back(subscription)
        profile = subscription.topic.stores.profile
        shown = []
        for each in () if self._exclude_consumers else consumers:
            shown.append(of_release(profile, self.consumer(each, ranges.get(each, {}))))
            await self._slice.pause()
        replicated = bool(subscription.replicated)
        stats = {
            "msgRateOut": rate.messages,
            "msgThroughputOut": rate.bytes,
            "bytesOutCounter": subscription.bytes_out + sum(each.bytes_out for each in consumers),
            "msgOutCounter": subscription.messages_out + sum(each.messages_out for each in consumers),
            "msgRateRedeliver": self._rates.redeliveries(consumers),
            "messageAckRate": self._rates.acks(consumers),
            "chunkedMessageRate": 0.0,
            **self._backlog(subscription, delayed=waiting["msgDelayed"]),
            **waiting,
            "unackedMessages": sum(each.unacked for each in consumers),
            "type": subscription.type_name,
            **({"activeConsumerName": active.name} if active is not None and durable else {}),
            **expired(subscription, self._rates),
            **self._times(subscription),
            "consumers": shown,
            "isDurable": subscription.durable,
            "isReplicated": replicated,
            **key_sharing(dispatcher),
            **recently_joined(subscription),
            **draining(dispatcher),
            **retrying(subscription),
            **NO_RANGES,
            **self._kept(subscription),
            **NO_FILTERS,
            **NO_THROTTLING,
            **(subscription.throttle.events if subscription.throttle is not None else {}),
            **({} if durable else {"msgDropRate": self._rates.drops(subscription)}),
            "durable": subscription.durable,
            "replicated": replicated,
        }
        return of_release(profile, stats)

    def _backlog(self, subscription: Subscription, *, delayed: int) -> Json:
        backlog = size = since = 0
        if isinstance(subscription, PersistentSubscription):
            cursor = subscription.cursor
            backlog = cursor.backlog()
            size = size_after(subscription.topic.ledger, cursor.mark_delete) if self._backlog_size else -1
            if self._earliest_time:
                since = publish_time(cursor.ledger, cursor.ledger.next(cursor.mark_delete)) if backlog else -1
        return {
            "msgBacklog": backlog,
            "backlogSize": size,
            "earliestMsgPublishTimeInBacklog": since,
            **age_of_backlog(subscription, backlog),
            "msgBacklogNoDelayed": backlog - delayed,
        }

    def _times(self, subscription: Subscription) -> Json:
        if not isinstance(subscription, PersistentSubscription):
            return dict.fromkeys(SUBSCRIPTION_TIMES, 0)
        ends: list[PersistentSubscription | Consumer] = [subscription, *subscription.consumers]
        times = (
            max(end.flow_ms for end in ends),
            max(end.consumed_ms for end in ends),
            max(end.acked_ms for end in ends),
            subscription.mark_delete_advanced_ms,
        )
        return dict(zip(SUBSCRIPTION_TIMES, times, strict=True))

    def _kept(self, subscription: Subscription) -> Json:
        cursor = subscription.cursor
        if cursor is None:
            return {"subscriptionProperties": {}}
        return {
            "nonContiguousDeletedMessagesRanges": cursor.individual_acks.count_ranges(),
            "nonContiguousDeletedMessagesRangesSerializedSize": cursor.individual_acks_size(),
            "subscriptionProperties": cursor.cursor_properties,
        }

    def consumer(self, consumer: Consumer, ranges: Json) -> Json:
        """Return the stats of one consumer; `ranges` are its hash ranges on Key_Shared."""
        rate = self._rates.of(consumer)
        return {
            "msgRateOut": rate.messages,
            "msgThroughputOut": rate.bytes,
            "bytesOutCounter": consumer.bytes_out,
            "msgOutCounter": consumer.messages_out,
            "msgRateRedeliver": self._rates.redeliveries((consumer,)),
            "messageAckRate": self._rates.acks((consumer,)),
            "chunkedMessageRate": 0.0,
            "consumerName": consumer.name,
            "availablePermits": consumer.permits,
            "unackedMessages": consumer.unacked,
            "avgMessagesPerEntry": int(consumer.messages_per_entry + 0.5),  # as Java rounds
            "blockedConsumerOnUnackedMsgs": consumer.blocked,
            **draining_of(consumer.subscription.dispatcher, consumer),
            "address": consumer.client.address,
            "connectedSince": time_text(consumer.connected_ms),
            "clientVersion": consumer.client.client_version,
            "lastAckedTimestamp": consumer.acked_ms,
            "lastConsumedTimestamp": consumer.consumed_ms,
            "firstMessagesSentTimestamp": consumer.first_sent_ms,
            "lastConsumedFlowTimestamp": consumer.flow_ms,
            "firstConsumedFlowTimestamp": consumer.first_consumed_flow_ms,
            **ranges,
            "metadata": consumer.metadata,
            "lastAckedTime": time_text(consumer.acked_ms),
            "lastConsumedTime": time_text(consumer.consumed_ms),
        }


class Sums:
    """Sums over the subscriptions of a topic.

    `earliest` is the publish time of the oldest message in any backlog; 0 if not requested.
    """

    def __init__(self, topic: Topic) -> None:
        self.of: dict[str, float] = {
            "msgRateOut": 0.0,
            "msgThroughputOut": 0.0,
            "bytesOutCounter": topic.bytes_out_before,
            "msgOutCounter": topic.messages_out_before,
            **NO_RANGES,
        }
        self.earliest = 0

    def add(self, stats: Json) -> None:
        """Add a subscription by its stats."""
        for field in self.of:
            self.of[field] += stats[field]
        time = stats["earliestMsgPublishTimeInBacklog"]
        if time > 0:
            self.earliest = min(self.earliest or time, time)

    def add_gone(self, subscription: Subscription) -> None:
        """Add the messages dispatched to a subscription that was deleted before its turn."""
        self.of["bytesOutCounter"] += subscription.bytes_out
        self.of["msgOutCounter"] += subscription.messages_out


def transaction_counts(topic: Topic) -> Json:
    """Return the number of open transactions of a topic, and of those that ended since it was loaded."""
    buffer = topic.transactions
    counts = (0, 0, 0) if buffer is None else (buffer.ongoing, buffer.aborted, buffer.committed)
    return dict(zip(("ongoingTxnCount", "abortedTxnCount", "committedTxnCount"), counts, strict=True))


def publish_time(ledger: ManagedLedger, position: Position) -> int:
    """Return the publish time of an entry, by its producer's clock; 0 when it cannot be read."""
    if not ledger.is_valid(position):
        return 0
    try:
        return signed(parse_metadata(ledger.read_now(position)).publish_time)
    except (EntryError, BrokerServiceError, StorageError):
        return 0


def last_publish_ms(topic: Topic) -> int:
    """Return the publish time of the last entry; 0 for none since the topic was loaded."""
    if topic.ledger is None or not topic.messages_in:
        return 0
    return publish_time(topic.ledger, topic.ledger.last_confirmed)


NO_DRAINING = {"drainingHashesCount": 0, "drainingHashesClearedTotal": 0, "drainingHashesUnackedMessages": 0}


def age_of_backlog(subscription: Subscription, backlog: int) -> Json:
    """Return the age of a subscription's backlog in seconds, where the broker has the field (PIP-488).

    Readers have no age, and neither has the cursor of compaction, which is no subscription of the topic.
    """
    topic, config, oldest = subscription.topic, subscription.topic.stores.config, None
    if not topic.stores.profile.has(BACKLOG_AGE):
        return {}
    has_age = subscription.durable and subscription.name != COMPACTION_CURSOR and backlog > 0
    if config.exposeSubscriptionBacklogAgeInPrometheus and has_age and subscription.cursor is not None:
        oldest = oldest_of(subscription.cursor, config)
    age = UNKNOWN_AGE if oldest is None else max(0, (topic.now_ms() - oldest) // 1000)
    return {OLDEST_AGE: age}


def held_back(subscription: Subscription) -> Json:
    """Return the messages that a subscription holds back."""
    dispatcher = subscription.dispatcher
    if dispatcher is None:
        return {"blockedSubscriptionOnUnackedMsgs": False, "msgDelayed": 0, "msgInReplay": 0}
    as_released = subscription.topic.stores.profile.acknowledged_stay_delayed
    return {
        "blockedSubscriptionOnUnackedMsgs": dispatcher.blocked,
        "msgDelayed": dispatcher.count_delayed(unacknowledged=not as_released and subscription.cursor is not None),
        "msgInReplay": dispatcher.waiting_count,
    }


def of_release(profile: Profile, stats: Json) -> Json:
    """Return stats without the fields that the release does not have."""
    absent = profile.later_stats
    return {field: value for field, value in stats.items() if field not in absent} if absent else stats


def recently_joined(subscription: Subscription) -> Json:
    """Return the read positions at which consumers joined that still wait for earlier messages."""
    if not subscription.topic.stores.profile.shows_recently_joined:
        return {}
    joined = {} if subscription.dispatcher is None else subscription.dispatcher.joined
    return {"consumersAfterMarkDeletePosition": {each.name: str(position) for each, position in joined.items()}}


def key_sharing(dispatcher: Dispatcher | None) -> Json:
    """Return the mode by which a subscription assigns keys."""
    if not isinstance(dispatcher, KeySharedDispatcher):
        return {"allowOutOfOrderDelivery": False}
    mode = pb.KeySharedMode.Name(dispatcher.mode)
    return {"allowOutOfOrderDelivery": dispatcher.out_of_order, "keySharedMode": mode}


def retrying(subscription: Subscription) -> Json:
    """Return the negatively acknowledged messages and their key hashes, where the broker has the fields (PIP-493)."""
    if not subscription.topic.stores.profile.has(NEGATIVE_ACKS):
        return {}
    found = subscription.dispatcher.retrying if isinstance(subscription.dispatcher, KeySharedDispatcher) else None
    return dict(zip(RETRYING, (0, 0) if found is None else (found.hashes, len(found)), strict=True))


def draining(dispatcher: Dispatcher | None) -> Json:
    """Return the draining hashes of all consumers."""
    if not isinstance(dispatcher, KeySharedDispatcher):
        return NO_DRAINING
    each = [draining_of(dispatcher, consumer) for consumer in dispatcher.consumers]
    return {field: sum(one[field] for one in each) for field in NO_DRAINING}


def draining_of(dispatcher: Dispatcher | None, consumer: Consumer) -> Json:
    """Return the hashes that one consumer drains before other consumers get them."""
    if not isinstance(dispatcher, KeySharedDispatcher) or not dispatcher.drains:
        return NO_DRAINING
    hashes = dispatcher.key_owners.draining_of(consumer)
    return {
        "drainingHashesCount": len(hashes),
        "drainingHashesClearedTotal": dispatcher.key_owners.drained.get(consumer, 0),
        "drainingHashesUnackedMessages": sum(unacked for unacked, _ in hashes.values()),
        "drainingHashes": [
            {"hash": key_hash, "unackMsgs": unacked, "blockedAttempts": attempts}
            for key_hash, (unacked, attempts) in sorted(hashes.items())
        ],
    }


def key_ranges(dispatcher: Dispatcher | None) -> dict[Consumer, Json]:
    """Return the hash ranges of each consumer."""
    if not isinstance(dispatcher, KeySharedDispatcher):
        return {}
    ranges = dispatcher.selector.ranges()
    return {each: {"keyHashRangeArrays": [list(one) for one in ranges.get(each, ())]} for each in dispatcher.consumers}


def quotas(topic: Topic) -> Json:
    """Return the backlog quota of a topic, and the age of its backlog in seconds; -1 for none."""
    size = seconds = age = 0
    if isinstance(topic, PersistentTopic):
        size, seconds = quota_of(topic.policies, STORAGE).limit_size, quota_of(topic.policies, AGE).limit_seconds
        oldest = oldest_ms(topic.log)
        age = UNKNOWN_AGE if oldest is None else (topic.now_ms() - oldest) // 1000
    return {
        "backlogQuotaLimitSize": size,
        "backlogQuotaLimitTime": seconds,
        OLDEST_AGE: age,
    }


def expired(subscription: Subscription, rates: Rates) -> Json:
    """Return the number of expired entries of a subscription, in the last interval and in total."""
    return {
        "msgRateExpired": rates.of(subscription).messages,
        "msgExpired": rates.events(subscription),
        "totalMsgExpired": subscription.expired.total,
        "lastExpireTimestamp": subscription.expired.tried_ms,
    }
