"""/admin/v2: old ledgers to tiered storage. There is none here: it answers as a broker without an offloader does."""

from __future__ import annotations

from pulsarium.broker.admin.policies.namespaces import NAMESPACE
from pulsarium.broker.admin.policies.values import request_failed
from pulsarium.broker.admin.topic.backlog import persistent_only
from pulsarium.broker.admin.topic.positions import read_message_id
from pulsarium.broker.admin.topic.topics import find
from pulsarium.broker.auth.needs import namespace_policy, topic_operation
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.registry import of_topic, route
from pulsarium.broker.http.reply import Reply, done, json_reply

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
