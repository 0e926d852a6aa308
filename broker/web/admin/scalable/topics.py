"""/admin/v2/scalable: list, create, show, change, migrate and delete scalable topics, and grants on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pulsarium.broker.auth.needs import TENANT_ADMIN, namespace_operation, topic_operation
from pulsarium.broker.jackson.kinds import STRINGS
from pulsarium.broker.model.scalable.layout import LayoutError, SegmentNotFoundError
from pulsarium.broker.web.admin.namespace.permissions import get_topic_permissions, grant_topic, revoke_topic
from pulsarium.broker.web.admin.scalable.routes import (
    NAMESPACE,
    TOPIC,
    controller_of,
    scalable_route,
    since_5_0_1,
    topic_of,
)
from pulsarium.broker.web.http.call import Call, number_in, number_of
from pulsarium.broker.web.http.errors import AdminError, unexpected_body
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply

MOST_INITIAL_SEGMENTS: Final = 1024  # one turn creates them all


@scalable_route("GET", NAMESPACE, needs=namespace_operation("GET_TOPICS"))
def get_list(call: Call) -> HttpReply:
    """Return the scalable topics of a namespace, or only those with each ?property=key=value."""
    wanted: dict[str, str] = {}
    for text in call.values("property"):
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise AdminError(412, f"property filter must be in the form key=value, got: {text}")
        if wanted.setdefault(key, value) != value:
            return json_reply([])
    return json_reply(call.broker.cluster.scalable.names(call.namespace, wanted))


@scalable_route("PUT", TOPIC, needs=namespace_operation("CREATE_TOPIC"))
def create(call: Call) -> HttpReply:
    """Create a scalable topic of ?numInitialSegments=, with the properties of the body."""
    segments = number_in(call.query.get("numInitialSegments", "1"), bits=32)
    properties = call.read(STRINGS) or {}
    name = call.topic_anywhere if call.broker.profile.scalable_faults else call.topic
    if segments < 1:
        raise AdminError(412, "numInitialSegments must be >= 1")
    if segments > MOST_INITIAL_SEGMENTS:
        raise AdminError(412, f"numInitialSegments must be <= {MOST_INITIAL_SEGMENTS}")
    if name.is_partition:
        raise AdminError(412, f"A scalable topic has no partitions: use {name.partitioned_name}")
    call.broker.cluster.scalable.create(name, segments, properties)
    return done()


@scalable_route("GET", TOPIC, needs=topic_operation("GET_METADATA"))
def get(call: Call) -> HttpReply:
    """Return the record of a scalable topic: its layout and its properties."""
    record = topic_of(call).record()
    if call.broker.profile.scalable_as_m1:
        return json_reply(record)
    for segment in record["segments"].values():
        segment.setdefault("entryBucketSplits", [])
    return json_reply({**record, "deleted": False})


@scalable_route("DELETE", TOPIC, needs=namespace_operation("DELETE_TOPIC"))
def delete(call: Call) -> HttpReply:
    """Delete a scalable topic with its segments. With force=true, disconnect their clients."""
    call.broker.cluster.scalable.delete(call.topic_anywhere, force=call.flag("force"))
    return done()


@scalable_route("POST", f"{TOPIC}/split/{{segment}}")
def split(call: Call) -> HttpReply:
    """Split a segment into its two halves."""
    segment = number_of(call, "segment", bits=64)
    controller = controller_of(call)
    with faults(), controller.by_hand("split", segment):
        controller.topic.split(segment)
    return done()


@scalable_route("POST", f"{TOPIC}/merge/{{first}}/{{second}}")
def merge(call: Call) -> HttpReply:
    """Merge two adjacent segments."""
    first, second = (number_of(call, part, bits=64) for part in ("first", "second"))
    controller = controller_of(call)
    with faults(), controller.by_hand("merge", first, second):
        controller.topic.merge(first, second)
    return done()


@scalable_route("POST", f"{TOPIC}/rebucket/{{segment}}", offered=since_5_0_1)
def rebucket(call: Call) -> HttpReply:
    """Replace a segment by one of ?bucketCount= entry buckets."""
    segment, buckets = number_of(call, "segment", bits=64), number_in(call.query.get("bucketCount", "0"), bits=32)
    controller, most = controller_of(call), call.broker.config.scalableTopicEntryBucketMaxPerSegment
    if not 1 <= buckets <= most:
        raise AdminError(412, f"bucketCount must be in [1, {most}]: {buckets}")
    try:
        with controller.by_hand("rebucket", segment):
            controller.topic.rebucket(segment, buckets)
    except LayoutError as error:
        raise AdminError(412, error.text) from None
    return done()


@scalable_route("POST", f"{TOPIC}/migrate")
def migrate(call: Call) -> HttpReply:
    """Make the persistent topic of this name scalable. With force=true, disconnect clients of the older kind."""
    call.broker.cluster.scalable.migrate(call.topic_anywhere, force=call.flag("force"))
    return done()


@contextmanager
def faults() -> Iterator[None]:
    """Answer a change that does not fit as 500, as Pulsar does, or with a status of its own."""
    try:
        yield
    except LayoutError as error:
        status = 404 if isinstance(error, SegmentNotFoundError) else 412
        raise unexpected_body(error.text, AdminError(status, error.text)) from None


@scalable_route("GET", f"{TOPIC}/permissions", needs=TENANT_ADMIN, offered=since_5_0_1)
def get_permissions(call: Call) -> HttpReply:
    """Return the actions on a scalable topic by role, granted on the topic or on its namespace."""
    return get_topic_permissions(call)


@scalable_route("POST", f"{TOPIC}/permissions/{{role}}", needs=TENANT_ADMIN, offered=since_5_0_1)
def grant(call: Call) -> HttpReply:
    """Set the actions that a role is granted on a scalable topic."""
    return grant_topic(call)


@scalable_route("DELETE", f"{TOPIC}/permissions/{{role}}", needs=TENANT_ADMIN, offered=since_5_0_1)
def revoke(call: Call) -> HttpReply:
    """Revoke a role's actions on a scalable topic."""
    return revoke_topic(call)
