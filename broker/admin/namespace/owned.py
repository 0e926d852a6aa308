"""Bundles as calls name them, what is in them, and whether somebody serves them."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.broker.broker import Broker
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.model.namespace import policies
from pulsarium.broker.model.namespace.bundles import bundle_named, bundle_of, even_boundaries, ranges
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
