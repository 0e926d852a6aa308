"""/admin/v2/persistent and non-persistent: partitioned topics."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.auth.needs import namespace_operation, topic_operation, topic_policy
from pulsarium.broker.cluster import Broker
from pulsarium.broker.jackson.kinds import INT, STRINGS, JavaType, record
from pulsarium.broker.model.errors import NotAllowedError
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError, unexpected_body
from pulsarium.broker.web.http.registry import of_domain, of_topic, route
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply
from pulsarium.proto.special_names import is_system_topic, is_transaction_internal
from pulsarium.proto.topic_name import PARTITION, TopicName

TAKEN = "This topic already exists"
KEYWORD = "Partitioned Topic Name should not contain '-partition-'"
METADATA_TYPE = "application/vnd.partitioned-topic-metadata+json"
_FIELDS = record(
    "org.apache.pulsar.common.partition.PartitionedTopicMetadata", {"partitions": INT, "properties": STRINGS}
)


def _metadata(value: Any) -> dict[str, Any]:
    """Return partitions and properties. As in Pulsar, a number stands for partitions without properties."""
    found: dict[str, Any] = _FIELDS.of({"partitions": value} if isinstance(value, (int, str)) else value)
    return found


METADATA = JavaType(_FIELDS.java_type, _metadata)


@route("GET", *of_domain("/partitioned"), needs=namespace_operation("GET_TOPICS"))
def get_partitioned_topics(call: Call) -> HttpReply:
    """Return the partitioned topics of a namespace; with includeSystemTopic, system topics too."""
    names = call.broker.metadata.partitioned_of(call.existing_namespace, call.domain)
    if not call.flag("includeSystemTopic"):
        names = [name for name in names if not is_system_topic(TopicName.parse(name))]
    return json_reply(sorted(names))


@route("GET", *of_topic("/partitions"), needs=topic_operation("LOOKUP"), anywhere=True)
def get_partitions(call: Call) -> HttpReply:
    """Return the number of partitions of a topic: 0 for one that is not partitioned."""
    name, broker = call.topic, call.broker
    info = broker.metadata.partitioned.get(str(name))
    if info is not None:
        return json_reply(shown(info))
    if broker.topics.exists(name) or (call.flag("checkAllowAutoCreation") and broker.topics.may_auto_create(name)):
        return json_reply(shown({"partitions": broker.topics.partitions_for_client(name, create=True) or 0}))
    raise AdminError(404, f"Topic {name} not found")


def shown(info: dict[str, Any]) -> dict[str, Any]:
    """Return a partitioned topic's metadata as JSON.

    The JSON has properties once any were set, even if they were removed.
    """
    properties = info.get("properties")
    fields = {"partitions": info["partitions"], "deleted": False}
    return fields if properties is None else {**fields, "properties": properties}


@route("PUT", *of_topic("/partitions"), needs=topic_policy("PARTITION", write=True), anywhere=True)
def create_partitioned_topic(call: Call) -> HttpReply:
    """Create a partitioned topic with its partitions."""
    partitions, properties = _read(call)
    name, broker = call.topic, call.broker
    if name.is_persistent:
        _check_no_keyword(call)
        refuse_internal(name)
    limit = broker.config.maxNumPartitionsPerPartitionedTopic
    if partitions <= 0:
        raise AdminError(406, "Number of partitions should be more than 0")
    if 0 < limit < partitions:
        raise AdminError(406, f"Number of partitions should be less than or equal to {limit}")
    try:
        broker.topics.check_room(name, partitions)
    except NotAllowedError as error:
        raise AdminError(412, error.text) from None
    if broker.topics.exists(name) or broker.metadata.partitions_of(name) or _is_partition_of_another(broker, name):
        raise AdminError(409, TAKEN)
    broker.topics.create_partitions(name, partitions, properties)
    return done()


@route("POST", *of_topic("/partitions"), needs=topic_policy("PARTITION", write=True), anywhere=True)
def add_partitions(call: Call) -> HttpReply:
    """Increase the number of partitions of a topic."""
    partitions, _ = _read(call)
    name, broker = call.topic, call.broker
    _check_not_partition(name)
    info = broker.metadata.partitioned.get(str(name))
    if info is None:
        raise AdminError(409, f"Topic {name} is not the partitioned topic.")
    current = info["partitions"]
    if partitions < current:
        raise AdminError(422, f"Desired partitions {partitions} can't be less than the current partitions {current}.")
    limit = broker.config.maxNumPartitionsPerPartitionedTopic
    if 0 < limit < partitions:
        raise AdminError(422, f"Desired partitions {partitions} can't be greater than the maximum partitions {limit}.")
    broker.topics.create_partitions(name, partitions, info.get("properties"))
    return done()


@route("DELETE", *of_topic("/partitions"), needs=namespace_operation("DELETE_TOPIC"))
def delete_partitioned_topic(call: Call) -> HttpReply:
    """Delete a partitioned topic with its partitions."""
    _check_not_partition(call.topic_anywhere)
    name, broker = call.topic, call.broker
    partitions = broker.metadata.partitions_of(name)
    if not partitions:
        if broker.topics.exists(name):
            text = f"{name} is a non-partitioned topic. Instead of calling delete-partitioned-topic please call delete."
            raise AdminError(409, text)
        raise AdminError(404, f"Topic {name} not found.")
    present = [name.partition(index) for index in range(partitions) if broker.topics.exists(name.partition(index))]
    if not call.flag("force"):
        for partition in present:
            broker.topics.check_unused(partition)
    for partition in present:
        broker.topics.delete(partition, force=True)
    broker.topics.delete_partitioned(name)
    return done()


@route("POST", *of_topic("/createMissedPartitions"), needs=namespace_operation("CREATE_TOPIC"), anywhere=True)
def create_missed_partitions(call: Call) -> HttpReply:
    """Create the partitions that are missing."""
    _check_no_keyword(call)
    name, broker = call.topic, call.broker
    partitions = broker.metadata.partitions_of(name)
    if not partitions:
        raise AdminError(404, f"Topic {name} does not exist")
    if name.is_persistent:  # non-persistent ones exist only while they are used
        for index in range(partitions):
            broker.topics.create(name.partition(index))
    return done()


def refuse_internal(name: TopicName) -> None:
    """Raise `AdminError` 400 for a topic that only the broker's transactions may have."""
    if is_transaction_internal(name):
        raise AdminError(400, "Cannot create topic in system topic format!")


def _is_partition_of_another(broker: Broker, name: TopicName) -> bool:
    """Return whether the topic is a partition of a partitioned topic, which need not be in use."""
    return name.is_partition and name.partition_index < broker.metadata.partitions_of(name.partitioned_name)


def _check_not_partition(name: TopicName) -> None:
    """Raise `AdminError` 412 for a partition."""
    if name.is_partition:
        raise AdminError(412, KEYWORD)


def _check_no_keyword(call: Call) -> None:
    """Raise `AdminError` 412 for `-partition-` anywhere in the path's name, which is encoded still."""
    if PARTITION in call.parameters["topic"]:
        raise AdminError(412, KEYWORD)


def _read(call: Call) -> tuple[int, dict[str, str] | None]:
    """Return partitions and properties of the body: a number, or an object in a media type of its own."""
    media_type = call.headers.get("content-type", "").partition(";")[0].strip()
    if media_type not in ("", METADATA_TYPE):
        return call.read(INT, of_any_media_type=True), None
    found = call.read(METADATA)
    if found is None:
        raise unexpected_body('Cannot read field "partitions" because "metadata" is null')
    return found["partitions"], found.get("properties")
