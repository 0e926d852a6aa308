"""Calls that an admin client has, and calls that were made."""

from __future__ import annotations

import inspect
from typing import Any

from pulsarium.client import Admin
from pulsarium.rest.policies import POLICIES, Policy

GROUPS = (
    *("bookies", "broker_stats", "brokers", "clusters", "lookups", "namespace_policies", "namespaces"),
    *("non_persistent_topics", "resource_groups", "resource_quotas", "schemas", "tenants", "topic_policies", "topics"),
)


def public_calls(admin: Admin) -> set[str]:
    """Return `group.method` for each method, and `group[policy]` for each policy."""
    found = {
        f"{name}.{method}"
        for name in GROUPS
        for method, _ in inspect.getmembers(getattr(admin, name), inspect.iscoroutinefunction)
        if not method.startswith("_")
    }
    found |= {f"namespace_policies[{row.kept}]" for row in POLICIES if row.namespace}
    return found | {f"topic_policies[{row.kept}]" for row in POLICIES if row.topic}


class _SpiedGroup:
    def __init__(self, name: str, group: Any, called: set[str]) -> None:
        self._name, self._group, self._called = name, group, called

    def __getitem__(self, policy: Policy[Any]) -> Any:
        self._called.add(f"{self._name}[{policy.kept}]")
        return self._group[policy]

    def __getattr__(self, method: str) -> Any:
        found = getattr(self._group, method)
        if not inspect.iscoroutinefunction(found):
            return found

        async def call(*args: Any, **kwargs: Any) -> Any:
            self._called.add(f"{self._name}.{method}")
            return await found(*args, **kwargs)

        return call


class Spied(Admin):
    """An admin client that passes calls on to another one, and keeps their names in `called`."""

    def __init__(self, admin: Admin) -> None:
        self._transport = admin._transport
        self.called: set[str] = set()
        for name in GROUPS:
            setattr(self, name, _SpiedGroup(name, getattr(admin, name), self.called))
