"""Explain why a producer cannot be created or cannot publish, by the topic's own checks."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from pulsarium.broker.clock import instant_text
from pulsarium.broker.cluster import Cluster
from pulsarium.broker.lab.why.answer import NOT_LOADED, NotThere, Why, WhyError
from pulsarium.broker.model.client import holders
from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.broker.model.refusals import Refusal
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.model.topic.producers import Producer
from pulsarium.broker.session.session import Session
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName

LATEST_REFUSALS = 5


def explain_producer(cluster: Cluster, name: TopicName, producer: str) -> Why:
    """Explain the state of a producer, or of any new producer for "". Raise `WhyError` for a name without producers."""
    if name.is_scalable:
        raise WhyError(f"{name} has its producers on segments; name a segment:// topic")
    partitions = cluster.metadata.partitions_of(name)
    if partitions:
        raise WhyError(f"{name} has {partitions} partitions; name one: {name}-partition-0")
    names = {"topic": str(name)} | ({"producer": producer} if producer else {})
    latest = list(refusals(cluster, ("PRODUCER", "SEND"), **names))
    why = _now(cluster, name, producer)
    return told(Why(why.reason, why.text, {**names, **why.details}), latest)


def refusals(cluster: Cluster, commands: Collection[object], **names: str) -> Iterable[Refusal]:
    """Return the latest refusals of these commands with these names, the newest first."""
    found = (each for each in cluster.refusals.of(**names) if each.about.get("command") in commands)
    return [each for _, each in zip(range(LATEST_REFUSALS), found, strict=False)]


def told(why: Why, latest: Iterable[Refusal]) -> Why:
    """Return the answer with the latest refusals behind it."""
    known = [_json(each) for each in latest]
    if not known:
        return why
    last = known[0]
    whom = last.get("consumer") or last.get("producer") or last["peer"]
    text = f"{why.text}; the last refusal was of {whom} at {last['at']}: {last['error']}, {last['reason']}"
    text += f", limit {last['limit']}" if "limit" in last else ""
    text += f", held by {last['held_by']}" if "held_by" in last else ""
    return Why(why.reason, text, why.details | {"refusals": known})


def _json(refusal: Refusal) -> dict[str, Any]:
    about = {name: value for name, value in refusal.about.items() if value is not None}
    return {"at": instant_text(refusal.ms), "error": refusal.error, "reason": refusal.reason, **about}


def _now(cluster: Cluster, name: TopicName, producer: str) -> Why:
    topic = cluster.topics.loaded.get(str(name))
    if topic is None:
        if cluster.topics.exists(name):
            return Why("topic-not-loaded", f"{NOT_LOADED}; the first producer loads it")
        if str(name.namespace_name) not in cluster.metadata.namespaces:
            raise NotThere(f"there is no namespace {name.namespace_name}")
        if cluster.topics.may_auto_create(name):
            return Why("can-be-created", "there is no such topic; the first producer creates it")
        return Why("topic-not-found", "there is no such topic, and clients may not create it (allowAutoTopicCreation)")
    connected = topic.producers.by_name.get(producer)
    if connected is not None:
        return _of_connected(topic, connected)
    waiting = next((each for each in topic.producers.waiting if each.name == producer), None)
    if waiting is not None:
        held_by = holders(topic.producers.by_name.values())
        place = topic.producers.waiting.index(waiting)
        text = f"{producer} waits for exclusive access, which {held_by or 'nobody'} has; {place} wait before it"
        return Why("waits-for-exclusive", text, {"held_by": held_by, "before": place})
    return _refused(topic, producer) or Why(
        "can-be-created", f"nothing hinders a shared producer{_encrypted(topic)}", {"producers": len(topic.producers)}
    )


def _encrypted(topic: Topic) -> str:
    required = topic.policies.encryption_required or topic.stores.config.encryptionRequireOnProducer
    return " that encrypts its messages, which the topic requires" if required else ""


def _refused(topic: Topic, producer: str) -> Why | None:
    """Return why the topic would refuse a shared producer, by the checks of PRODUCER."""
    if topic.moved_to is not None:
        return Why("migrated", f"the topic has migrated to {topic.moved_to.service_url}, where clients are sent")
    stored = _stored(topic)
    if stored is not None:
        return stored
    try:
        topic.check_producer(producer, encrypted=True)
    except BrokerServiceError as error:
        return _of_error(error)
    obstacle = topic.producers.obstacle(producer)
    return None if obstacle is None else _of_error(obstacle)


def _stored(topic: Topic) -> Why | None:
    """Return why the topic stores no messages now, or None."""
    if not isinstance(topic, PersistentTopic):
        return None
    if topic.ledger.terminated is not None:
        return Why("terminated", f"the topic was terminated at {topic.ledger.terminated}, and accepts no messages")
    if refusal := topic.stores.storage.refusal:
        return Why("storage", f"the broker stores no messages now: {refusal}")
    if topic.ledger.fenced:
        return Why("fenced", "a commit of the topic failed: unload the topic, and look for the reason in the log")
    return None


def _of_error(error: BrokerServiceError) -> Why:
    name = pb.ServerError.Name(error.code)
    facts = {key: value for key, value in error.about.items() if value is not None}
    text = ", ".join([f"a new producer is refused with {name}: {error.text}", *(f"{k} {v}" for k, v in facts.items())])
    return Why("refused", text.replace("held_by", "held by"), {"error": name, **facts})


def _of_connected(topic: Topic, producer: Producer) -> Why:
    """Explain why a connected producer publishes, or why not."""
    client = producer.client
    details: dict[str, Any] = {
        "address": client.address,
        "messagesIn": producer.messages_in,
        "lastSequenceId": producer.last_sequence_id,
    }
    stored = _stored(topic)
    if stored is not None:
        return Why(stored.reason, stored.text, details)
    if isinstance(client, Session) and client.paused:
        return Why("paused", f"the broker reads no more from {client.address}: {_pause(topic, client)}", details)
    text = f"{producer.name} is connected from {client.address}, and has published {producer.messages_in} messages"
    if producer.last_sequence_id >= 0:
        text += f"; deduplication drops those with a sequence id up to {producer.last_sequence_id}"
    return Why("publishes", text + (_encrypted(topic) and "; the topic refuses unencrypted messages"), details)


def _pause(topic: Topic, client: Session) -> str:
    limits = (("topic", topic.publish_limit), ("broker", topic.broker_limits.publish))
    for name, limit in (*limits, ("resource group", topic.group_limits.publish)):
        if limit.holds(client):
            return f"the publish rate of the {name} is used up"
    if client.gate.is_full:
        return f"{client.gate.unanswered} messages wait for their receipts (maxPendingPublishRequestsPerConnection)"
    return "a publish rate of another topic, or maxMessagePublishBufferSizeInMB, is used up"
