"""Calls about topics: partitions, subscriptions, data, messages and statistics. Calls for non-persistent topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from pulsarium.proto.topic_name import NON_PERSISTENT, PERSISTENT
from pulsarium.rest.exchange import NO_BODY, RestReply, RestRequest
from pulsarium.rest.group import CallGroup, Namespace, Topic, segment, twice
from pulsarium.rest.message_ids import LATEST, Id, MessageIdData, body_of, skipped
from pulsarium.rest.stats import (
    BacklogAnalysis,
    LongRunningStatus,
    PartitionedTopicInternalStats,
    PartitionedTopicMetadata,
    PartitionedTopicStats,
    TopicInternalStats,
    TopicStats,
)

DOMAINS: Final = (PERSISTENT, NON_PERSISTENT)
_WITH_PROPERTIES: Final = "application/vnd.partitioned-topic-metadata+json"
SHADOW_SOURCE: Final = "PULSAR.SHADOW_SOURCE"


class TopicsWithoutMessages(CallGroup):
    """Calls of `topics`, except those that return messages and message ids."""

    # ---- existence, properties and permissions

    async def get_list(
        self,
        namespace: Namespace,
        *,
        domain: str | None = None,
        bundle: str | None = None,
        include_system_topic: bool = False,
    ) -> list[str]:
        """Return the topics of a namespace by full names, in order; of partitioned topics, the partitions.

        `domain`: persistent or non-persistent only. `bundle`: `0x..._0x...`.
        """
        query = {"bundle": bundle, "includeSystemTopic": include_system_topic}
        return await self._listed(namespace, "", query, DOMAINS if domain is None else (domain,))

    async def get_partitioned_topic_list(
        self, namespace: Namespace, *, include_system_topic: bool = False
    ) -> list[str]:
        """Return the partitioned topics of a namespace by full names, in order."""
        return await self._listed(namespace, "/partitioned", {"includeSystemTopic": include_system_topic}, DOMAINS)

    async def _listed(
        self, namespace: Namespace, end: str, query: Mapping[str, object], domains: Sequence[str]
    ) -> list[str]:
        where = self._namespace_name(namespace)
        found: set[str] = set()
        for domain in domains:
            found.update(await self._find(list[str], f"{domain}/{where}{end}", query) or ())
        return sorted(found)

    async def create_non_partitioned_topic(self, topic: Topic, properties: Mapping[str, str] | None = None) -> None:
        """Create a topic without partitions."""
        await self._put(self._topic(topic), dict(properties or {}))

    async def delete(self, topic: Topic, *, force: bool = False) -> None:
        """Delete a topic with its schemas. With `force`, disconnect its clients first."""
        await self._delete(self._topic(topic), {"force": force, "deleteSchema": True})

    async def get_properties(self, topic: Topic) -> dict[str, str] | None:
        """Return the properties of a topic. For a partition, ask for those of the partitioned topic."""
        return await self._find(dict[str, str], f"{self._topic(topic)}/properties")

    async def update_properties(self, topic: Topic, properties: Mapping[str, str]) -> None:
        """Set these properties. Other properties stay."""
        await self._put(f"{self._topic(topic)}/properties", dict(properties))

    async def remove_properties(self, topic: Topic, key: str | None) -> None:
        """Remove a property."""
        await self._delete(f"{self._topic(topic)}/properties", {"key": key})

    async def get_permissions(self, topic: Topic) -> dict[str, list[str]]:
        """Return the granted actions by role, including those of the namespace."""
        return await self._get(dict[str, list[str]], f"{self._topic(topic)}/permissions")

    async def grant_permission(self, topic: Topic, role: str, actions: Sequence[str]) -> None:
        """Grant a role `actions` of produce, consume, functions, sources, sinks and packages."""
        await self._post(f"{self._topic(topic)}/permissions/{segment(role)}", list(actions))

    async def revoke_permissions(self, topic: Topic, role: str) -> None:
        """Revoke all actions that the role was granted on the topic."""
        await self._delete(f"{self._topic(topic)}/permissions/{segment(role)}")

    # ---- partitions, and shadow topics

    async def create_partitioned_topic(
        self, topic: Topic, partitions: int, properties: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic with this number of partitions, and the partitions themselves."""
        path, query = f"{self._topic(topic)}/partitions", {"createLocalTopicOnly": False}
        if properties:
            body = {"partitions": partitions, "deleted": False, "properties": dict(properties)}
            await self._put(path, body, query, content_type=_WITH_PROPERTIES)
        else:
            await self._put(path, partitions, query)

    async def update_partitioned_topic(
        self, topic: Topic, partitions: int, *, update_local_only: bool = False, force: bool = False
    ) -> None:
        """Set a larger number of partitions. With `force`, do not check the existing partitions."""
        query = {"updateLocalTopicOnly": update_local_only, "force": force}
        await self._post(f"{self._topic(topic)}/partitions", partitions, query)

    async def get_partitioned_topic_metadata(self, topic: Topic) -> PartitionedTopicMetadata:
        """Return the number of partitions; 0 for a topic that is not partitioned."""
        return await self._get(PartitionedTopicMetadata, f"{self._topic(topic)}/partitions")

    async def create_missed_partitions(self, topic: Topic) -> None:
        """Create partitions that are missing."""
        await self._post(f"{self._topic(topic)}/createMissedPartitions")

    async def delete_partitioned_topic(self, topic: Topic, *, force: bool = False) -> None:
        """Delete a partitioned topic with its schemas. With `force`, disconnect its clients first."""
        await self._delete(f"{self._topic(topic)}/partitions", {"force": force, "deleteSchema": True})

    async def create_shadow_topic(
        self, topic: Topic, source: Topic, properties: Mapping[str, str] | None = None
    ) -> None:
        """Create a shadow topic of `source`, with as many partitions (PIP-180)."""
        of_shadow = {SHADOW_SOURCE: str(self._name(source)), **(properties or {})}
        if partitions := (await self.get_partitioned_topic_metadata(source))["partitions"]:
            await self.create_partitioned_topic(topic, partitions, of_shadow)
        else:
            await self._put(self._topic(topic), of_shadow)

    async def get_shadow_source(self, topic: Topic) -> str | None:
        """Return the source topic of a shadow topic, or None."""
        found = await self._find(dict[str, str], f"{self._topic(topic)}/properties")
        return (found or {}).get(SHADOW_SOURCE)

    # ---- statistics

    async def get_stats(
        self,
        topic: Topic,
        *,
        get_precise_backlog: bool = False,
        subscription_backlog_size: bool = True,
        get_earliest_time_in_backlog: bool = False,
        exclude_publishers: bool = False,
        exclude_consumers: bool = False,
    ) -> TopicStats:
        """Return rates, producers, subscriptions and backlog.

        A precise backlog counts messages, and otherwise entries.
        """
        query = {
            "getPreciseBacklog": get_precise_backlog,
            "subscriptionBacklogSize": subscription_backlog_size,
            "getEarliestTimeInBacklog": get_earliest_time_in_backlog,
            "excludePublishers": exclude_publishers,
            "excludeConsumers": exclude_consumers,
        }
        return await self._get(TopicStats, f"{self._topic(topic)}/stats", query)

    async def get_partitioned_stats(
        self,
        topic: Topic,
        *,
        per_partition: bool = False,
        get_precise_backlog: bool = False,
        subscription_backlog_size: bool = True,
        get_earliest_time_in_backlog: bool = False,
        exclude_publishers: bool = False,
        exclude_consumers: bool = False,
    ) -> PartitionedTopicStats:
        """Return stats of a partitioned topic. With `per_partition`, include each partition."""
        query = {
            "perPartition": per_partition,
            "getPreciseBacklog": get_precise_backlog,
            "subscriptionBacklogSize": subscription_backlog_size,
            "getEarliestTimeInBacklog": get_earliest_time_in_backlog,
            "excludePublishers": exclude_publishers,
            "excludeConsumers": exclude_consumers,
        }
        return await self._get(PartitionedTopicStats, f"{self._topic(topic)}/partitioned-stats", query)

    async def get_internal_stats(self, topic: Topic, *, metadata: bool = False) -> TopicInternalStats:
        """Return ledgers and cursors. With `metadata`, include the metadata of the ledgers."""
        return await self._get(TopicInternalStats, f"{self._topic(topic)}/internalStats", {"metadata": metadata})

    async def get_partitioned_internal_stats(self, topic: Topic) -> PartitionedTopicInternalStats:
        """Return ledgers and cursors of each partition."""
        return await self._get(PartitionedTopicInternalStats, f"{self._topic(topic)}/partitioned-internalStats")

    async def get_internal_info(self, topic: Topic) -> dict[str, object]:
        """Return the metadata of ledgers and cursors, as stored."""
        return await self._get(dict[str, object], f"{self._topic(topic)}/internal-info")

    # ---- subscriptions; each partition has its own

    async def get_subscriptions(self, topic: Topic) -> list[str]:
        """Return the names of the subscriptions."""
        return await self._get(list[str], f"{self._topic(topic)}/subscriptions")

    async def create_subscription(
        self,
        topic: Topic,
        subscription: str,
        message_id: Id = LATEST,
        *,
        replicated: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Create a durable subscription that begins behind `message_id`.

        It keeps messages before a consumer connects.
        """
        extra = {"properties": dict(properties), "excluded": False} if properties else {"batchSize": 0}
        body = body_of(message_id, **extra)
        await self._put(self._subscription(topic, subscription), body, {"replicated": replicated})

    async def delete_subscription(self, topic: Topic, subscription: str, *, force: bool = False) -> None:
        """Delete a subscription. With `force`, disconnect its consumers first."""
        await self._delete(self._subscription(topic, subscription), {"force": force})

    async def get_subscription_properties(self, topic: Topic, subscription: str) -> dict[str, str]:
        """Return the properties of a subscription."""
        return await self._get(dict[str, str], f"{self._subscription(topic, subscription)}/properties")

    async def update_subscription_properties(
        self, topic: Topic, subscription: str, properties: Mapping[str, str]
    ) -> None:
        """Replace all properties of a subscription."""
        await self._put(f"{self._subscription(topic, subscription)}/properties", dict(properties))

    async def get_replicated_subscription_status(self, topic: Topic, subscription: str) -> dict[str, bool]:
        """Return whether the subscription is replicated, by topic or partition."""
        path = f"{self._subscription(topic, subscription)}/replicatedSubscriptionStatus"
        return await self._get(dict[str, bool], path)

    async def set_replicated_subscription_status(self, topic: Topic, subscription: str, enabled: bool) -> None:
        """Set whether the subscription is replicated."""
        await self._post(f"{self._subscription(topic, subscription)}/replicatedSubscriptionStatus", enabled)

    # ---- backlog

    async def skip_messages(self, topic: Topic, subscription: str, count: int) -> None:
        """Skip the next `count` messages."""
        await self._post(f"{self._subscription(topic, subscription)}/skip/{count}")

    async def skip_by_message_ids(self, topic: Topic, subscription: str, message_ids: Sequence[Id]) -> None:
        """Skip these messages, also single messages of batches (PIP-423)."""
        body = {"type": "messageId", "messageIds": [skipped(each) for each in message_ids]}
        await self._post(f"{self._subscription(topic, subscription)}/skipByMessageIds", body)

    async def skip_all_messages(self, topic: Topic, subscription: str) -> None:
        """Skip the whole backlog."""
        await self._post(f"{self._subscription(topic, subscription)}/skip_all")

    async def expire_messages(self, topic: Topic, subscription: str, seconds: int) -> None:
        """Acknowledge messages that are older than `seconds`."""
        await self._post(f"{self._subscription(topic, subscription)}/expireMessages/{seconds}")

    async def expire_messages_up_to(
        self, topic: Topic, subscription: str, message_id: Id, *, is_excluded: bool = False
    ) -> None:
        """Acknowledge all messages up to `message_id`, and that message too unless `is_excluded`."""
        body = body_of(message_id, excluded=is_excluded)
        await self._post(f"{self._subscription(topic, subscription)}/expireMessages", body)

    async def expire_messages_for_all_subscriptions(self, topic: Topic, seconds: int) -> None:
        """Acknowledge messages that are older than `seconds`, for every subscription."""
        await self._post(f"{self._topic(topic)}/all_subscription/expireMessages/{seconds}")

    async def reset_cursor(self, topic: Topic, subscription: str, timestamp: int) -> None:
        """Reset to the first message published at or after `timestamp`, in milliseconds since the epoch."""
        await self._post(f"{self._subscription(topic, subscription)}/resetcursor/{timestamp}")

    async def reset_cursor_to(
        self, topic: Topic, subscription: str, message_id: Id, *, is_excluded: bool = False
    ) -> None:
        """Reset to a message, or behind it if `is_excluded`."""
        body = body_of(message_id, excluded=is_excluded)
        await self._post(f"{self._subscription(topic, subscription)}/resetcursor", body)

    async def analyze_subscription_backlog(
        self, topic: Topic, subscription: str, start: Id | None = None
    ) -> BacklogAnalysis:
        """Count the backlog entry by entry, from `start` and up to subscriptionBacklogScanMaxEntries."""
        body = NO_BODY if start is None else body_of(start, excluded=False)
        found = await self._post(f"{self._subscription(topic, subscription)}/analyzeBacklog", body)
        return cast(BacklogAnalysis, found)

    def _subscription(self, topic: Topic, subscription: str) -> str:
        return f"{self._topic(topic)}/subscription/{twice(subscription)}"

    # ---- data; calls on a partitioned topic mostly affect all partitions

    async def unload(self, topic: Topic) -> None:
        """Close the topic. Clients look it up again."""
        await self._put(f"{self._topic(topic)}/unload")

    async def truncate(self, topic: Topic) -> None:
        """Delete all messages of the topic."""
        await self._delete(f"{self._topic(topic)}/truncate")

    async def trim_topic(self, topic: Topic) -> None:
        """Delete the ledgers that retention does not keep."""
        await self._post(f"{self._topic(topic)}/trim")

    async def trigger_compaction(self, topic: Topic) -> None:
        """Start compaction, which keeps the last message of each key."""
        await self._put(f"{self._topic(topic)}/compaction")

    async def compaction_status(self, topic: Topic) -> LongRunningStatus:
        """Return the status of the compaction."""
        return await self._get(LongRunningStatus, f"{self._topic(topic)}/compaction")

    async def trigger_offload(self, topic: Topic, message_id: Id) -> None:
        """Start to offload the ledgers before a message to another storage."""
        await self._put(f"{self._topic(topic)}/offload", body_of(message_id, batchSize=0))

    async def offload_status(self, topic: Topic) -> LongRunningStatus:
        """Return the status of the offload."""
        return await self._get(LongRunningStatus, f"{self._topic(topic)}/offload")

    async def get_backlog_size_by_message_id(self, topic: Topic, message_id: Id) -> int:
        """Return the size of the backlog from a message on, in bytes."""
        return cast(int, await self._put(f"{self._topic(topic)}/backlogSize", body_of(message_id, batchSize=0)))


class Topics(TopicsWithoutMessages):
    """Calls of `topics`.

    Entries are returned as HTTP answers, with properties in headers and the payload in the body.
    """

    async def peek_messages(self, topic: Topic, subscription: str, count: int) -> list[RestReply]:
        """Return the first `count` entries of the subscription's backlog, or as many as exist."""
        path = f"{self._topic(topic)}/subscription/{twice(subscription)}/position"
        found: list[RestReply] = []
        for position in range(1, count + 1):
            reply = await self._exchange.send(RestRequest("GET", f"{path}/{position}", known=(404,)))
            if reply.status == 404:
                if not found and not reply.reason.startswith("Message not found"):
                    raise self._exchange.refused(reply)
                break
            found.append(reply)
        return found

    async def examine_message(self, topic: Topic, initial_position: str, message_position: int) -> RestReply:
        """Return the entry of message `message_position`, counted from 1 at `earliest` or `latest`."""
        query = {"initialPosition": initial_position, "messagePosition": message_position}
        return await self._exchange.send(RestRequest("GET", f"{self._topic(topic)}/examinemessage", query))

    async def get_messages_by_id(self, topic: Topic, ledger_id: int, entry_id: int) -> RestReply:
        """Return an entry."""
        path = f"{self._topic(topic)}/ledger/{segment(ledger_id)}/entry/{segment(entry_id)}"
        return await self._exchange.send(RestRequest("GET", path))

    async def get_last_message_id(self, topic: Topic) -> MessageIdData:
        """Return the id of the last published message."""
        return await self._get(MessageIdData, f"{self._topic(topic)}/lastMessageId")

    async def get_message_id_by_timestamp(self, topic: Topic, timestamp: int) -> MessageIdData:
        """Return the id of the first message published at or after `timestamp`, in milliseconds since the epoch."""
        return await self._get(MessageIdData, f"{self._topic(topic)}/messageid/{timestamp}")

    async def get_message_id_by_index(self, topic: Topic, index: int) -> MessageIdData:
        """Return the id of the entry with the message of this index, counted from 0 (PIP-415)."""
        return await self._get(MessageIdData, f"{self._topic(topic)}/getMessageIdByIndex", {"index": index})

    async def terminate_topic(self, topic: Topic) -> MessageIdData:
        """Terminate a topic, so that it accepts no messages, and return the id of its last message."""
        return cast(MessageIdData, await self._post(f"{self._topic(topic)}/terminate"))

    async def terminate_partitioned_topic(self, topic: Topic) -> dict[str, MessageIdData]:
        """Terminate all partitions, and return the ids of their last messages."""
        return cast("dict[str, MessageIdData]", await self._post(f"{self._topic(topic)}/terminate/partitions"))


class NonPersistentTopics(CallGroup):
    """Calls of `non-persistent`, for topics whose names begin with non-persistent://. `topics` has these calls too."""

    async def create_partitioned_topic(self, topic: Topic, partitions: int) -> None:
        """Create a topic with this number of partitions."""
        await self._put(f"{self._topic(topic)}/partitions", partitions)

    async def get_partitioned_topic_metadata(self, topic: Topic) -> PartitionedTopicMetadata:
        """Return the number of partitions."""
        return await self._get(PartitionedTopicMetadata, f"{self._topic(topic)}/partitions")

    async def get_stats(self, topic: Topic) -> TopicStats:
        """Return rates, producers and subscriptions."""
        return await self._get(TopicStats, f"{self._topic(topic)}/stats")

    async def get_internal_stats(self, topic: Topic) -> TopicInternalStats:
        """Return internal stats, in the form of those of a persistent topic."""
        return await self._get(TopicInternalStats, f"{self._topic(topic)}/internalStats")

    async def unload(self, topic: Topic) -> None:
        """Close the topic. Clients look it up again."""
        await self._put(f"{self._topic(topic)}/unload")

    async def get_list(self, namespace: Namespace) -> list[str]:
        """Return the topics of a namespace."""
        return await self._get(list[str], f"non-persistent/{self._namespace_name(namespace)}")

    async def get_list_in_bundle(self, namespace: Namespace, bundle: str) -> list[str]:
        """Return the topics of a bundle, such as `0x..._0x...`."""
        return await self._get(list[str], f"non-persistent/{self._namespace_name(namespace)}/{segment(bundle)}")
