"""/admin/v2/persistent and non-persistent: moving subscriptions, and letting go of messages."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.broker.admin.topic.positions import NUMBER, read_place
from pulsarium.broker.admin.topic.topics import each, find
from pulsarium.broker.auth.needs import TENANT_ADMIN, topic_operation
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError, ContainerError, unexpected_body
from pulsarium.broker.http.registry import SUBSCRIPTION, of_topic, route
from pulsarium.broker.http.reply import NAMES, Reply, done, nothing
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.subscription.skip import skip, skip_all
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.model.topic.upkeep import expire_older_than, expire_through

ONLY_PERSISTENT_IS_TRIMMED = "Trim on a non-persistent topic is not allowed"
NOT_TRUNCATED = "unsupport truncate"
JAVA_CLASS = "org.apache.pulsar.broker.service.{0}.{1}"


@route("POST", *of_topic(SUBSCRIPTION + "/skip/{count}"), needs=topic_operation("SKIP"))
def skip_messages(call: Call) -> Reply:
    """Acknowledge the next entries, for everybody."""
    count = number_of(call, "count", bits=32)
    refuse_parent(call, "Skip messages on a partitioned topic is not allowed")
    skip(subscription_of(call, find(call)), count)
    return done()


@route("POST", *of_topic(SUBSCRIPTION + "/skip_all"), needs=topic_operation("SKIP"))
def skip_all_messages(call: Call) -> Reply:
    """Acknowledge everything that there is, on each partition."""
    for subscription in [subscription_of(call, topic, named=str(call.topic)) for topic in each(call)]:
        skip_all(subscription)
    return done()


@route("POST", *of_topic(SUBSCRIPTION + "/resetcursor/{timestamp}"), needs=topic_operation("RESET_CURSOR"))
def reset_cursor(call: Call) -> Reply:
    """Move to the first message of that time or later, in ms since the epoch, on each partition."""
    timestamp = number_of(call, "timestamp", bits=64)
    name = call.encoded_parameter("subscription")
    for topic in each(call):
        found = topic.subscriptions.get(name)
        if found is None:
            raise no_subscription(name, str(topic.name))
        if isinstance(found, PersistentSubscription):
            _reset(found, found.topic.position_at(timestamp), [])
    return done()


@route("POST", *of_topic(SUBSCRIPTION + "/resetcursor"), needs=topic_operation("RESET_CURSOR"))
def reset_cursor_to_position(call: Call) -> Reply:
    """Move to a message; the next one comes first when it is excluded."""
    place = read_place(call)
    refuse_parent(call, "Reset-cursor at position is not allowed for partitioned-topic")
    subscription = subscription_of(call, find(call))
    _reset(subscription, *place.in_ledger(subscription.topic.ledger))
    return done()


def _reset(subscription: PersistentSubscription, target: Position, ack_set: list[int]) -> None:
    if subscription.resetting:
        raise AdminError(412, "Failed for Subscription Busy: Failed to fence subscription")
    in_batches = subscription.topic.stores.config.acknowledgmentAtBatchIndexLevelEnabled
    subscription.reset_now(lambda: subscription.cursor.reset(target, ack_set if in_batches else []))


@route("POST", *of_topic(SUBSCRIPTION + "/expireMessages/{seconds}"), needs=topic_operation("EXPIRE_MESSAGES"))
def expire_messages(call: Call) -> Reply:
    """Acknowledge what is older than that, on each partition; 409 where that was not tried."""
    seconds = number_of(call, "seconds", bits=32)
    topics = _persistent_of(call, "Expire messages on a non-persistent topic is not allowed")
    name = call.encoded_parameter("subscription")
    for topic in topics:
        if name not in topic.subscriptions:
            raise no_subscription(name, str(call.topic))
    _expire([topic.subscriptions[name] for topic in topics], seconds)
    return done()


@route("POST", *of_topic("/all_subscription/expireMessages/{seconds}"), needs=topic_operation("EXPIRE_MESSAGES"))
def expire_messages_of_all(call: Call) -> Reply:
    """The same for every subscription."""
    seconds = number_of(call, "seconds", bits=32)
    topics = _persistent_of(call, "Expire messages for all subscriptions on a non-persistent topic is not allowed")
    _expire([topic.subscriptions[name] for topic in topics for name in sorted(topic.subscriptions)], seconds)
    return done()


def _expire(subscriptions: list[PersistentSubscription], seconds: int) -> None:
    """All are tried; the first that was not is what the caller hears of."""
    left = [subscription for subscription in subscriptions if not expire_older_than(subscription, seconds)]
    if left:
        raise AdminError(
            409,
            f"Expire message by timestamp not issued on topic {left[0].topic.name} for subscription {left[0].name} due "
            "to ongoing message expiration not finished or subscription almost catch  up. If it's performed on a "
            "partitioned topic operation might succeeded on other partitions, please check stats of individual "
            "partition.",
        )


@route("POST", *of_topic(SUBSCRIPTION + "/expireMessages"), needs=topic_operation("EXPIRE_MESSAGES"))
def expire_messages_to_position(call: Call) -> Reply:
    """Acknowledge everything up to a message."""
    place = read_place(call)
    if place.partition != call.topic.partition_index:
        text = "Invalid parameter for expire message by position, partition index of passed in message position "
        raise AdminError(412, text + "doesn't match partition index for the topic")
    refuse_parent(call, "Expire message at position is not supported for partitioned-topic")
    subscription = subscription_of(call, find(call))
    if not expire_through(subscription, *place.in_ledger(subscription.topic.ledger)):
        raise AdminError(
            409,
            f"Expire message by position not issued on topic {call.topic} for subscription {subscription.name} due to "
            "ongoing message expiration not finished or invalid message position provided.",
        )
    return done()


@route("POST", *of_topic("/trim"), needs=topic_operation("TRIM_TOPIC"))
def trim_topic(call: Call) -> Reply:
    """Let go now of what is consumed and not retained."""
    if call.domain != "persistent":
        raise AdminError(405, ONLY_PERSISTENT_IS_TRIMMED)
    for topic in _persistent(each(call), ONLY_PERSISTENT_IS_TRIMMED):
        topic.trimmer.trim()
    return nothing()


@route("DELETE", *of_topic("/truncate"), needs=TENANT_ADMIN)
def truncate_topic(call: Call) -> Reply:
    """Skip everything for every subscription, and delete what was written before."""
    if call.domain != "persistent":
        raise AdminError(412, NOT_TRUNCATED)
    for topic in _persistent(each(call), NOT_TRUNCATED):
        topic.trimmer.truncate()
    return done()


# reading a call


def number_of(call: Call, name: str, *, bits: int) -> int:
    """A number in the path."""
    return number_in(call.parameter(name), bits=bits)


def number_in(text: str, *, bits: int) -> int:
    """A number of a path or query; nothing is there for anything else."""
    if NUMBER.fullmatch(text) and -(2 ** (bits - 1)) <= int(text) < 2 ** (bits - 1):
        return int(text)
    raise ContainerError(404, NAMES[404])


def refuse_parent(call: Call, text: str) -> None:
    """405 for a partitioned topic as a whole."""
    if call.broker.metadata.partitions_of(call.topic):
        raise AdminError(405, text)


def _persistent_of(call: Call, text: str) -> list[PersistentTopic]:
    if call.domain != "persistent" and call.broker.metadata.partitions_of(call.topic):
        raise AdminError(405, text)
    return list(_persistent(each(call), text))


def _persistent(topics: Iterator[Topic], text: str) -> Iterator[PersistentTopic]:
    for topic in topics:
        if not isinstance(topic, PersistentTopic):
            raise AdminError(405, text)
        yield topic


def persistent_only(topic: Topic) -> PersistentTopic:
    """The topic, where Pulsar does not think of another kind."""
    if not isinstance(topic, PersistentTopic):
        found = JAVA_CLASS.format("nonpersistent", "NonPersistentTopic")
        wanted = JAVA_CLASS.format("persistent", "PersistentTopic")
        otherwise = AdminError(405, "Not allowed on a non-persistent topic")
        raise unexpected_body(f"class {found} cannot be cast to class {wanted}", otherwise)
    return topic


def subscription_of(call: Call, topic: Topic, named: str = "") -> PersistentSubscription:
    """The subscription of the path on one topic; `named` is the topic that a refusal speaks of."""
    topic = persistent_only(topic)
    name = call.encoded_parameter("subscription")
    if name not in topic.subscriptions:
        raise no_subscription(name, named or str(topic.name))
    return topic.subscriptions[name]


def no_subscription(subscription: str, topic: str) -> AdminError:
    """404, in the words that Pulsar has for it."""
    return AdminError(404, f"Subscription {subscription} not found for topic {topic}")
