"""/metrics: what can be told of topics and subscriptions, in Prometheus' text format, under Pulsar's names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pulsarium.broker.admin.http.call import Call
from pulsarium.broker.admin.http.registry import route
from pulsarium.broker.admin.http.reply import Reply
from pulsarium.broker.admin.topic.stats_json import StatsWriter
from pulsarium.broker.auth.needs import ANYBODY

TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"

# metric -> field of the topic's stats
OF_TOPIC = {
    "pulsar_rate_in": "msgRateIn",
    "pulsar_rate_out": "msgRateOut",
    "pulsar_throughput_in": "msgThroughputIn",
    "pulsar_throughput_out": "msgThroughputOut",
    "pulsar_average_msg_size": "averageMsgSize",
    "pulsar_in_messages_total": "msgInCounter",
    "pulsar_in_bytes_total": "bytesInCounter",
    "pulsar_storage_size": "storageSize",
    "pulsar_storage_logical_size": "storageSize",
    "pulsar_storage_backlog_size": "backlogSize",
    "pulsar_storage_backlog_age_seconds": "oldestBacklogMessageAgeSeconds",
    "pulsar_storage_backlog_quota_limit": "backlogQuotaLimitSize",
    "pulsar_storage_backlog_quota_limit_time": "backlogQuotaLimitTime",
    "pulsar_storage_offloaded_size": "offloadedStorageSize",
    "pulsar_delayed_message_index_size_bytes": "delayedMessageIndexSizeInBytes",
    "pulsar_publish_rate_limit_times": "publishRateLimitedTimes",
    "pulsar_txn_tb_active_total": "ongoingTxnCount",
    "pulsar_txn_tb_aborted_total": "abortedTxnCount",
    "pulsar_txn_tb_committed_total": "committedTxnCount",
}
# metric -> field of the subscription's stats
OF_SUBSCRIPTION = {
    "pulsar_subscription_back_log": "msgBacklog",
    "pulsar_subscription_back_log_no_delayed": "msgBacklogNoDelayed",
    "pulsar_subscription_delayed": "msgDelayed",
    "pulsar_subscription_delayed_message_index_size_bytes": "delayedMessageIndexSizeInBytes",
    "pulsar_subscription_in_replay": "msgInReplay",
    "pulsar_subscription_unacked_messages": "unackedMessages",
    "pulsar_subscription_blocked_on_unacked_messages": "blockedSubscriptionOnUnackedMsgs",
    "pulsar_subscription_msg_rate_out": "msgRateOut",
    "pulsar_subscription_msg_throughput_out": "msgThroughputOut",
    "pulsar_subscription_msg_rate_redeliver": "msgRateRedeliver",
    "pulsar_subscription_msg_ack_rate": "messageAckRate",
    "pulsar_subscription_msg_rate_expired": "msgRateExpired",
    "pulsar_subscription_total_msg_expired": "totalMsgExpired",
    "pulsar_subscription_last_expire_timestamp": "lastExpireTimestamp",
    "pulsar_subscription_last_acked_timestamp": "lastAckedTimestamp",
    "pulsar_subscription_last_consumed_flow_timestamp": "lastConsumedFlowTimestamp",
    "pulsar_subscription_last_consumed_timestamp": "lastConsumedTimestamp",
    "pulsar_subscription_last_mark_delete_advanced_timestamp": "lastMarkDeleteAdvancedTimestamp",
    "pulsar_out_bytes_total": "bytesOutCounter",
    "pulsar_out_messages_total": "msgOutCounter",
}


class Sample(NamedTuple):
    """One value of one metric."""

    metric: str
    labels: dict[str, str]
    value: float


@route("GET", "/metrics", needs=ANYBODY)
def redirect(call: Call) -> Reply:
    """To where the metrics are, as in Pulsar."""
    return Reply(301, headers={"Location": "/metrics/"})


@route("GET", "/metrics/", needs=ANYBODY)
def get_metrics(call: Call) -> Reply:
    """Counters and gauges of this broker, its topics and their subscriptions."""
    return Reply(200, text_format(samples(call)).encode(), TEXT_FORMAT)


def samples(call: Call) -> Iterator[Sample]:
    """Every value."""
    broker = call.broker
    cluster = {"cluster": broker.config.clusterName}
    version = broker.profile.server_version.removeprefix("Pulsar Server")
    yield Sample("pulsar_version_info", {**cluster, "version": version, "commit": ""}, 1)
    connections = {**cluster, "broker": broker.advertised_address, "metric": "broker_connection"}
    yield Sample("pulsar_active_connections", connections, len(broker.sessions))
    writer = StatsWriter(call.rates, broker.web_address, exclude_publishers=True)
    topics_of: dict[str, int] = {}
    totals = dict.fromkeys(("topics", "producers", "subscriptions", "consumers"), 0)
    backlog = size = 0
    for topic in broker.loaded_topics():
        stats = writer.topic(topic)
        namespace = str(topic.name.namespace_name)
        topics_of[namespace] = topics_of.get(namespace, 0) + 1
        counts = {
            "topics": 1,
            "producers": len(topic.producers),
            "subscriptions": len(stats["subscriptions"]),
            "consumers": sum(len(each["consumers"]) for each in stats["subscriptions"].values()),
        }
        totals = {what: totals[what] + count for what, count in counts.items()}
        size += stats["storageSize"]
        backlog += sum(each["msgBacklog"] for each in stats["subscriptions"].values())
        yield from _of_topic({**cluster, "namespace": namespace, "topic": str(topic.name)}, stats, counts)
    for namespace, count in topics_of.items():
        yield Sample("pulsar_topics_count", {**cluster, "namespace": namespace}, count)
    for what, count in totals.items():
        yield Sample(f"pulsar_broker_{what}_count", cluster, count)
    yield Sample("pulsar_broker_msg_backlog", cluster, backlog)
    yield Sample("pulsar_broker_storage_size", cluster, size)


def _of_topic(labels: dict[str, str], stats: dict[str, Any], counts: dict[str, int]) -> Iterator[Sample]:
    for metric, field in OF_TOPIC.items():
        yield Sample(metric, labels, stats[field])
    for what in ("producers", "subscriptions", "consumers"):
        yield Sample(f"pulsar_{what}_count", labels, counts[what])
    backlog = 0
    for name, subscription in stats["subscriptions"].items():
        backlog += subscription["msgBacklog"]
        whose = {**labels, "subscription": name}
        for metric, field in OF_SUBSCRIPTION.items():
            yield Sample(metric, whose, subscription[field])
        yield Sample("pulsar_subscription_consumers_count", whose, len(subscription["consumers"]))
        yield Sample("pulsar_subscription_msg_drop_rate", whose, subscription.get("msgDropRate", 0.0))
    yield Sample("pulsar_msg_backlog", labels, backlog)


def text_format(values: Iterable[Sample]) -> str:
    """The samples of each metric together, under its type; names that users chose are escaped."""
    lines: dict[str, list[str]] = {}
    for metric, labels, value in values:
        inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        lines.setdefault(metric, []).append(f"{metric}{{{inside}}} {float(value):.15g}")
    return "".join(f"# TYPE {metric} gauge\n" + "\n".join(found) + "\n" for metric, found in lines.items())


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
