"""/admin/v2/scalable/.../stats: a scalable topic, as its controller sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.config.dynamic import RATES_OF_SEGMENTS
from pulsarium.broker.model.dispatch.entry_buckets import EntryBucketDispatcher
from pulsarium.broker.model.scalable.auto_scale import (
    MAX_BUCKETS,
    MAX_SEGMENTS,
    REASONS,
    UNSPLITTABLE,
    AutoScalePolicy,
    Nothing,
    PolicyError,
    decide,
)
from pulsarium.broker.model.scalable.controller import Controller
from pulsarium.broker.model.scalable.layout import Segment
from pulsarium.broker.model.scalable.registrations import QUEUE, STREAM
from pulsarium.broker.model.subscription.base import Consumer
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.topic.backlog import backlog_size, size_after
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.model.topic.producers import Producer
from pulsarium.broker.web.admin.scalable.routes import TOPIC, controller_of, scalable_route
from pulsarium.broker.web.admin.topic.stats_json import time_text
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.reply import HttpReply, json_reply
from pulsarium.broker.web.rates import NONE, IntervalRate, Rates
from pulsarium.proto.generated import PulsarApi_pb2 as pb

Json = dict[str, Any]
SHOWN_AS_BLOCKED = (MAX_SEGMENTS, MAX_BUCKETS, UNSPLITTABLE)


@scalable_route("GET", f"{TOPIC}/stats", needs=topic_operation("GET_STATS"))
def stats(call: Call) -> HttpReply:
    """Return the segments, subscriptions and consumers of a scalable topic. 5.0.0-M1 shows less."""
    controller = controller_of(call)
    if call.broker.profile.scalable_as_m1:
        return json_reply(_short(controller))
    return json_reply(Stats(controller, call.rates).json())


def _short(controller: Controller) -> Json:
    """Return the stats of 5.0.0-M1. A subscription of a name with a slash is shown without the rest, as there."""
    topic, counts = controller.topic, controller.registrations.counts()
    segments = [topic.layout.segments[each] for each in sorted(topic.layout.segments)]
    total, active = len(segments), sum(each.active for each in segments)
    shown = {name.partition("/")[0]: 0 if "/" in name else counts.get(name, 0) for name in topic.subscriptions}
    return {
        "epoch": topic.layout.epoch,
        "totalSegments": total,
        "activeSegments": active,
        "sealedSegments": total - active,
        "segments": {
            str(each.id): {"name": str(topic.assigned_name(each)), "state": _state(each)} for each in segments
        },
        "subscriptions": {name: {"consumerCount": count} for name, count in shown.items()},
    }


def _state(segment: Segment) -> str:
    return "ACTIVE" if segment.active else "SEALED"


def _rounded(rate: float) -> float:
    return round(rate, 3)


def _base_name(name: str, segment: Segment) -> str:
    """Return the name that a client gave to the producer or consumer of which this one is a part."""
    return name.removesuffix(f"-seg-{segment.id}")


class Stats:
    """The stats of 5.0.1: sums over all segments, and the controller's own view."""

    def __init__(self, controller: Controller, rates: Rates) -> None:
        self._controller = controller
        self._topic = controller.topic
        self._rates = rates
        layout = controller.topic.layout
        self._segments = [layout.segments[each] for each in sorted(layout.segments)]
        found = {each.id: controller.topic.opened_segment(each) for each in self._segments}
        self._topics: Mapping[int, PersistentTopic] = {
            number: each for number, each in found.items() if each is not None
        }

    def json(self) -> Json:
        """Return the stats."""
        topics = self._topics.values()
        rate_in = self._rates.total(producer for topic in topics for producer in topic.producers.by_name.values())
        rate_out = self._rates.total(_consumers(topics))
        return {
            "msgRateIn": _rounded(rate_in.messages),
            "byteRateIn": _rounded(rate_in.bytes),
            "msgRateOut": _rounded(rate_out.messages),
            "byteRateOut": _rounded(rate_out.bytes),
            "averageMsgSize": _rounded(rate_in.average_size),
            "storageSize": sum(topic.ledger.size for topic in topics),
            "backlogSize": sum(backlog_size(topic.log) for topic in topics),
            "layout": self._layout(),
            "producers": self._producers(),
            "subscriptions": {name: self._subscription(name) for name in self._names()},
            "controllerBroker": self._topic.controller.web_address if self._topic.controller is not None else None,
            "autoScale": self._auto_scale(),
        }

    # the layout

    def _layout(self) -> Json:
        layout = self._topic.layout
        return {
            "epoch": layout.epoch,
            "segments": {str(each.id): self._segment(each) for each in self._segments},
            **self._last_operation(),
        }

    def _segment(self, segment: Segment) -> Json:
        topic = self._topics.get(segment.id)
        owner = self._controller.owner_of(segment)
        return {
            "name": str(self._topic.segment_topic(segment)),
            "state": _state(segment),
            **({"parentIds": list(segment.parents)} if segment.parents else {}),
            **({"childIds": list(segment.children)} if segment.children else {}),
            "createdAt": time_text(segment.created_ms),
            **({} if segment.active else {"sealedAt": time_text(segment.sealed_ms)}),
            **self._load(segment),
            "terminated": topic is not None and topic.ledger.terminated is not None,
            "entryBuckets": segment.buckets,
            **({} if owner is None else {"ownerBroker": owner.web_address}),
        }

    def _load(self, segment: Segment) -> Json:
        found = self._controller.load_of(segment)
        if found is None:
            return {}
        load, age_ms = found
        return {"load": {**dict(zip(REASONS, load.rates, strict=True)), "ageSeconds": age_ms / 1000}}

    def _last_operation(self) -> Json:
        known = [each for each in (self._controller.last, self._controller.pruned) if each is not None]
        if not known:
            return {}
        last = max(known, key=lambda each: each.at_ms)
        operation = {
            "operation": last.kind,
            "trigger": last.trigger,
            "segmentIds": list(last.segments),
            "status": "failure" if last.error else "success",
            "at": time_text(last.at_ms),
            **({"error": last.java_text} if last.error else {}),
        }
        return {"lastOperation": operation}

    # producers

    def _producers(self) -> list[Json]:
        parts: dict[str, list[Producer]] = {}
        for segment in self._segments:
            topic = self._topics.get(segment.id)
            for producer in () if topic is None else topic.producers.by_name.values():
                parts.setdefault(_base_name(producer.name, segment), []).append(producer)
        return [self._producer(name, each) for name, each in parts.items()]

    def _producer(self, name: str, parts: list[Producer]) -> Json:
        rate, first = self._rates.total(parts), parts[0]
        return {
            "producerName": name,
            "accessMode": pb.ProducerAccessMode.Name(first.access_mode),
            "msgRateIn": _rounded(rate.messages),
            "byteRateIn": _rounded(rate.bytes),
            "averageMsgSize": _rounded(rate.average_size),
            "address": first.client.address,
            "connectedSince": time_text(first.connected_ms),
            "clientVersion": first.client.client_version,
        }

    # subscriptions

    def _names(self) -> list[str]:
        on_segments = {name for topic in self._topics.values() for name in topic.subscriptions}
        return sorted({*self._topic.made, *self._controller.registrations.counts(), *on_segments})

    def _subscription(self, name: str) -> Json:
        parts = {
            segment: self._topics[segment.id].subscriptions[name]
            for segment in self._segments
            if segment.id in self._topics and name in self._topics[segment.id].subscriptions
        }
        registrations = self._controller.registrations
        kind = self._topic.made.get(name, STREAM if name in registrations.counts() else QUEUE)
        consumers = [consumer for part in parts.values() for consumer in part.consumers]
        rate, blocked = self._rates.total(consumers), registrations.blocked(name) if kind == STREAM else set()
        segments = {
            str(each.id): self._part(parts.get(each), is_blocked=each.id in blocked)
            for each in self._segments
            if each in parts or each.id in blocked
        }
        uncovered = [
            each.id for each in self._segments if each.active and each.id in self._topics and each not in parts
        ]
        return {
            "type": kind,
            "msgBacklog": sum(each["msgBacklog"] for each in segments.values()),
            "backlogSize": sum(each["backlogSize"] for each in segments.values()),
            "unackedMessages": sum(each["unackedMessages"] for each in segments.values()),
            "msgRateOut": _rounded(rate.messages),
            "byteRateOut": _rounded(rate.bytes),
            "msgRateRedeliver": _rounded(self._rates.redeliveries(consumers)),
            "messageAckRate": _rounded(self._rates.acks(consumers)),
            **({} if registrations.is_of_checkpoints(name) else {"uncoveredSegmentIds": uncovered}),
            "segments": segments,
            "consumers": self._consumers(name, parts),
        }

    def _part(self, part: PersistentSubscription | None, *, is_blocked: bool) -> Json:
        """Return the stats of a subscription on a segment. A blocked segment may lack the subscription."""
        consumers = [] if part is None else part.consumers
        rate = self._rates.total(consumers)
        return {
            "msgBacklog": 0 if part is None else part.cursor.backlog(),
            "backlogSize": 0 if part is None else size_after(part.topic.ledger, part.cursor.mark_delete),
            "unackedMessages": sum(each.unacked for each in consumers),
            "msgRateOut": _rounded(rate.messages),
            "byteRateOut": _rounded(rate.bytes),
            "blocked": is_blocked,
            "drainingBuckets": 0 if part is None else draining_buckets(part),
            "consumerCount": len(consumers),
        }

    def _consumers(self, name: str, parts: Mapping[Segment, PersistentSubscription]) -> list[Json]:
        found = {
            consumer: _consumer(consumer, segments, connected=connected)
            for consumer, connected, segments in self._controller.registrations.assigned(name)
        }
        of_name: dict[str, list[Consumer]] = {}
        for segment, part in parts.items():
            for consumer in part.consumers:
                base = _base_name(consumer.name, segment)
                of_name.setdefault(base, []).append(consumer)
                shown = found.setdefault(base, _consumer(base, [], connected=True))
                shown["connected"] = True
                if segment.id not in shown["segmentIds"]:
                    shown["segmentIds"].append(segment.id)
        for base, consumers in of_name.items():
            rate: IntervalRate = sum((self._rates.of(each) for each in consumers), NONE)
            found[base] |= {
                "msgRateOut": _rounded(rate.messages),
                "byteRateOut": _rounded(rate.bytes),
                "unackedMessages": sum(each.unacked for each in consumers),
                "availablePermits": sum(each.permits for each in consumers),
                "address": consumers[0].client.address,
                "connectedSince": time_text(consumers[0].connected_ms),
                "clientVersion": consumers[0].client.client_version,
            }
        return list(found.values())

    # auto scale

    def _auto_scale(self) -> Json:
        controller, times = self._controller, self._controller.times
        shown: Json = {}
        try:
            decision = decide(controller.situation())
            shown["policy"] = policy_json(controller.policy)
        except PolicyError:
            decision = Nothing()
        if isinstance(decision, Nothing) and decision.blocked in SHOWN_AS_BLOCKED:
            shown["blockedReason"] = decision.blocked
        for name, at_ms in (
            ("lastSplitAt", times.split),
            ("lastMergeAt", times.merge),
            ("lastRebucketAt", times.rebucket),
        ):
            if at_ms is not None:
                shown[name] = time_text(at_ms)
        return shown


