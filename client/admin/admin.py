"""The admin client: all calls of the brokers' REST API.

    async with connect_admin("http://localhost:8080") as pulsar:
        await pulsar.topics.create_partitioned_topic("orders", 4)
        stats = await pulsar.topics.get_stats("orders-partition-0")
        await pulsar.topic_policies[policies.MESSAGE_TTL].set("orders", 3600)

`pulsarium.rest.policies` holds the policies and the types of their values.

A client that was connected with `admin_url=` has an admin client, too: `client.admin` opens at its first call, and is
closed with the client.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from pulsarium.client.admin.topics import Topics
from pulsarium.client.admin.transport import Transport
from pulsarium.client.connection.authentication import Authentication
from pulsarium.client.connection.settings import Settings
from pulsarium.rest.brokers import Bookies, Brokers, BrokerStats
from pulsarium.rest.clusters import Clusters
from pulsarium.rest.lookups import Lookups
from pulsarium.rest.namespaces import Namespaces
from pulsarium.rest.policy_calls import NamespacePolicies, TopicPolicies
from pulsarium.rest.resources import ResourceGroups, ResourceQuotas
from pulsarium.rest.scalable_topics import ScalableTopics
from pulsarium.rest.schemas import Schemas
from pulsarium.rest.tenants import Tenants
from pulsarium.rest.topics import NonPersistentTopics
from pulsarium.rest.transactions import Transactions


class Admin:
    """A client of the REST API.

    Its groups of calls and their methods have the names of Java's PulsarAdmin, in snake case.

    Each call raises the `AdminError` of the answer's status, and `InvalidTopicName` for an invalid topic. Only
    connecting has a time limit: cancel a call that takes too long.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.bookies: Bookies = Bookies(transport)
        """Bookies and their racks."""
        self.broker_stats: BrokerStats = BrokerStats(transport)
        """Metrics and load reports of brokers."""
        self.brokers: Brokers = Brokers(transport)
        """Health, version and settings of brokers."""
        self.clusters: Clusters = Clusters(transport)
        """Clusters, their peers, failure domains and isolation policies."""
        self.lookups: Lookups = Lookups(transport)
        """Lookups of the brokers that serve topics."""
        self.namespace_policies: NamespacePolicies = NamespacePolicies(transport)
        """Policies of namespaces."""
        self.namespaces: Namespaces = Namespaces(transport)
        """Namespaces: their bundles, permissions and properties."""
        self.non_persistent_topics: NonPersistentTopics = NonPersistentTopics(transport)
        """Non-persistent topics."""
        self.resource_groups: ResourceGroups = ResourceGroups(transport)
        """Resource groups: rate limits that namespaces share."""
        self.resource_quotas: ResourceQuotas = ResourceQuotas(transport)
        """Resource quotas of namespace bundles, for load balancing."""
        self.scalable_topics: ScalableTopics = ScalableTopics(transport)
        """Scalable topics and their segments."""
        self.schemas: Schemas = Schemas(transport)
        """Schemas of topics."""
        self.tenants: Tenants = Tenants(transport)
        """Tenants, the owners of namespaces."""
        self.topic_policies: TopicPolicies = TopicPolicies(transport)
        """Policies of topics."""
        self.topics: Topics = Topics(transport)
        """Topics, with messages and ids as in the client."""
        self.transactions: Transactions = Transactions(transport)
        """Transaction coordinators, transaction buffers and pending acknowledgements."""

    async def aclose(self) -> None:
        """Close all connections."""
        await self._transport.aclose()

    def __repr__(self) -> str:
        return f"<Admin of {self._transport}>"


def admin_at(url: str, settings: Settings) -> Admin:
    """Return an admin client at `url`, which connects at its first call. Raise the errors of `connect_admin`."""
    if url.startswith("https:"):
        settings.tls.context()  # raises the error of a bad file before the first call
    return Admin(
        Transport(
            url,
            authentication=settings.authentication,
            tls=settings.tls,
            connection_timeout=settings.connection_timeout,
        )
    )


@asynccontextmanager
async def connect_admin(
    url: str,
    *,
    connection_timeout: float = 10.0,
    authentication: Authentication | None = None,
    tls_trust_certs_file_path: str | None = None,
    tls_allow_insecure_connection: bool = False,
    tls_validate_hostname: bool = True,
    tls_certificate_file_path: str | None = None,
    tls_private_key_file_path: str | None = None,
) -> AsyncIterator[Admin]:
    """Yield an admin client of the brokers at `url`, for trio or asyncio. `async with` opens and closes the client.

    The arguments that are not listed are those of `connect`.

    Args:
        url: `http://host:port` or `https://host:port`. Separate several hosts by commas: the first that connects is
            used.
        connection_timeout: The time limit of a new connection, in seconds.

    Raises:
        InvalidUrl: The URL cannot be read.
        InvalidConfiguration: A file cannot be read.
    """
    settings = Settings(
        connection_timeout=connection_timeout,
        authentication=authentication,
        tls_trust_certs_file_path=tls_trust_certs_file_path,
        tls_allow_insecure_connection=tls_allow_insecure_connection,
        tls_validate_hostname=tls_validate_hostname,
        tls_certificate_file_path=tls_certificate_file_path,
        tls_private_key_file_path=tls_private_key_file_path,
    )
    admin = admin_at(url, settings)
    try:
        yield admin
    finally:
        with anyio.CancelScope(shield=True):
            await admin.aclose()
