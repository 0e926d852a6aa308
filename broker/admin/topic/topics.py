"""/admin/v2/persistent and non-persistent: list, create, delete and unload topics."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.broker.admin.namespace.bundles import named_bundle, names_in
from pulsarium.broker.auth.needs import namespace_operation, topic_operation
from pulsarium.broker.broker import Broker
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError, unexpected_body
from pulsarium.broker.http.registry import of_domain, of_topic, route
from pulsarium.broker.http.reply import Reply, done, json_reply
from pulsarium.broker.model.errors import SourceNotFoundError
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.model.topic.shadow import SHADOW_SOURCE, is_shadow
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.topic_name import TopicName


@route("GET", *of_domain(), needs=namespace_operation("GET_TOPICS"))
def get_topics(call: Call) -> Reply:
    """Return the topics of a namespace, or of ?bundle=; of partitioned topics, the partitions."""
    broker, namespace = call.broker, call.existing_namespace
    persistent = call.domain == "persistent"
    names = broker.topics.names(
        namespace, persistent=persistent, non_persistent=not persistent, system=call.flag("includeSystemTopic")
    )
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
def get_topics_of_bundle(call: Call) -> Reply:
    """Return the non-persistent topics of a bundle, which stands in place of a topic."""
    namespace = call.existing_namespace
    bundle = named_bundle(call, "topic")
    return json_reply([name for name in names_in(call.broker, namespace, bundle) if not name.startswith("persistent")])


@route("PUT", *of_topic(), needs=namespace_operation("CREATE_TOPIC"))
def create_topic(call: Call) -> Reply:
    """Create a topic without partitions."""
    properties = call.json_strings()
    name, broker = call.topic, call.broker
    if name.partition_index >= 0 and not broker.metadata.partitions_of(name.partitioned_name):
        text = (
            f"Can't create topic {name.local_name} with \"-partition-\" followed by numeric value if there isn't a "
            f"partitioned topic {name.partitioned_name.local_name} created."
        )
        raise AdminError(412, text)
    if broker.topics.exists(name) or broker.metadata.partitions_of(name):
        raise AdminError(409, "This topic already exists")
    if name.is_persistent and properties and is_shadow(properties):
        _check_source(broker, properties[SHADOW_SOURCE])
    broker.topics.check_room(name)
    broker.topics.create(name, properties or {})
    return done()


def _check_source(broker: Broker, source: str) -> None:
    """Refuse a shadow topic whose source does not exist."""
    try:
        name = TopicName.parse(source)
    except InvalidTopicName as error:
        raise unexpected_body(str(error), AdminError(412, f"Invalid shadow source: {source}")) from None
    if not (name.is_persistent and broker.topics.exists(name)):
        raise unexpected_body(SourceNotFoundError().text, AdminError(412, f"Shadow source {source} does not exist"))


@route("DELETE", *of_topic(), needs=namespace_operation("DELETE_TOPIC"))
def delete_topic(call: Call) -> Reply:
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
def unload_topic(call: Call) -> Reply:
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