def _consumer(name: str, segments: list[int], *, connected: bool) -> Json:
    """Return the stats of a consumer that is on no segment."""
    rates = {"msgRateOut": 0.0, "byteRateOut": 0.0, "unackedMessages": 0, "availablePermits": 0}
    return {"consumerName": name, "connected": connected, "segmentIds": segments, **rates}


def draining_buckets(part: PersistentSubscription) -> int:
    """Return how many entry buckets of a segment wait until their former owner has acknowledged its messages."""
    dispatcher = part.dispatcher
    return len(dispatcher.key_owners.draining) if isinstance(dispatcher, EntryBucketDispatcher) else 0


def policy_json(policy: AutoScalePolicy) -> Json:
    """Return an effective policy with the names of an override."""
    return {
        "enabled": policy.enabled,
        "maxSegments": policy.max_segments,
        "minSegments": policy.min_segments,
        "maxDagDepth": policy.max_dag_depth,
        "splitCooldownSeconds": policy.split_cooldown,
        "mergeCooldownSeconds": policy.merge_cooldown,
        "mergeWindowSeconds": policy.merge_window,
        **{f"split{rate}Threshold": value for rate, value in zip(RATES_OF_SEGMENTS, policy.split, strict=True)},
        **{f"merge{rate}Threshold": value for rate, value in zip(RATES_OF_SEGMENTS, policy.merge, strict=True)},
        "rebucketCooldownSeconds": policy.rebucket_cooldown,
        "splitVsRebucketMinMsgRateInThreshold": policy.split_vs_rebucket,
    }


def _consumers(topics: Iterable[Topic]) -> Iterable[Consumer]:
    return (
        each for topic in topics for subscription in topic.subscriptions.values() for each in subscription.consumers
    )
