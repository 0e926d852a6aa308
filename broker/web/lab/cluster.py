"""/lab/reset, snapshot, restore and seed, whose files are the bodies; /lab/process and /lab/why.

/lab/namespaces has namespaces for the length of a test. No request names a path of the broker's machine.
"""

from __future__ import annotations

import gc
import os
import threading
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from pulsarium.broker.lab.namespaces import create_namespace
from pulsarium.broker.lab.why import NotThere, WhyError
from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply
from pulsarium.broker.web.lab.find import lab_of

BINARY = "application/octet-stream"
NAMESPACES = "/lab/namespaces"
MOST = 4 << 30  # bytes of a snapshot
MOST_OF_SEED = 16 << 20  # bytes of a seed, which takes many times as much memory


@route("POST", "/lab/reset")
async def reset(call: Call) -> HttpReply:
    """Delete everything, as if the broker had just started. `lab=false` keeps faults, masks and the clock."""
    try:
        await lab_of(call).state.reset(lab=call.flag("lab", True))
    except StorageError as error:
        raise AdminError(507, f"nothing was reset: {error}") from None
    return done()


@route("POST", "/lab/snapshot")
async def snapshot(call: Call) -> HttpReply:
    """Return a snapshot of the whole state."""
    try:
        path = Path(call.until_sent.enter_context(TemporaryDirectory(prefix="pulsarium-"))) / "snapshot"
        await lab_of(call).state.snapshot(path)
    except (StorageError, OSError) as error:
        raise AdminError(507, f"the snapshot could not be made: {error}") from None
    return HttpReply(200, content_type=BINARY, file=path)


@route("POST", "/lab/restore", largest_body=MOST, spooled=True)
async def restore(call: Call) -> HttpReply:
    """Replace the whole state by the snapshot in the body."""
    path = call.body_file
    assert path is not None
    try:
        await lab_of(call).state.restore(path)
    except (StorageError, OSError) as error:
        text = str(error).replace(str(path), "the body")
        raise AdminError(400, text) from None
    return done()


@route("POST", "/lab/seed", largest_body=MOST_OF_SEED)
async def seed(call: Call) -> HttpReply:
    """Create what the body describes in TOML or JSON, and return how much was new."""
    from pulsarium.broker.lab.state import SeedError  # imported late: most brokers never need this

    try:
        text = call.body.decode()
    except UnicodeDecodeError as error:
        raise AdminError(400, f"a seed is a text in UTF-8: {error}") from None
    try:
        return json_reply(await lab_of(call).state.seed_text(text))
    except SeedError as error:
        raise AdminError(400, str(error)) from None


@route("GET", "/lab/process")
def get_process(call: Call) -> HttpReply:
    """Name the process and its data folder. Count tasks, threads and sessions.

    `census=true` also counts the objects of each type, which takes a while.
    """
    directory = call.broker.cluster.directory
    found: dict[str, object] = {
        "pid": os.getpid(),
        "upSinceMs": call.broker.up_since_ms,
        "data": None if directory is None else str(directory.absolute()),
        "tasks": trio.lowlevel.current_statistics().tasks_living,
        "threads": threading.active_count(),
        "sessions": sum(len(broker.sessions) for broker in call.broker.cluster.brokers),
    }
    if call.flag("census", False):
        gc.collect()
        types = Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
        found["objects"] = dict(types.most_common())
    return json_reply(found)


@route("GET", "/lab/why")
def get_why(call: Call) -> HttpReply:
    """Explain ?topic=&subscription=&messageId=LEDGER:ENTRY[:BATCH], or ?topic=&producer=NAME.

    Without messageId, explain the next undelivered one. Without subscription, explain the scaling of a topic:// topic.
    An empty producer stands for any new producer.
    """
    query = call.query
    unknown = sorted(query.keys() - {"topic", "subscription", "messageId", "producer", "token"})
    if unknown or not query.get("topic"):
        of_message = "?topic=...&subscription=...&messageId=LEDGER:ENTRY[:BATCH], or no messageId"
        raise AdminError(400, f"pass {of_message}; or ?topic=...&producer=NAME")
    try:
        subscription, message_id = query.get("subscription") or None, query.get("messageId")
        why = lab_of(call).why(query["topic"], subscription, message_id, query.get("producer"))
    except NotThere as error:
        raise AdminError(404, str(error)) from None
    except WhyError as error:
        raise AdminError(400, str(error)) from None
    return json_reply({"reason": why.reason, "text": why.text, "details": why.details})


@route("POST", NAMESPACES)
def add_namespace(call: Call) -> HttpReply:
    """Create a namespace: {"name": "orders", "policies": {"message_ttl_in_seconds": 60}}, and return its full name.

    A name without a tenant belongs to `public`, with a number when the name is taken.
    """
    asked = call.json_object("java.util.Map") or {}
    name, policies = asked.get("name"), asked.get("policies", {})
    if not isinstance(name, str) or not isinstance(policies, dict) or asked.keys() - {"name", "policies"}:
        raise AdminError(400, "the body takes name, a text, and policies, an object of names and values")
    try:
        return json_reply({"name": create_namespace(lab_of(call).cluster, name, policies)})
    except ValueError as error:
        raise AdminError(400, str(error)) from None


@route("DELETE", f"{NAMESPACES}/{{tenant}}/{{namespace}}")
def remove_namespace(call: Call) -> HttpReply:
    """Delete a namespace with its topics, now or after the last client has left."""
    lab_of(call).leaving.add(f"{call.parameter('tenant')}/{call.parameter('namespace')}")
    return done()
