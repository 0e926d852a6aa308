"""/admin/v2: compaction, offload (a broker without an offloader answers so) and termination of topics."""

from __future__ import annotations

from pulsarium.broker.admin.policies.namespaces import NAMESPACE
from pulsarium.broker.admin.topic.backlog import persistent_only
from pulsarium.broker.admin.topic.positions import message_id_json, read_message_id
from pulsarium.broker.admin.topic.topics import each, find, find_persistent, parts
from pulsarium.broker.auth.needs import namespace_policy, topic_operation
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.registry import of_topic, route
from pulsarium.broker.http.reply import Reply, done, json_reply
from pulsarium.broker.http.values import request_failed
from pulsarium.broker.model.errors import NotAllowedError
from pulsarium.broker.model.topic.persistent import PersistentTopic


@route("PUT", *of_topic("/compaction"), needs=topic_operation("COMPACT"))
def compact_topic(call: Call) -> Reply:
    """Keep only the latest message of each key, for readers that ask for it; of each partition."""
    running: list[NotAllowedError] = []
    for topic in list(each(call)):
        try:
            persistent_only(topic).compaction.trigger()
        except NotAllowedError as error:  # the other partitions are compacted all the same
            running.append(error)
    if running:
        raise running[0]
    return done()


@route("GET", *of_topic("/compaction"), needs=topic_operation("COMPACT"))
def get_compaction(call: Call) -> Reply:
    """How the last compaction ended, or that it runs."""
    compaction = persistent_only(find(call)).compaction
    return json_reply({"status": compaction.status, "lastError": compaction.error})


NEEDS = topic_operation("OFFLOAD")
NOT_RUN = {
    "status": "NOT_RUN",
    "lastError": "",
    "firstUnoffloadedMessage": {"ledgerId": -1, "entryId": -1, "partitionIndex": -1, "batchIndex": -1, "batchSize": 0},
}
FAILED = {
    "status": "ERROR",
    "lastError": "org.apache.bookkeeper.mledger.ManagedLedgerException: [NullLedgerOffloader] does not support offload",
}


@route("GET", *of_topic("/offload"), needs=NEEDS)
def get_offload_status(call: Call) -> Reply:
    """How far it is: it failed, if ever somebody asked for it."""
    topic = persistent_only(find(call))
    return json_reply(NOT_RUN | FAILED if topic.offload_failed else NOT_RUN)


@route("PUT", *of_topic("/offload"), needs=NEEDS)
def offload(call: Call) -> Reply:
    """Move what is older than a message, which fails."""
    if read_message_id(call) is None:
        raise AdminError(400, "messageId is null")
    persistent_only(find(call)).offload_failed = True
    return done()


@route("GET", f"{NAMESPACE}/scanOffloadedLedgers", needs=namespace_policy("OFFLOAD", write=False))
def scan_offloaded_ledgers(call: Call) -> Reply:
    """What is there: Pulsar fails without an offloader."""
    raise request_failed()


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
