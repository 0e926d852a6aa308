"""/metrics: metrics of topics and subscriptions in Prometheus' text format, under Pulsar's names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pulsarium.broker.auth.needs import ANYBODY
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.net.slices import Slice
from pulsarium.broker.web.admin.topic.stats_json import OLDEST_AGE, RETRYING, UNKNOWN_AGE, StatsWriter
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply

PIECE = 64 << 10  # bytes
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
    "pulsar_storage_backlog_age_seconds": OLDEST_AGE,
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
RETRYING_OF_SUBSCRIPTION = (  # PIP-493
    "pulsar_subscription_retrying_hashes_count",
    "pulsar_subscription_retrying_positions_count",
)
AGE_OF_SUBSCRIPTION = "pulsar_subscription_storage_backlog_age_seconds"  # PIP-488


Sample = tuple[str, str, float]  # the metric, its labels as written, its value


@route("GET", "/metrics", needs=ANYBODY)
def redirect(call: Call) -> HttpReply:
    """Redirect to /metrics/, as Pulsar does."""
    return HttpReply(301, headers={"Location": "/metrics/"})


@route("GET", "/metrics/", needs=ANYBODY)
async def get_metrics(call: Call) -> HttpReply:
    """Return counters and gauges of this broker, its topics and their subscriptions."""
    broker = call.broker
    cluster = {"cluster": broker.config.clusterName}
    version = broker.profile.server_version.removeprefix("Pulsar Server")
    connections = {**cluster, "broker": broker.advertised_address, "metric": "broker_connection"}
    text, slice_, totals = TextFormat(), Slice(), Totals()
    text.add("pulsar_version_info", written({**cluster, "version": version, "commit": ""}), 1)
    text.add("pulsar_active_connections", written(connections), len(broker.sessions))
    stalls = broker.turn.stalls
    text.add("pulsarium_event_loop_stalls_total", written(cluster), stalls.count)
    text.add("pulsarium_event_loop_stalled_seconds_total", written(cluster), stalls.seconds)
    authentication = broker.cluster.authentication
    if authentication is not None and authentication.tokens is not None:
        for metric, own, value in authentication.tokens.samples():
            text.add(metric, written({**cluster, **own}), value)
    writer = StatsWriter(call.rates, broker.web_address, exclude_publishers=True)
    for topic in broker.loaded_topics():
        labels = written({**cluster, "namespace": str(topic.name.namespace_name), "topic": str(topic.name)})
        subscriptions = SubscriptionSampleWriter(text, labels)
        stats = await writer.topic(topic, subscriptions)
        text.add_all(_of_topic(labels, topic, stats, subscriptions, totals))
        await slice_.pause()
    text.add_all(_of_broker(cluster, totals))
    return HttpReply(200, content_type=TEXT_FORMAT, pieces=text.pieces())


class Totals:
    """Sums over the topics of a broker."""

    def __init__(self) -> None:
        self.topics_of: dict[str, int] = {}  # by namespace
        self.counts = dict.fromkeys(("topics", "producers", "subscriptions", "consumers"), 0)
        self.backlog = self.size = 0


class SubscriptionSampleWriter:
    """Write the samples of a topic's subscriptions from their stats, and add them up."""

    def __init__(self, text: TextFormat, labels: str) -> None:
        self.count = self.consumers = self.backlog = 0
        self._text = text
        self._labels = labels

    def __setitem__(self, name: str, stats: dict[str, Any]) -> None:
        labels = f"{self._labels},{written({'subscription': name})}"
        consumers = len(stats["consumers"])
        for metric, field in OF_SUBSCRIPTION.items():
            self._text.add(metric, labels, stats[field])
        for metric, field in zip(RETRYING_OF_SUBSCRIPTION, RETRYING, strict=True):
            if field in stats:
                self._text.add(metric, labels, stats[field])
        age = stats.get(OLDEST_AGE, UNKNOWN_AGE)
        if age != UNKNOWN_AGE:
            self._text.add(AGE_OF_SUBSCRIPTION, labels, age)
        self._text.add("pulsar_subscription_consumers_count", labels, consumers)
        self._text.add("pulsar_subscription_msg_drop_rate", labels, stats.get("msgDropRate", 0.0))
        self.count += 1
        self.consumers += consumers
        self.backlog += stats["msgBacklog"]


def _of_topic(
    labels: str, topic: Topic, stats: dict[str, Any], subscriptions: SubscriptionSampleWriter, totals: Totals
) -> Iterator[Sample]:
    namespace = str(topic.name.namespace_name)
    counts = {
        "topics": 1,
        "producers": len(topic.producers),
        "subscriptions": subscriptions.count,
        "consumers": subscriptions.consumers,
    }
    totals.topics_of[namespace] = totals.topics_of.get(namespace, 0) + 1
    totals.counts = {what: totals.counts[what] + count for what, count in counts.items()}
    totals.size += stats["storageSize"]
    totals.backlog += subscriptions.backlog
    for metric, field in OF_TOPIC.items():
        yield metric, labels, stats[field]
    for what in ("producers", "subscriptions", "consumers"):
        yield f"pulsar_{what}_count", labels, counts[what]
    yield "pulsar_msg_backlog", labels, subscriptions.backlog


def _of_broker(cluster: dict[str, str], totals: Totals) -> Iterator[Sample]:
    labels = written(cluster)
    for namespace, count in totals.topics_of.items():
        yield "pulsar_topics_count", written({**cluster, "namespace": namespace}), count
    for what, count in totals.counts.items():
        yield f"pulsar_broker_{what}_count", labels, count
    yield "pulsar_broker_msg_backlog", labels, totals.backlog
    yield "pulsar_broker_storage_size", labels, totals.size


class TextFormat:
    """Samples in Prometheus' text format, grouped by metric."""

    def __init__(self) -> None:
        self._of: dict[str, list[bytearray]] = {}  # the lines of each metric, in pieces

    def add(self, metric: str, labels: str, value: float) -> None:
        """Add one sample."""
        pieces = self._of.get(metric)
        if pieces is None:
            pieces = self._of[metric] = [bytearray(f"# TYPE {metric} gauge\n".encode())]
        elif len(pieces[-1]) > PIECE:  # growing a large piece takes long
            pieces.append(bytearray())
        lines = pieces[-1]
        lines += f"{metric}{{{labels}}} {float(value):.15g}\n".encode()

    def add_all(self, samples: Iterable[Sample]) -> None:
        """Add samples in their order."""
        for sample in samples:
            self.add(*sample)

    def pieces(self) -> Iterator[bytearray]:
        """Yield the samples of each metric, and free them."""
        while self._of:
            yield from self._of.pop(next(iter(self._of)))


def written(labels: dict[str, str]) -> str:
    """Return labels as they stand in a line, with values escaped."""
    return ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
