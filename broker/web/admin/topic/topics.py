"""/admin/v2/persistent and non-persistent: list, create, delete, unload and terminate topics."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.broker.auth.needs import namespace_operation, topic_operation
from pulsarium.broker.cluster import Broker
from pulsarium.broker.jackson.kinds import STRINGS
from pulsarium.broker.model.errors import SourceNotFoundError
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.model.topic.shadow import SHADOW_SOURCE, is_shadow
from pulsarium.broker.web.admin.namespace.bundles import named_bundle, names_in
from pulsarium.broker.web.admin.policies.checks import check_shadows_enabled
from pulsarium.broker.web.admin.topic.partitions import refuse_internal
from pulsarium.broker.web.admin.topic.positions import message_id_json
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError, unexpected_body
from pulsarium.broker.web.http.registry import of_domain, of_topic, route
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.numbers import parse_number
from pulsarium.proto.special_names import has_system_name, is_system_topic
from pulsarium.proto.topic_name import PARTITION, TopicName


@route("GET", *of_domain(), needs=namespace_operation("GET_TOPICS"))
def get_topics(call: Call) -> HttpReply:
    """Return the topics of a namespace, or of ?bundle=; of partitioned topics, the partitions."""
    broker, namespace = call.broker, call.existing_namespace
    persistent = call.domain == "persistent"
    hidden = None if call.flag("includeSystemTopic") else is_system_topic
    names = broker.topics.names(namespace, persistent=persistent, non_persistent=not persistent, hidden=hidden)
    bundle = call.query.get("bundle")
    if bundle:
        inside = set(names_in(broker, namespace, bundle))
        names = [name for name in names if name in inside]
    return json_reply(names)


@route(
    "GET",
    "/admin/v2/non-persistent/{tenant}/{namespace}/{topic}",
    needs=namespace_operation("GET_BUNDLE"),
    anywhere=True,
)
def get_topics_of_bundle(call: Call) -> HttpReply:
    """Return the non-persistent topics of a bundle, which stands in place of a topic."""
    namespace = call.existing_namespace
    bundle = named_bundle(call, "topic")
    return json_reply([name for name in names_in(call.broker, namespace, bundle) if not name.startswith("persistent")])


@route("PUT", *of_topic(), needs=namespace_operation("CREATE_TOPIC"))
def create_topic(call: Call) -> HttpReply:
    """Create a topic without partitions."""
    properties = call.read(STRINGS)
    name, broker = call.topic, call.broker
    refuse_internal(name)
    _check_partition(broker, name)
    if broker.topics.exists(name) or broker.metadata.partitions_of(name):
        raise AdminError(409, "This topic already exists")
    if name.is_persistent and properties and is_shadow(properties):
        check_shadows_enabled(call)
        _check_source(broker, properties[SHADOW_SOURCE])
    broker.topics.check_room(name)
    broker.metadata.check_partition(name)
    broker.topics.create(name, properties or {})
    return done()


def _check_partition(broker: Broker, name: TopicName) -> None:
    """Raise `AdminError` 412 for a number behind `-partition-` that is not one of an existing partitioned topic.

    As in Pulsar, the first `-partition-` counts, and `01`, `+1` and `-1` are numbers too.
    """
    whole, _, text = name.local_name.partition(PARTITION)
    number = parse_number(text)
    if number is None:
        return
    partitions = broker.metadata.partitions_of(name.namespace_name.topic(whole, name.domain))
    if not partitions:
        why = f"numeric value if there isn't a partitioned topic {whole} created."
    elif number >= partitions:
        why = f"a number smaller than number of partition of partitioned topic {whole}"
    else:
        return
    raise AdminError(412, f'Can\'t create topic {name.local_name} with "-partition-" followed by {why}')


def _check_source(broker: Broker, source: str) -> None:
    """Refuse a shadow topic whose source does not exist."""
    try:
        name = TopicName.parse(source)
    except InvalidTopicName as error:
        raise unexpected_body(str(error), AdminError(412, f"Invalid shadow source: {source}")) from None
    if not (name.is_persistent and broker.topics.exists(name)):
        raise unexpected_body(SourceNotFoundError().text, AdminError(412, f"Shadow source {source} does not exist"))


@route("DELETE", *of_topic(), needs=namespace_operation("DELETE_TOPIC"))
def delete_topic(call: Call) -> HttpReply:
    """Delete a topic without clients, or any topic with force=true."""
    name, broker = call.topic_anywhere, call.broker
    if broker.metadata.partitions_of(name):
        text = f"{name} is a partitioned topic, instead of calling delete topic, please call delete-partitioned-topic."
        raise AdminError(409, text)
    if not broker.topics.exists(name) and not name.is_persistent:
        return done()  # a non-persistent topic exists only while it is used
    broker.topics.delete(name, force=call.flag("force"))
    return done()


@route("PUT", *of_topic("/unload"), needs=topic_operation("UNLOAD"))
def unload_topic(call: Call) -> HttpReply:
    """Disconnect the clients of a topic. They look the topic up again."""
    name, broker = call.topic, call.broker
    for part in parts(broker, name) if broker.metadata.partitions_of(name) else [name]:
        broker.topics.unload(part)
    return done()


def parts(broker: Broker, name: TopicName) -> list[TopicName]:
    """Return the existing partitions of a partitioned topic; none for another topic."""
    count = broker.metadata.partitions_of(name)
    return [part for part in map(name.partition, range(count)) if broker.topics.exists(part)]


def find(call: Call) -> Topic:
    """Return the topic of the path, loaded. Raise a 404 when it does not exist."""
    name, broker = call.topic, call.broker
    partitions = broker.metadata.partitions_of(name.partitioned_name) if name.is_partition else 0
    if name.partition_index >= partitions > 0:
        if name.is_persistent:
            raise AdminError(404, "Topic partitions were not yet created")
        raise AdminError(409, f"Illegal topic partition name {name} with max allowed {partitions} partitions")
    return broker.topics.find(name)


def find_persistent(call: Call) -> PersistentTopic:
    """Return the topic of a path that names a persistent one."""
    return call.broker.topics.find_persistent(find(call).name)


def each(call: Call) -> Iterator[Topic]:
    """Yield the topic of the path, or each of its partitions."""
    name, broker = call.topic, call.broker
    if broker.metadata.partitions_of(name):
        yield from map(broker.topics.find, parts(broker, name))
    else:
        yield broker.topics.find(name)


def where_subscribed(call: Call) -> tuple[list[PersistentSubscription], bool]:
    """Return the subscription of the path on the topic or its partitions, and whether no partition lacks it.

    As in Pulsar, a change takes effect on the partitions that have the subscription, even if the answer is 404.
    """
    found = [topic.subscriptions.get(call.encoded_parameter("subscription")) for topic in each(call)]
    return [each for each in found if isinstance(each, PersistentSubscription)], None not in found


def no_subscription(subscription: str, topic: object) -> AdminError:
    """Return a 404 for a missing subscription, in Pulsar's words."""
    return AdminError(404, f"Subscription {subscription} not found for topic {topic}")


