"""All groups of calls over one exchange."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulsarium.rest.brokers import Bookies, Brokers, BrokerStats
    from pulsarium.rest.clusters import Clusters
    from pulsarium.rest.exchange import Exchange
    from pulsarium.rest.lookups import Lookups
    from pulsarium.rest.namespaces import Namespaces
    from pulsarium.rest.non_persistent_topics import NonPersistentTopics
    from pulsarium.rest.policy_calls import NamespacePolicies, TopicPolicies
    from pulsarium.rest.resources import ResourceGroups, ResourceQuotas
    from pulsarium.rest.schemas import Schemas
    from pulsarium.rest.tenants import Tenants
    from pulsarium.rest.transactions import Transactions


class Groups:
    """Named as in Java's PulsarAdmin, each imported when it is asked for: a command line needs one of them.

    `topics` is for who makes this one.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._groups_of = exchange

    @cached_property
    def bookies(self) -> Bookies:
        """Bookies and their racks."""
        from pulsarium.rest.brokers import Bookies

        return Bookies(self._groups_of)

    @cached_property
    def broker_stats(self) -> BrokerStats:
        """What brokers measure."""
        from pulsarium.rest.brokers import BrokerStats

        return BrokerStats(self._groups_of)

    @cached_property
    def brokers(self) -> Brokers:
        """Health, version, settings."""
        from pulsarium.rest.brokers import Brokers

        return Brokers(self._groups_of)

    @cached_property
    def clusters(self) -> Clusters:
        """Clusters, their peers, failure domains and isolation policies."""
        from pulsarium.rest.clusters import Clusters

        return Clusters(self._groups_of)

    @cached_property
    def lookups(self) -> Lookups:
        """Which broker serves a topic."""
        from pulsarium.rest.lookups import Lookups

        return Lookups(self._groups_of)

    @cached_property
    def namespace_policies(self) -> NamespacePolicies:
        """Policies of namespaces."""
        from pulsarium.rest.policy_calls import NamespacePolicies

        return NamespacePolicies(self._groups_of)

    @cached_property
    def namespaces(self) -> Namespaces:
        """Namespaces: their bundles, permissions and properties."""
        from pulsarium.rest.namespaces import Namespaces

        return Namespaces(self._groups_of)

    @cached_property
    def non_persistent_topics(self) -> NonPersistentTopics:
        """What of `topics` concerns those."""
        from pulsarium.rest.non_persistent_topics import NonPersistentTopics

        return NonPersistentTopics(self._groups_of)

    @cached_property
    def resource_groups(self) -> ResourceGroups:
        """Rates that namespaces share."""
        from pulsarium.rest.resources import ResourceGroups

        return ResourceGroups(self._groups_of)

    @cached_property
    def resource_quotas(self) -> ResourceQuotas:
        """What load balancing reckons with."""
        from pulsarium.rest.resources import ResourceQuotas

        return ResourceQuotas(self._groups_of)

    @cached_property
    def schemas(self) -> Schemas:
        """Schemas of topics."""
        from pulsarium.rest.schemas import Schemas

        return Schemas(self._groups_of)

    @cached_property
    def tenants(self) -> Tenants:
        """Who namespaces belong to."""
        from pulsarium.rest.tenants import Tenants

        return Tenants(self._groups_of)

    @cached_property
    def topic_policies(self) -> TopicPolicies:
        """Policies of topics."""
        from pulsarium.rest.policy_calls import TopicPolicies

        return TopicPolicies(self._groups_of)

    @cached_property
    def transactions(self) -> Transactions:
        """Coordinators, transaction buffers, pending acknowledgements."""
        from pulsarium.rest.transactions import Transactions

        return Transactions(self._groups_of)
