"""/admin/v2/namespaces: show, unload, split and delete the bundles of a namespace."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from pulsarium.broker.auth.needs import SUPERUSER, namespace_operation, namespace_policy
from pulsarium.broker.cluster import Broker
from pulsarium.broker.config.keys import MOST_BUNDLES
from pulsarium.broker.jackson.kinds import collection, integer
from pulsarium.broker.model.namespace import policies
from pulsarium.broker.model.namespace.policies import (
    bundle_named,
    bundle_of,
    bundles_data,
    even_boundaries,
    hash_position,
    middle,
    ranges,
    split_at,
    topics_middle,
)
from pulsarium.broker.web.admin.policies.namespaces import NAMESPACE
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError, unexpected_body
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.topic_name import TopicName


def boundaries_of(broker: Broker, namespace: str) -> list[str]:
    """Return the boundaries of a namespace's bundles. A missing namespace has one bundle."""
    kept = broker.metadata.namespaces.get(namespace)
    if kept is None:
        return even_boundaries(1)
    return policies.boundaries_of(kept, broker.config)


def named_bundle(call: Call, parameter: str = "bundle", *, anywhere: bool = False) -> str:
    """Return the bundle of the path. Raise `AdminError` 412 for a missing one.

    With `anywhere`, the namespace may be missing.
    """
    namespace = call.namespace
    if not anywhere and namespace not in call.broker.metadata.namespaces:
        raise AdminError(404, "Namespace not found")
    try:
        return bundle_named(boundaries_of(call.broker, namespace), namespace, call.parameter(parameter))
    except ValueError as error:
        raise AdminError(412, str(error)) from None


def names_in(broker: Broker, namespace: str, bundle: str) -> list[str]:
    """Return the persistent and non-persistent topics of a bundle."""
    boundaries = boundaries_of(broker, namespace)
    names = broker.topics.names(namespace, non_persistent=True)
    return [name for name in names if bundle_of(boundaries, TopicName.parse(name)) == bundle]


def owned_bundles(broker: Broker) -> Iterator[tuple[str, str]]:
    """Yield (namespace, bundle) of all bundles that a broker serves.

    These are the bundles assigned to it, and those of its loaded topics.
    """
    ownership = broker.cluster.ownership
    loaded = ((str(topic.name.namespace_name), ownership.bundle_of(topic.name)) for topic in broker.loaded_topics())
    found = {*ownership.bundles_of(broker), *((name, bundle) for name, bundle in loaded if bundle is not None)}
    return iter(sorted(found))


def check_owned(call: Call, bundle: str) -> None:
    """Raise `AdminError` 412 for a bundle that no broker serves."""
    namespace = call.namespace
    if not any((namespace, bundle) in owned_bundles(member) for member in call.broker.cluster.ownership.alive):
        raise AdminError(412, f"Failed to find ownership for ServiceUnit:{namespace}/{bundle}")


async def unload_namespace(broker: Broker, namespace: str) -> None:
    """Disconnect the clients of all topics of a namespace. They look the topics up again."""
    await broker.cluster.unload({(namespace, bundle) for bundle in ranges(boundaries_of(broker, namespace))})


BUNDLE = f"{NAMESPACE}/{{bundle}}"
EQUAL, BY_TOPICS, AT, BY_FLOW = ALGORITHMS = (
    "range_equally_divide",
    "topic_count_equally_divide",
    "specified_positions_divide",
    "flow_or_qps_equally_divide",
)
SPLIT_POSITIONS = collection("java.util.ArrayList", integer("java.lang.Long", 64))


@route("GET", f"{BUNDLE}/topicHashPositions", needs=namespace_policy("PERSISTENCE", write=False))
def get_hash_positions(call: Call) -> HttpReply:
    """Return the hashes of a bundle's topics, or of those that ?topics= names."""
    namespace, bundle = call.namespace, named_bundle(call, anywhere=True)
    check_owned(call, bundle)
    found = [TopicName.parse(name) for name in names_in(call.broker, namespace, bundle)]
    asked = _asked(call)
    if asked:
        found = [name for name in found if name in asked or name.partitioned_name in asked]
    return json_reply(
        {
            "namespace": namespace,
            "bundle": bundle,
            "topicHashPositions": {str(name): hash_position(name) for name in found},
        }
    )


def _asked(call: Call) -> list[TopicName]:
    texts = [text for text in call.query.get("topics", "").split(",") if text]
    try:
        return [TopicName.parse(text) for text in texts]
    except InvalidTopicName as error:
        raise unexpected_body(str(error), AdminError(412, "Topic name is not valid")) from None


