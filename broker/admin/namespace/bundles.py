"""/admin/v2/namespaces: the bundles of a namespace: shown, unloaded, split, deleted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from pulsarium.broker.admin.policies.namespaces import NAMESPACE
from pulsarium.broker.auth.needs import SUPERUSER, namespace_operation, namespace_policy
from pulsarium.broker.broker import Broker
from pulsarium.broker.config.keys import MOST_BUNDLES
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError, unexpected_body
from pulsarium.broker.http.registry import route
from pulsarium.broker.http.reply import Reply, done, json_reply
from pulsarium.broker.http.values import Kind, integer, listed
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
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.topic_name import TopicName


def boundaries_of(broker: Broker, namespace: str) -> list[str]:
    """How a namespace is divided; one that there is not, not at all."""
    kept = broker.metadata.namespaces.get(namespace)
    if kept is None:
        return even_boundaries(1)
    return policies.boundaries_of(kept, broker.config)


def named_bundle(call: Call, parameter: str = "bundle", *, anywhere: bool = False) -> str:
    """The bundle of the path; 412 for one that there is not. `anywhere`: also in a namespace that there is not."""
    namespace = call.namespace
    if not anywhere and namespace not in call.broker.metadata.namespaces:
        raise AdminError(404, "Namespace not found")
    try:
        return bundle_named(boundaries_of(call.broker, namespace), namespace, call.parameter(parameter))
    except ValueError as error:
        raise AdminError(412, str(error)) from None


def names_in(broker: Broker, namespace: str, bundle: str) -> list[str]:
    """The topics of a bundle, of both kinds."""
    boundaries = boundaries_of(broker, namespace)
    names = broker.topics.names(namespace, non_persistent=True)
    return [name for name in names if bundle_of(boundaries, TopicName.parse(name)) == bundle]


def owned_bundles(broker: Broker) -> Iterator[tuple[str, str]]:
    """(namespace, bundle) of what a broker serves: what it was given, and what it has topics of."""
    ownership = broker.cluster.ownership
    loaded = ((str(topic.name.namespace_name), ownership.bundle_of(topic.name)) for topic in broker.loaded_topics())
    found = {*ownership.bundles_of(broker), *((name, bundle) for name, bundle in loaded if bundle is not None)}
    return iter(sorted(found))


def check_owned(call: Call, bundle: str) -> None:
    """412 for a bundle that no broker serves."""
    namespace = call.namespace
    if not any((namespace, bundle) in owned_bundles(member) for member in call.broker.cluster.ownership.alive):
        raise AdminError(412, f"Failed to find ownership for ServiceUnit:{namespace}/{bundle}")


async def unload_namespace(broker: Broker, namespace: str) -> None:
    """Disconnect the clients of all topics of a namespace; they come back by looking them up."""
    await broker.cluster.unload({(namespace, bundle) for bundle in ranges(boundaries_of(broker, namespace))})


BUNDLE = f"{NAMESPACE}/{{bundle}}"
EQUAL, BY_TOPICS, AT, BY_FLOW = ALGORITHMS = (
    "range_equally_divide",
    "topic_count_equally_divide",
    "specified_positions_divide",
    "flow_or_qps_equally_divide",
)
SPLIT_POSITION = integer("java.lang.Long", 64)


POSITIONS = "java.util.ArrayList<java.lang.Long>"
SPLIT_POSITIONS = Kind(
    POSITIONS, lambda value: [SPLIT_POSITION.of(each) for each in listed(POSITIONS, value) if each is not None]
)


@route("GET", f"{BUNDLE}/topicHashPositions", needs=namespace_policy("PERSISTENCE", write=False))
def get_hash_positions(call: Call) -> Reply:
    """Where in the hash space the topics of a bundle are; ?topics= names some of them."""
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
async def unload_bundle(call: Call) -> Reply:
    """Disconnect the clients of a bundle's topics; ?destinationBroker= names the broker that is to serve it next."""
    destination = _destination(call)
    if "_" not in call.parameter("bundle"):
        raise unexpected_body("Invalid bundle range", AdminError(412, "Invalid bundle range"))
    bundle = named_bundle(call)
    await call.broker.cluster.unload({(call.namespace, bundle)}, destination)
    return done()


def _destination(call: Call) -> Broker | None:
    """The broker that is named, by its host and port of HTTP."""
    named = re.sub(r"^https?://", "", call.query.get("destinationBroker", "").strip())
    if not named:
        return None
    for broker in call.broker.cluster.ownership.alive:
        if broker.web_address == named:
            return broker
    raise AdminError(409, "Not allowed unload namespace bundle to inactive destination broker")


@route("PUT", f"{BUNDLE}/split", needs=SUPERUSER)
async def split_bundle(call: Call) -> Reply:
    """Split a bundle in two, or at the positions of the body; LARGEST, or HOT, is the one with most topics."""
    positions = SPLIT_POSITIONS.read(call) or []
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
        positions = []  # as Pulsar has it: such a bundle stays whole
    changed = split_at(boundaries, bundle, positions)
    if len(changed) > MOST_BUNDLES:
        raise AdminError(412, f"A namespace has at most {MOST_BUNDLES} bundles on this broker")
    await _split(broker, namespace, bundle, changed, unload=call.flag("unload"))
    return done()


def _largest(call: Call) -> str:
    """The bundle with most topics, which Pulsar takes for HOT too where nobody measures load."""
    broker, namespace = call.broker, call.existing_namespace
    named = call.parameter("bundle")
    boundaries = boundaries_of(broker, namespace)
    counts = Counter(bundle_of(boundaries, TopicName.parse(name)) for name in broker.topics.names(namespace))
    if not counts:
        raise AdminError(404, f"Bundle range {named} not found")
    return max(sorted(counts), key=counts.__getitem__)


async def _split(broker: Broker, namespace: str, bundle: str, boundaries: list[str], *, unload: bool) -> None:
    """What was served as one bundle is served by the same broker as several, unless they are unloaded."""
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
async def delete_bundle(call: Call) -> Reply:
    """Give up an empty bundle, or with force=true any; topics stay, and its next use brings it back."""
    namespace = call.existing_namespace
    bundle = named_bundle(call)
    check_owned(call, bundle)
    persistent = [name for name in names_in(call.broker, namespace, bundle) if name.startswith("persistent:")]
    if persistent and not call.flag("force"):
        raise AdminError(409, "Cannot delete non empty bundle")
    await call.broker.cluster.unload({(namespace, bundle)})
    return done()
