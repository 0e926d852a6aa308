"""/admin/v2: compaction and offload of topics. Offload fails, as on a broker without an offloader."""

from __future__ import annotations

from pulsarium.broker.auth.needs import namespace_policy, topic_operation
from pulsarium.broker.model.errors import NotAllowedError
from pulsarium.broker.web.admin.policies.namespaces import NAMESPACE
from pulsarium.broker.web.admin.topic.backlog import persistent_only
from pulsarium.broker.web.admin.topic.positions import read_message_id
from pulsarium.broker.web.admin.topic.topics import each, find
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError, request_failed
from pulsarium.broker.web.http.registry import of_topic, route
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply


@route("PUT", *of_topic("/compaction"), needs=topic_operation("COMPACT"))
def compact_topic(call: Call) -> HttpReply:
    """Start compaction of a topic, or of each partition."""
    running: list[NotAllowedError] = []
    for topic in list(each(call)):
        try:
            persistent_only(topic).compaction.trigger()
        except NotAllowedError as error:  # the other partitions are compacted nevertheless
            running.append(error)
    if running:
        raise running[0]
    return done()


@route("GET", *of_topic("/compaction"), needs=topic_operation("COMPACT"))
def get_compaction(call: Call) -> HttpReply:
    """Return the status of the last compaction."""
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
def get_offload_status(call: Call) -> HttpReply:
    """Return the status of the offload, which fails whenever it is requested."""
    topic = persistent_only(find(call))
    return json_reply(NOT_RUN | FAILED if topic.offload_failed else NOT_RUN)


@route("PUT", *of_topic("/offload"), needs=NEEDS)
def offload(call: Call) -> HttpReply:
    """Accept a request to offload older ledgers, which fails."""
    if read_message_id(call) is None:
        raise AdminError(400, "messageId is null")
    persistent_only(find(call)).offload_failed = True
    return done()


@route("GET", f"{NAMESPACE}/scanOffloadedLedgers", needs=namespace_policy("OFFLOAD", write=False))
def scan_offloaded_ledgers(call: Call) -> HttpReply:
    """Fail as Pulsar does without an offloader."""
    raise request_failed()
