"""Read the grants in the policies of a namespace (auth_policies), as REST stores them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pulsarium.proto.topic_name import TopicName

Json = Mapping[str, Any]


class Grants:
    """The grants of one namespace. Each question reads the policies again, so a change takes effect at once."""

    def __init__(self, policies: Json | None, *, wildcards: bool) -> None:
        self._policies = policies or {}
        self._wildcards = wildcards
        self._auth: Json = self._policies.get("auth_policies") or {}

    def on_namespace(self, role: str | None, action: str) -> bool:
        """Return whether the role may do the action everywhere in the namespace."""
        return self._grants(self._auth.get("namespace_auth"), role, action)

    def on_topic(self, topic: TopicName, role: str | None, action: str) -> bool:
        """Return whether the namespace, the topic or the partitioned topic grants the action to the role."""
        if self.on_namespace(role, action):
            return True
        topics: Json = self._auth.get("destination_auth") or {}
        if self._grants(topics.get(str(topic)), role, action):
            return True
        # The suffix is cut off as text: `-partition-0` alone is a topic name too, and its parent is "".
        parent = str(topic).removesuffix(f"-partition-{topic.partition_index}")
        return topic.is_partition and _has(topics.get(parent), role, action)

    def roles_of_subscription(self, subscription: str) -> Collection[str]:
        """Return the only roles that may use the subscription. Empty: every role that may consume."""
        found: Collection[str] = (self._auth.get("subscription_auth_roles") or {}).get(subscription) or ()
        return found

    @property
    def subscriptions_have_prefix(self) -> bool:
        """Return whether names of subscriptions must begin with the role (subscription_auth_mode)."""
        return bool(self._policies.get("subscription_auth_mode") == "Prefix")

    def _grants(self, granted: Json | None, role: str | None, action: str) -> bool:
        if _has(granted, role, action):
            return True
        return (
            self._wildcards
            and role is not None
            and any(
                action in (actions or ()) and _matches(pattern, role) for pattern, actions in (granted or {}).items()
            )
        )


def _has(granted: Json | None, role: str | None, action: str) -> bool:
    return granted is not None and role is not None and action in (granted.get(role) or ())


def _matches(pattern: str, role: str) -> bool:
    """Return whether the role matches a pattern with one * at either end (authorizationAllowWildcardsMatching)."""
    if pattern.endswith("*") and role.startswith(pattern[:-1]):
        return True
    return pattern.startswith("*") and role.endswith(pattern[1:])
