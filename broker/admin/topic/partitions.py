"""/admin/v2/persistent and non-persistent: partitioned topics."""

from __future__ import annotations

import re
from typing import Any

from pulsarium.broker.auth.needs import namespace_operation, topic_operation, topic_policy
from pulsarium.broker.http.call import Call, parse_json, texts_of, wrong_type
from pulsarium.broker.http.errors import AdminError, unexpected_body
from pulsarium.broker.http.registry import of_domain, of_topic, route
from pulsarium.broker.http.reply import Reply, done, json_reply
from pulsarium.broker.model.errors import NotAllowedError
from pulsarium.proto.topic_name import TopicName

TAKEN = "This topic already exists"
METADATA_TYPE = "application/vnd.partitioned-topic-metadata+json"
NUMBER = re.compile(r"-?[0-9]{1,10}")
JAVA_INT = range(-(2**31), 2**31)


@route("GET", *of_domain("/partitioned"), needs=namespace_operation("GET_TOPICS"))
def get_partitioned_topics(call: Call) -> Reply:
    """Return the partitioned topics of a namespace."""
    return json_reply(sorted(call.broker.metadata.partitioned_of(call.existing_namespace, call.domain)))


@route("GET", *of_topic("/partitions"), needs=topic_operation("LOOKUP"), anywhere=True)
def get_partitions(call: Call) -> Reply:
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
def create_partitioned_topic(call: Call) -> Reply:
    """Create a partitioned topic with its partitions."""
    partitions, properties = _read(call)
    name, broker = call.topic, call.broker
    if not name.is_persistent and broker.metadata.partitions_of(name.partitioned_name):
        raise AdminError(409, TAKEN)  # Pulsar checks this before the name
    _check_name(name)
    limit = broker.config.maxNumPartitionsPerPartitionedTopic
    if partitions <= 0:
        raise AdminError(406, "Number of partitions should be more than 0")
    if 0 < limit < partitions:
        raise AdminError(406, f"Number of partitions should be less than or equal to {limit}")
    try:
        broker.topics.check_room(name, partitions)
    except NotAllowedError as error:
        raise AdminError(412, error.text) from None
    if broker.topics.exists(name) or broker.metadata.partitions_of(name):
        raise AdminError(409, TAKEN)
    broker.topics.create_partitions(name, partitions, properties)
    return done()


@route("POST", *of_topic("/partitions"), needs=topic_policy("PARTITION", write=True), anywhere=True)
def add_partitions(call: Call) -> Reply:
    """Increase the number of partitions of a topic."""
    partitions, _ = _read(call)
    name, broker = call.topic, call.broker
    _check_name(name)
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
def delete_partitioned_topic(call: Call) -> Reply:
    """Delete a partitioned topic with its partitions."""
    _check_name(call.topic_anywhere)
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
    broker.metadata.delete_partitioned(name)
    broker.schemas.delete(name)
    return done()


@route("POST", *of_topic("/createMissedPartitions"), needs=namespace_operation("CREATE_TOPIC"), anywhere=True)
def create_missed_partitions(call: Call) -> Reply:
    """Create the partitions that are missing."""
    name, broker = call.topic, call.broker
    partitions = broker.metadata.partitions_of(name)
    if not partitions:
        raise AdminError(404, f"Topic {name} does not exist")
    if name.is_persistent:  # non-persistent ones exist only while they are used
        for index in range(partitions):
            broker.topics.create(name.partition(index))
    return done()


def _check_name(name: TopicName) -> None:
    if "-partition-" in name.local_name:
        raise AdminError(412, "Partitioned Topic Name should not contain '-partition-'")


def _read(call: Call) -> tuple[int, dict[str, str] | None]:
    """Return partitions and properties of the body.

    The body is a number, as JSON or as text, or an object in its own media type.
    """
    media_type = call.headers.get("content-type", "").partition(";")[0].strip()
    if call.body.lstrip().startswith(b"{") and media_type != METADATA_TYPE:
        raise wrong_type("int", {})
    value = parse_json(call.body) if call.body else None
    properties = None
    if media_type == METADATA_TYPE and isinstance(value, dict):
        properties = texts_of(value.get("properties"))
        value = value.get("partitions", 0)
    if value is None:
        raise unexpected_body('Cannot read field "partitions" because "metadata" is null')
    if isinstance(value, str) and NUMBER.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value not in JAVA_INT:
        raise wrong_type("int", value)
    return value, properties
