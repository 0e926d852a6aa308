"""/admin/v2/scalable: list, create, show, change, migrate and delete scalable topics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pulsarium.broker.admin.topic.backlog import number_in, number_of
from pulsarium.broker.auth.needs import namespace_operation, topic_operation
from pulsarium.broker.config.profile import Profile
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError, Elsewhere, unexpected_body
from pulsarium.broker.http.owner import redirect
from pulsarium.broker.http.registry import route
from pulsarium.broker.http.reply import Reply, done, json_reply
from pulsarium.broker.model.scalable.controller import Controller
from pulsarium.broker.model.scalable.layout import HASHES, LayoutError, SegmentNotFoundError
from pulsarium.broker.model.scalable.topics import ScalableTopic

NAMESPACE = "/admin/v2/scalable/{tenant}/{namespace}"
TOPIC = f"{NAMESPACE}/{{topic}}"


def with_buckets(profile: Profile) -> bool:
    """Return whether the profile has the routes that 5.0.1 added."""
    return profile.entry_buckets


@route("GET", NAMESPACE, needs=namespace_operation("GET_TOPICS"))
def get_list(call: Call) -> Reply:
    """Return the scalable topics of a namespace, or only those with each ?property=key=value."""
    wanted: dict[str, str] = {}
    for text in call.values("property"):
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise AdminError(412, f"property filter must be in the form key=value, got: {text}")
        if wanted.setdefault(key, value) != value:
            return json_reply([])
    return json_reply(call.broker.cluster.scalable.names(call.namespace, wanted))


@route("PUT", TOPIC, needs=namespace_operation("CREATE_TOPIC"), anywhere=True)
def create(call: Call) -> Reply:
    """Create a scalable topic of ?numInitialSegments=, with the properties of the body."""
    segments = number_in(call.query.get("numInitialSegments", "1"), bits=32)
    properties = call.json_strings() or {}
    name = call.topic if with_buckets(call.broker.profile) else call.topic_anywhere
    if segments < 1:
        raise AdminError(412, "numInitialSegments must be >= 1")
    if segments > HASHES:
        raise AdminError(412, f"numInitialSegments must be <= {HASHES}")
    if name.is_partition:
        raise AdminError(412, f"A scalable topic has no partitions: use {name.partitioned_name}")
    call.broker.cluster.scalable.create(name, segments, properties)
    return done()


@route("GET", TOPIC, needs=topic_operation("GET_METADATA"), anywhere=True)
def get(call: Call) -> Reply:
    """Return the record of a scalable topic: its layout and its properties."""
    return json_reply(found(call).record())


@route("DELETE", TOPIC, needs=namespace_operation("DELETE_TOPIC"), anywhere=True)
def delete(call: Call) -> Reply:
    """Delete a scalable topic with its segments. With force=true, disconnect their clients."""
    call.broker.cluster.scalable.delete(call.topic_anywhere, force=call.flag("force"))
    return done()


@route("POST", f"{TOPIC}/split/{{segment}}", anywhere=True)
def split(call: Call) -> Reply:
    """Split a segment into its two halves."""
    segment = number_of(call, "segment", bits=64)
    with faults():
        controller_of(call).topic.split(segment)
    return done()


@route("POST", f"{TOPIC}/merge/{{first}}/{{second}}", anywhere=True)
def merge(call: Call) -> Reply:
    """Merge two adjacent segments."""
    first, second = (number_of(call, part, bits=64) for part in ("first", "second"))
    with faults():
        controller_of(call).topic.merge(first, second)
    return done()


@route("POST", f"{TOPIC}/rebucket/{{segment}}", anywhere=True, offered=with_buckets)
def rebucket(call: Call) -> Reply:
    """Replace a segment by one of ?bucketCount= entry buckets."""
    segment, buckets = number_of(call, "segment", bits=64), number_in(call.query.get("bucketCount", "0"), bits=32)
    topic, most = controller_of(call).topic, call.broker.config.scalableTopicEntryBucketMaxPerSegment
    if not 1 <= buckets <= most:
        raise AdminError(412, f"bucketCount must be in [1, {most}]: {buckets}")
    try:
        topic.rebucket(segment, buckets)
    except LayoutError as error:
        raise AdminError(412, error.text) from None
    return done()


@route("POST", f"{TOPIC}/migrate", anywhere=True)
def migrate(call: Call) -> Reply:
    """Make the persistent topic of this name scalable. With force=true, disconnect clients of the older kind."""
    call.broker.cluster.scalable.migrate(call.topic_anywhere, force=call.flag("force"))
    return done()


def found(call: Call) -> ScalableTopic:
    """Return the scalable topic of the path. Raise a 404 when it does not exist."""
    return call.broker.cluster.scalable.get(call.topic_anywhere)


def controller_of(call: Call) -> Controller:
    """Return the controller of the path's topic, which this broker leads if no other broker does.

    Raise `Elsewhere` with the redirect to the broker that leads the topic. Pulsar answers 500 for an absent topic.
    """
    name, cluster = call.topic_anywhere, call.broker.cluster
    topic = cluster.scalable.find(name)
    if topic is None:
        text = f"Failed to initialize controller for {name}"
        raise unexpected_body(text, AdminError(404, f"Scalable topic not found: {name}"))
    leader = topic.controller
    if leader is not None and leader.alive and leader is not call.broker:
        raise Elsewhere(redirect(call, leader, authoritative=True))
    return cluster.controllers.lead(topic, call.broker)


@contextmanager
def faults() -> Iterator[None]:
    """Answer a change that does not fit as 500, as Pulsar does, or with a status of its own."""
    try:
        yield
    except LayoutError as error:
        status = 404 if isinstance(error, SegmentNotFoundError) else 412
        raise unexpected_body(error.text, AdminError(status, error.text)) from None
