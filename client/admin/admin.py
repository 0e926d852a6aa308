"""The admin client: everything there is to ask of a broker over its REST API.

async with connect_admin("http://localhost:8080") as pulsar:
    await pulsar.topics.create_partitioned_topic("orders", 4)
    stats = await pulsar.topics.get_stats("orders-partition-0")
    await pulsar.topic_policies[policies.MESSAGE_TTL].set("orders", 3600)

with the rows of `pulsarium.rest.policies`, which also say what type a value has.

Or `client.admin` of a client that was connected with `admin_url=`: it is opened by its first call, and closed with it.
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
from pulsarium.rest.non_persistent_topics import NonPersistentTopics
from pulsarium.rest.policy_calls import NamespacePolicies, TopicPolicies
from pulsarium.rest.resources import ResourceGroups, ResourceQuotas
from pulsarium.rest.schemas import Schemas
from pulsarium.rest.tenants import Tenants
from pulsarium.rest.transactions import Transactions


class Admin:
    """Groups of calls, named as in Java's PulsarAdmin; so are their methods, in snake case.

    Each raises AdminError, of a kind for each status, and InvalidTopicName for names that are none. There is no timeout
    but for connecting: cancel a call that takes too long.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.bookies: Bookies = Bookies(transport)
        """Bookies and their racks."""
        self.broker_stats: BrokerStats = BrokerStats(transport)
        """What brokers measure."""
        self.brokers: Brokers = Brokers(transport)
        """Health, version, settings."""
        self.clusters: Clusters = Clusters(transport)
        """Clusters, their peers, failure domains and isolation policies."""
        self.lookups: Lookups = Lookups(transport)
        """Which broker serves a topic."""
        self.namespace_policies: NamespacePolicies = NamespacePolicies(transport)
        """Policies of namespaces."""
        self.namespaces: Namespaces = Namespaces(transport)
        """Namespaces: their bundles, permissions and properties."""
        self.non_persistent_topics: NonPersistentTopics = NonPersistentTopics(transport)
        """What of `topics` concerns those."""
        self.resource_groups: ResourceGroups = ResourceGroups(transport)
        """Rates that namespaces share."""
        self.resource_quotas: ResourceQuotas = ResourceQuotas(transport)
        """What load balancing reckons with."""
        self.schemas: Schemas = Schemas(transport)
        """Schemas of topics."""
        self.tenants: Tenants = Tenants(transport)
        """Who namespaces belong to."""
        self.topic_policies: TopicPolicies = TopicPolicies(transport)
        """Policies of topics."""
        self.topics: Topics = Topics(transport)
        """Topics, with messages and their ids as the client has them."""
        self.transactions: Transactions = Transactions(transport)
        """Coordinators, transaction buffers, pending acknowledgements."""

    async def aclose(self) -> None:
        """Close every connection."""
        await self._transport.aclose()

    def __repr__(self) -> str:
        return f"<Admin of {self._transport}>"


def admin_at(url: str, settings: Settings) -> Admin:
    """An admin client at `url`, to be closed; it opens nothing before its first call. Raises as `connect_admin`."""
    if url.startswith("https:"):
        settings.tls.context()  # what is wrong with it shall show now
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
    """An admin client of the brokers at `url`, under trio or asyncio, until the block is left.

    url: `http://host:port` or `https://host:port`; of several hosts, with commas between, the first that connects.
    connection_timeout: seconds until a connection has to be there.
    The others are as in `connect`.

    InvalidUrl for a URL that cannot be read, InvalidConfiguration for files that cannot.
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