ONLY_PERSISTENT = "Need to provide a persistent topic name"
NOT_PARTITIONED = (
    "Termination of a non-partitioned topic is not allowed using partitioned-terminate, please use terminate commands"
)


@route("POST", *of_topic("/terminate"), needs=topic_operation("TERMINATE"))
def terminate_topic(call: Call) -> HttpReply:
    """Terminate a topic, and return the id of its last message."""
    if call.domain != "persistent":
        raise AdminError(406, ONLY_PERSISTENT)
    if has_system_name(call.topic_anywhere):
        raise AdminError(405, "Termination of a system topic is not allowed")
    if call.broker.metadata.partitions_of(call.topic):
        raise AdminError(405, "Termination of a partitioned topic is not allowed")
    return json_reply(_terminate(find_persistent(call)))


@route("POST", *of_topic("/terminate/partitions"), needs=topic_operation("TERMINATE"), anywhere=True)
def terminate_partitions(call: Call) -> HttpReply:
    """Terminate every partition, and return the ids of their last messages."""
    name, topics = call.topic, call.broker.topics
    if not call.broker.metadata.partitions_of(name):
        raise AdminError(405, NOT_PARTITIONED)
    if call.domain != "persistent":
        raise AdminError(500, ONLY_PERSISTENT, AdminError(406, ONLY_PERSISTENT))
    return json_reply(
        {str(part.partition_index): _terminate(topics.find_persistent(part)) for part in parts(call.broker, name)}
    )


def _terminate(topic: PersistentTopic) -> dict[str, int]:
    return message_id_json(topic.terminate(), -1)