@route("PUT", f"{BUNDLE}/unload", needs=SUPERUSER)
async def unload_bundle(call: Call) -> HttpReply:
    """Disconnect the clients of a bundle's topics. ?destinationBroker= is the broker that serves the bundle next."""
    destination = _destination(call)
    if "_" not in call.parameter("bundle"):
        raise unexpected_body("Invalid bundle range", AdminError(412, "Invalid bundle range"))
    bundle = named_bundle(call)
    await call.broker.cluster.unload({(call.namespace, bundle)}, destination)
    return done()


def _destination(call: Call) -> Broker | None:
    """Return the broker of ?destinationBroker=, named by host and port of HTTP."""
    named = re.sub(r"^https?://", "", call.query.get("destinationBroker", "").strip())
    if not named:
        return None
    for broker in call.broker.cluster.ownership.alive:
        if broker.web_address == named:
            return broker
    raise AdminError(409, "Not allowed unload namespace bundle to inactive destination broker")


@route("PUT", f"{BUNDLE}/split", needs=SUPERUSER)
async def split_bundle(call: Call) -> HttpReply:
    """Split a bundle by an algorithm, or at the positions of the body.

    LARGEST, or HOT, is the bundle with most topics.
    """
    positions = [each for each in call.read(SPLIT_POSITIONS) or () if each is not None]
    algorithm = call.query.get("splitAlgorithmName", "").strip() or EQUAL
    if algorithm not in ALGORITHMS:
        text = f"supported algorithms are [{', '.join(ALGORITHMS)}]"
        raise AdminError(412, f"Unsupported namespace bundle split algorithm, {text}")
    if algorithm == AT and not positions:
        raise AdminError(412, f"With {AT} split algorithm, splitBoundaries must not be empty")
    broker, namespace = call.broker, call.namespace
    boundaries = boundaries_of(broker, namespace)
    bundle = _largest(call) if call.parameter("bundle") in ("LARGEST", "HOT") else named_bundle(call)
    names = names_in(broker, namespace, bundle) if algorithm in (AT, BY_TOPICS) else []
    if algorithm == EQUAL:
        positions = [middle(bundle)]
    elif algorithm != AT:
        split = topics_middle([TopicName.parse(name) for name in names])
        positions = [] if split is None else [split]
    elif len(names) < 2:
        positions = []  # as in Pulsar: such a bundle stays whole
    changed = split_at(boundaries, bundle, positions)
    if len(changed) > MOST_BUNDLES:
        raise AdminError(412, f"A namespace has at most {MOST_BUNDLES} bundles on this broker")
    await _split(broker, namespace, bundle, changed, unload=call.flag("unload"))
    return done()


def _largest(call: Call) -> str:
    """Return the bundle with most topics. Pulsar takes this bundle for HOT too, without load reports."""
    broker, namespace = call.broker, call.existing_namespace
    named = call.parameter("bundle")
    boundaries = boundaries_of(broker, namespace)
    counts = Counter(bundle_of(boundaries, TopicName.parse(name)) for name in broker.topics.names(namespace))
    if not counts:
        raise AdminError(404, f"Bundle range {named} not found")
    return max(sorted(counts), key=counts.__getitem__)


async def _split(broker: Broker, namespace: str, bundle: str, boundaries: list[str], *, unload: bool) -> None:
    """Replace a bundle by several with the same owner, or unload them."""
    metadata, cluster = broker.metadata, broker.cluster
    owner = cluster.ownership.owner_of(namespace, bundle)
    before = set(ranges(boundaries_of(broker, namespace)))
    metadata.put_namespace(namespace, {**metadata.namespaces[namespace], "bundles": bundles_data(boundaries)})
    made = [name for name in ranges(boundaries) if name not in before]
    if made:
        cluster.ownership.release(namespace, bundle)
    for name in made:
        if owner is not None:
            cluster.ownership.assign(namespace, name, owner)
    if unload:
        await cluster.unload({(namespace, name) for name in made})


@route("DELETE", BUNDLE, needs=namespace_operation("DELETE_BUNDLE"))
async def delete_bundle(call: Call) -> HttpReply:
    """Unload an empty bundle, or any with force=true. Topics stay, and their next use loads the bundle."""
    namespace = call.existing_namespace
    bundle = named_bundle(call)
    check_owned(call, bundle)
    persistent = [name for name in names_in(call.broker, namespace, bundle) if name.startswith("persistent:")]
    if persistent and not call.flag("force"):
        raise AdminError(409, "Cannot delete non empty bundle")
    await call.broker.cluster.unload({(namespace, bundle)})
    return done()
