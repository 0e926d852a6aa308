"""/admin/v2/persistent: topics that take no more messages."""

from __future__ import annotations

from pulsarium.broker.admin.topic.positions import message_id_json
from pulsarium.broker.admin.topic.topics import find_persistent, parts
from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.registry import of_topic, route
from pulsarium.broker.http.reply import Reply, json_reply
from pulsarium.broker.model.topic.persistent import PersistentTopic

ONLY_PERSISTENT = "Need to provide a persistent topic name"
NOT_PARTITIONED = (
    "Termination of a non-partitioned topic is not allowed using partitioned-terminate, please use terminate commands"
)


@route("POST", *of_topic("/terminate"), needs=topic_operation("TERMINATE"))
def terminate_topic(call: Call) -> Reply:
    """Let nobody publish any more; the last message's id."""
    if call.domain != "persistent":
        raise AdminError(406, ONLY_PERSISTENT)
    if call.broker.metadata.partitions_of(call.topic):
        raise AdminError(405, "Termination of a partitioned topic is not allowed")
    return json_reply(_terminate(find_persistent(call)))


@route("POST", *of_topic("/terminate/partitions"), needs=topic_operation("TERMINATE"), anywhere=True)
def terminate_partitions(call: Call) -> Reply:
    """The same for every partition."""
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
