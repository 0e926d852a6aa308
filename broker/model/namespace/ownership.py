"""Assign namespace bundles to brokers, and find the broker of a topic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pulsarium.broker.config.keys import Config
from pulsarium.broker.model.errors import MetadataError
from pulsarium.broker.model.namespace.metadata import Metadata
from pulsarium.broker.model.namespace.policies import boundaries_of, bundle_of
from pulsarium.proto.special_names import change_events_of
from pulsarium.proto.topic_name import NamespaceName, TopicName


class ClusterMember(Protocol):
    """A broker, as its cluster knows it."""

    @property
    def alive(self) -> bool: ...


M = TypeVar("M", bound=ClusterMember)


@dataclass(frozen=True, slots=True)
class FoundOwner(Generic[M]):
    """The answer to a lookup: the owner, or with `redirect` the broker to ask next.

    `authoritative` tells that broker to serve the topic.
    """

    broker: M
    redirect: bool = False
    authoritative: bool = True


class Ownership(Generic[M]):
    """The bundles that brokers own. Nothing is stored: a broker that ends owns nothing."""

    def __init__(self, config: Config, metadata: Metadata) -> None:
        self.members: list[M] = []
        self._leader: M | None = None
        self._owners: dict[tuple[str, str], M] = {}
        self._unloading: set[tuple[str, str]] = set()
        self._config = config
        self._metadata = metadata

    # members

    @property
    def alive(self) -> list[M]:
        return [member for member in self.members if member.alive]

    @property
    def leader(self) -> M:
        """Return the broker that assigns unowned bundles. It stays the leader while it is alive."""
        if self._leader is None or not self._leader.alive:
            self._leader = self.alive[0]
        return self._leader

    # bundles

    def bundle_of(self, topic: TopicName) -> str | None:
        """Return the bundle of a topic, or None if its namespace does not exist."""
        kept = self._metadata.namespaces.get(str(topic.namespace_name))
        if kept is None:
            return None
        return bundle_of(boundaries_of(kept, self._config), topic)

    def owner_of(self, namespace: str, bundle: str) -> M | None:
        """Return the owner of a bundle. In a cluster of one broker, that is always this broker."""
        if len(self.members) == 1:
            return self.members[0] if self.members[0].alive else None
        return self._owners.get((namespace, bundle))

    def owner(self, topic: TopicName) -> M | None:
        """Return the broker that serves a topic, or None if its bundle is unowned or its namespace does not exist."""
        alone = len(self.members) == 1
        if alone and not self._unloading and str(topic.namespace_name) in self._metadata.namespaces:
            return self.owner_of("", "")  # whichever bundle it is
        bundle, namespace = self.bundle_of(topic), str(topic.namespace_name)
        if bundle is None or (namespace, bundle) in self._unloading:
            return None
        return self.owner_of(namespace, bundle)

    def taker(self, topic: TopicName) -> M | None:
        """Return the broker to which a topic's bundle was assigned, or None.

        In a cluster of one broker, `owner` answers even for bundles that were never assigned.
        """
        bundle = self.bundle_of(topic)
        return None if bundle is None else self._owners.get((str(topic.namespace_name), bundle))

    def bundles_of(self, member: M) -> list[tuple[str, str]]:
        """Return the bundles of a broker, as (namespace, bundle)."""
        return [key for key, owner in self._owners.items() if owner is member]

    def assign(self, namespace: str, bundle: str, member: M) -> None:
        self._owners[namespace, bundle] = member

    def _take(self, namespace: NamespaceName, bundle: str, member: M) -> None:
        """Assign a bundle to the only broker, and with it the bundle of `__change_events`, which the broker reads."""
        self.assign(str(namespace), bundle, member)
        events = self.bundle_of(change_events_of(str(namespace)))
        if events is not None:
            self.assign(str(namespace), events, member)

    def release(self, namespace: str, bundle: str) -> None:
        self._owners.pop((namespace, bundle), None)

    @contextmanager
    def unloading(self, bundles: Iterable[tuple[str, str]]) -> Iterator[None]:
        """Refuse lookups of these bundles, which are being unloaded, while the block runs."""
        begun = {*bundles} - self._unloading
        self._unloading |= begun
        try:
            yield
        finally:
            self._unloading -= begun

    def forget_all(self) -> None:
        """Forget all owners."""
        self._owners.clear()

    def forget(self, namespace: str) -> None:
        """Forget the bundles of a deleted namespace. A new namespace of the same name may have others."""
        self._owners = {key: owner for key, owner in self._owners.items() if key[0] != namespace}

    # lookup

    def serving(self, topic: TopicName) -> M | None:
        """Return the broker that serves a topic, which the leader chooses now if necessary.

        Return None while its bundle is being unloaded, or when its namespace does not exist.
        """
        bundle, namespace = self.bundle_of(topic), str(topic.namespace_name)
        if bundle is None or (namespace, bundle) in self._unloading:
            return None
        owner = self.owner_of(namespace, bundle)
        if owner is None and self.alive:
            owner = min(self.alive, key=lambda member: len(self.bundles_of(member)))
            self.assign(namespace, bundle, owner)
        return owner

    def find(self, asked: M, topic: TopicName, *, authoritative: bool) -> FoundOwner[M] | None:
        """Return the answer of the broker `asked` to a lookup, or None if the namespace does not exist.

        The leader assigns an unowned bundle to the least loaded broker. With `authoritative` it has chosen the broker
        that is asked. Raise `MetadataError` while the bundle is being unloaded.
        """
        bundle = self.bundle_of(topic)
        if bundle is None:
            return None
        namespace = str(topic.namespace_name)
        self._metadata.looked_up(namespace)
        if (namespace, bundle) in self._unloading:
            raise MetadataError(f"Namespace bundle {namespace}/{bundle} is being unloaded")
        owner = self.owner_of(namespace, bundle)
        if owner is not None:
            if len(self.members) == 1:
                self._take(topic.namespace_name, bundle, owner)
            return FoundOwner(owner)
        if not authoritative and asked is not self.leader:
            return FoundOwner(self.leader, redirect=True, authoritative=False)
        chosen = asked if authoritative else min(self.alive, key=lambda member: len(self.bundles_of(member)))
        if chosen is asked:
            self.assign(namespace, bundle, asked)
            return FoundOwner(asked)
        return FoundOwner(chosen, redirect=True)
