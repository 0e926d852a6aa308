"""Topics: their life, partitions, subscriptions, data and messages, and what is counted of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from pulsarium.proto.topic_name import NON_PERSISTENT, PERSISTENT
from pulsarium.rest.exchange import NO_BODY, Reply, Request
from pulsarium.rest.group import Group, Namespace, Topic, segment, twice
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
_SHADOW_SOURCE: Final = "PULSAR.SHADOW_SOURCE"


class TopicsWithoutMessages(Group):
    """`topics`, but for what gives messages and ids of messages."""

    # ---- to be, to have properties, and who may use it

    async def get_list(
        self,
        namespace: Namespace,
        *,
        domain: str | None = None,
        bundle: str | None = None,
        include_system_topic: bool = False,
    ) -> list[str]:
        """The topics of a namespace by full names, in order; of partitioned ones the partitions.

        `domain`: persistent or non-persistent alone. `bundle`: `0x..._0x...`.
        """
        query = {"bundle": bundle, "includeSystemTopic": include_system_topic}
        return await self._listed(namespace, "", query, DOMAINS if domain is None else (domain,))

    async def get_partitioned_topic_list(
        self, namespace: Namespace, *, include_system_topic: bool = False
    ) -> list[str]:
        """The partitioned topics of a namespace by full names, in order."""
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
        """A topic without partitions."""
        await self._put(self._topic(topic), dict(properties or {}))

    async def delete(self, topic: Topic, *, force: bool = False) -> None:
        """With its schemas. `force`: also while clients are connected; they are closed."""
        await self._delete(self._topic(topic), {"force": force, "deleteSchema": True})

    async def get_properties(self, topic: Topic) -> dict[str, str] | None:
        """Its own; of a partitioned topic ask that."""
        return await self._find(dict[str, str], f"{self._topic(topic)}/properties")

    async def update_properties(self, topic: Topic, properties: Mapping[str, str]) -> None:
        """Set these; others stay."""
        await self._put(f"{self._topic(topic)}/properties", dict(properties))

    async def remove_properties(self, topic: Topic, key: str | None) -> None:
        """Remove one."""
        await self._delete(f"{self._topic(topic)}/properties", {"key": key})

    async def get_permissions(self, topic: Topic) -> dict[str, list[str]]:
        """What roles may do, from its namespace too."""
        return await self._get(dict[str, list[str]], f"{self._topic(topic)}/permissions")

    async def grant_permission(self, topic: Topic, role: str, actions: Sequence[str]) -> None:
        """`actions`: of produce, consume, functions, sources, sinks, packages."""
        await self._post(f"{self._topic(topic)}/permissions/{segment(role)}", list(actions))

    async def revoke_permissions(self, topic: Topic, role: str) -> None:
        """All that the role was granted here."""
        await self._delete(f"{self._topic(topic)}/permissions/{segment(role)}")

    # ---- partitions, and topics that shadow others

    async def create_partitioned_topic(
        self, topic: Topic, partitions: int, properties: Mapping[str, str] | None = None
    ) -> None:
        """A topic with so many partitions, which exist from then on."""
        path, query = f"{self._topic(topic)}/partitions", {"createLocalTopicOnly": False}
        if properties:
            body = {"partitions": partitions, "deleted": False, "properties": dict(properties)}
            await self._put(path, body, query, content_type=_WITH_PROPERTIES)
        else:
            await self._put(path, partitions, query)

    async def update_partitioned_topic(
        self, topic: Topic, partitions: int, *, update_local_only: bool = False, force: bool = False
    ) -> None:
        """How many it has then. `force`: without looking at partitions that exist."""
        query = {"updateLocalTopicOnly": update_local_only, "force": force}
        await self._post(f"{self._topic(topic)}/partitions", partitions, query)

    async def get_partitioned_topic_metadata(self, topic: Topic) -> PartitionedTopicMetadata:
        """How many it has; 0 if it is not partitioned."""
        return await self._get(PartitionedTopicMetadata, f"{self._topic(topic)}/partitions")

    async def create_missed_partitions(self, topic: Topic) -> None:
        """Create those that are not there."""
        await self._post(f"{self._topic(topic)}/createMissedPartitions")

    async def delete_partitioned_topic(self, topic: Topic, *, force: bool = False) -> None:
        """All of it, with its schemas. `force`: also while clients are connected; they are closed."""
        await self._delete(f"{self._topic(topic)}/partitions", {"force": force, "deleteSchema": True})

    async def create_shadow_topic(
        self, topic: Topic, source: Topic, properties: Mapping[str, str] | None = None
    ) -> None:
        """A topic that shows the messages of `source`, with as many partitions (PIP-180)."""
        of_shadow = {_SHADOW_SOURCE: str(self._name(source)), **(properties or {})}
        if partitions := (await self.get_partitioned_topic_metadata(source))["partitions"]:
            await self.create_partitioned_topic(topic, partitions, of_shadow)
        else:
            await self._put(self._topic(topic), of_shadow)

    async def get_shadow_source(self, topic: Topic) -> str | None:
        """Whose messages it shows."""
        found = await self._find(dict[str, str], f"{self._topic(topic)}/properties")
        return (found or {}).get(_SHADOW_SOURCE)

    # ---- what is counted

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
        """Rates, producers, subscriptions, backlog. A precise backlog counts messages, another entries."""
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
        """Of all partitions together; `per_partition`: of each too."""
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
        """Ledgers and cursors. `metadata`: that of the ledgers too."""
        return await self._get(TopicInternalStats, f"{self._topic(topic)}/internalStats", {"metadata": metadata})

    async def get_partitioned_internal_stats(self, topic: Topic) -> PartitionedTopicInternalStats:
        """Of each partition."""
        return await self._get(PartitionedTopicInternalStats, f"{self._topic(topic)}/partitioned-internalStats")

    async def get_internal_info(self, topic: Topic) -> dict[str, object]:
        """The metadata of its ledgers and cursors, as it is kept."""
        return await self._get(dict[str, object], f"{self._topic(topic)}/internal-info")

    # ---- subscriptions, of which each partition has its own

    async def get_subscriptions(self, topic: Topic) -> list[str]:
        """Their names."""
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
        """A durable one that begins behind `message_id`, so that it keeps messages before a consumer comes."""
        extra = {"properties": dict(properties), "excluded": False} if properties else {"batchSize": 0}
        body = body_of(message_id, **extra)
        await self._put(self._subscription(topic, subscription), body, {"replicated": replicated})

    async def delete_subscription(self, topic: Topic, subscription: str, *, force: bool = False) -> None:
        """`force`: also while consumers are connected."""
        await self._delete(self._subscription(topic, subscription), {"force": force})

    async def get_subscription_properties(self, topic: Topic, subscription: str) -> dict[str, str]:
        """Its own."""
        return await self._get(dict[str, str], f"{self._subscription(topic, subscription)}/properties")

    async def update_subscription_properties(
        self, topic: Topic, subscription: str, properties: Mapping[str, str]
    ) -> None:
        """Replace them all."""
        await self._put(f"{self._subscription(topic, subscription)}/properties", dict(properties))

    async def get_replicated_subscription_status(self, topic: Topic, subscription: str) -> dict[str, bool]:
        """Whether it is replicated, by topic or partition."""
        path = f"{self._subscription(topic, subscription)}/replicatedSubscriptionStatus"
        return await self._get(dict[str, bool], path)

    async def set_replicated_subscription_status(self, topic: Topic, subscription: str, enabled: bool) -> None:
        """Set that."""
        await self._post(f"{self._subscription(topic, subscription)}/replicatedSubscriptionStatus", enabled)

    # ---- what it has yet to acknowledge

    async def skip_messages(self, topic: Topic, subscription: str, count: int) -> None:
        """Skip the next `count`."""
        await self._post(f"{self._subscription(topic, subscription)}/skip/{count}")

    async def skip_by_message_ids(self, topic: Topic, subscription: str, message_ids: Sequence[Id]) -> None:
        """Skip these, single messages of batches too (PIP-423)."""
        body = {"type": "messageId", "messageIds": [skipped(each) for each in message_ids]}
        await self._post(f"{self._subscription(topic, subscription)}/skipByMessageIds", body)

    async def skip_all_messages(self, topic: Topic, subscription: str) -> None:
        """Skip all there are."""
        await self._post(f"{self._subscription(topic, subscription)}/skip_all")

    async def expire_messages(self, topic: Topic, subscription: str, seconds: int) -> None:
        """Acknowledge what is older."""
        await self._post(f"{self._subscription(topic, subscription)}/expireMessages/{seconds}")

    async def expire_messages_up_to(
        self, topic: Topic, subscription: str, message_id: Id, *, is_excluded: bool = False
    ) -> None:
        """Acknowledge all up to `message_id`, and itself unless `is_excluded`."""
        body = body_of(message_id, excluded=is_excluded)
        await self._post(f"{self._subscription(topic, subscription)}/expireMessages", body)

    async def expire_messages_for_all_subscriptions(self, topic: Topic, seconds: int) -> None:
        """Acknowledge what is older, for every subscription."""
        await self._post(f"{self._topic(topic)}/all_subscription/expireMessages/{seconds}")

    async def reset_cursor(self, topic: Topic, subscription: str, timestamp: int) -> None:
        """To the first message published at or after `timestamp`, milliseconds since the epoch."""
        await self._post(f"{self._subscription(topic, subscription)}/resetcursor/{timestamp}")

    async def reset_cursor_to(
        self, topic: Topic, subscription: str, message_id: Id, *, is_excluded: bool = False
    ) -> None:
        """To a message, or with `is_excluded` behind it."""
        body = body_of(message_id, excluded=is_excluded)
        await self._post(f"{self._subscription(topic, subscription)}/resetcursor", body)

    async def analyze_subscription_backlog(
        self, topic: Topic, subscription: str, start: Id | None = None
    ) -> BacklogAnalysis:
        """Counts entry by entry, from `start` on and up to subscriptionBacklogScanMaxEntries."""
        body = NO_BODY if start is None else body_of(start, excluded=False)
        found = await self._post(f"{self._subscription(topic, subscription)}/analyzeBacklog", body)
        return cast(BacklogAnalysis, found)

    def _subscription(self, topic: Topic, subscription: str) -> str:
        return f"{self._topic(topic)}/subscription/{twice(subscription)}"

    # ---- what happens to the data; of a partitioned topic mostly that of all partitions

    async def unload(self, topic: Topic) -> None:
        """Close it; clients look it up again."""
        await self._put(f"{self._topic(topic)}/unload")

    async def truncate(self, topic: Topic) -> None:
        """Drop all data."""
        await self._delete(f"{self._topic(topic)}/truncate")

    async def trim_topic(self, topic: Topic) -> None:
        """Drop the ledgers that retention does not keep."""
        await self._post(f"{self._topic(topic)}/trim")

    async def trigger_compaction(self, topic: Topic) -> None:
        """Keep the last message of each key."""
        await self._put(f"{self._topic(topic)}/compaction")

    async def compaction_status(self, topic: Topic) -> LongRunningStatus:
        """How that goes."""
        return await self._get(LongRunningStatus, f"{self._topic(topic)}/compaction")

    async def trigger_offload(self, topic: Topic, message_id: Id) -> None:
        """Move the ledgers before a message to another storage."""
        await self._put(f"{self._topic(topic)}/offload", body_of(message_id, batchSize=0))

    async def offload_status(self, topic: Topic) -> LongRunningStatus:
        """How that goes."""
        return await self._get(LongRunningStatus, f"{self._topic(topic)}/offload")

    async def get_backlog_size_by_message_id(self, topic: Topic, message_id: Id) -> int:
        """Bytes from a message on."""
        return cast(int, await self._put(f"{self._topic(topic)}/backlogSize", body_of(message_id, batchSize=0)))


class Topics(TopicsWithoutMessages):
    """`topics`, with those as the broker gives them: entries are answers, whose headers and body hold them."""

    async def peek_messages(self, topic: Topic, subscription: str, count: int) -> list[Reply]:
        """The first `count` entries that a subscription has yet to acknowledge, or as many as there are."""
        path = f"{self._topic(topic)}/subscription/{twice(subscription)}/position"
        found: list[Reply] = []
        for position in range(1, count + 1):
            reply = await self._exchange.send(Request("GET", f"{path}/{position}", known=(404,)))
            if reply.status == 404:
                if not found and not reply.reason.startswith("Message not found"):
                    raise self._exchange.refused(reply)
                break
            found.append(reply)
        return found

    async def examine_message(self, topic: Topic, initial_position: str, message_position: int) -> Reply:
        """The entry of message `message_position`, from 1, counted from `earliest` or `latest`."""
        query = {"initialPosition": initial_position, "messagePosition": message_position}
        return await self._exchange.send(Request("GET", f"{self._topic(topic)}/examinemessage", query))

    async def get_messages_by_id(self, topic: Topic, ledger_id: int, entry_id: int) -> Reply:
        """An entry."""
        path = f"{self._topic(topic)}/ledger/{segment(ledger_id)}/entry/{segment(entry_id)}"
        return await self._exchange.send(Request("GET", path))

    async def get_last_message_id(self, topic: Topic) -> MessageIdData:
        """The last message that was published."""
        return await self._get(MessageIdData, f"{self._topic(topic)}/lastMessageId")

    async def get_message_id_by_timestamp(self, topic: Topic, timestamp: int) -> MessageIdData:
        """The first message published at or after `timestamp`, milliseconds since the epoch."""
        return await self._get(MessageIdData, f"{self._topic(topic)}/messageid/{timestamp}")

    async def get_message_id_by_index(self, topic: Topic, index: int) -> MessageIdData:
        """The entry that holds the message of this index, from 0 (PIP-415)."""
        return await self._get(MessageIdData, f"{self._topic(topic)}/getMessageIdByIndex", {"index": index})

    async def terminate_topic(self, topic: Topic) -> MessageIdData:
        """End a topic: nothing more is accepted. Gives its last message."""
        return cast(MessageIdData, await self._post(f"{self._topic(topic)}/terminate"))

    async def terminate_partitioned_topic(self, topic: Topic) -> dict[str, MessageIdData]:
        """The same for all partitions; last messages by partition."""
        return cast("dict[str, MessageIdData]", await self._post(f"{self._topic(topic)}/terminate/partitions"))
