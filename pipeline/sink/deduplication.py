"""Whether a topic drops what it has already (PIP-6)."""

from __future__ import annotations

import functools
import warnings

from pulsarium.client import Admin
from pulsarium.client.admin.errors import AdminError, NotAllowed, NotAuthorized, NotFound
from pulsarium.client.topics import parse
from pulsarium.pipeline.options import ADMIN_URL, Connection
from pulsarium.pipeline.pulsar import Pulsar
from pulsarium.rest.policies import DEDUPLICATION


class NoDeduplication(RuntimeError):
    """The topic would keep a repeated batch twice."""


class Unchecked(UserWarning):
    """Nobody knows whether the topic deduplicates."""


@functools.cache  # a stream asks with each batch, and one answer is enough
def require(connection: Connection, topic: str) -> None:
    """NoDeduplication if it does not; a warning if that cannot be found out. Blocks."""
    if connection.admin_url is None:
        return _unknown(topic, f'there is no .option("{ADMIN_URL}", ...)')
    with Pulsar(connection) as pulsar:
        try:
            found = pulsar.call(is_on, pulsar.client.admin, topic)
        except AdminError as error:
            return _unknown(topic, error.reason)
    if not found:
        raise NoDeduplication(
            f"{topic} does not deduplicate, so rows that Spark writes again would be there twice. Switch it on with\n"
            f"    pulsarium admin namespaces set-deduplication --enable {parse(topic).namespace_name}\n"
            'which pulsar-admin has as well; or have .option("deduplication", "off") if that does not matter'
        )
    return None


def _unknown(topic: str, why: str) -> None:
    warnings.warn(f"nobody knows whether {topic} deduplicates: {why}", Unchecked, stacklevel=4)


async def is_on(admin: Admin, topic: str) -> bool:
    """By the topic's policy, its namespace's, or the brokers' setting; AdminError where that may not be asked."""
    name = parse(topic).partitioned_name  # partitions have no policies
    found: bool | None
    try:
        found = await admin.topic_policies[DEDUPLICATION].get(name, applied=True)
    except (NotFound, NotAllowed, NotAuthorized):  # it is still to be made; there are no such policies; not for us
        found = await admin.namespace_policies[DEDUPLICATION].get(name.namespace_name)
    if found is None:
        found = (await admin.brokers.get_runtime_configurations()).get("brokerDeduplicationEnabled") == "true"
    return found
