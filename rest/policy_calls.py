"""Get, set and remove policies of namespaces and of topics, by the table of policies."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

from pulsarium.rest.exchange import NO_BODY, Exchange, RestRequest
from pulsarium.rest.group import CallGroup, Namespace, Topic, twice
from pulsarium.rest.policies import SUBSCRIPTION_DISPATCH_RATE, BacklogQuota, DispatchRate, Policy, PolicyPath

N = TypeVar("N")
T = TypeVar("T")


class PoliciesOf(CallGroup, Generic[N]):
    """The policies of namespaces or topics, which an `N` names. `policies[RETENTION]` has the calls of one."""

    def __getitem__(self, policy: Policy[T]) -> PolicyCalls[N, T]:
        """Return the calls of a policy. Raise `KeyError` when this kind of object does not have the policy."""
        place = self._place(policy)
        if place is None:
            raise KeyError(policy.kept)
        return PolicyCalls(self._exchange, self, place, policy)

    async def set_backlog_quota(
        self, name: N, quota: BacklogQuota, quota_type: str = "destination_storage", *, is_global: bool = False
    ) -> None:
        """Set one of the BACKLOG_QUOTAS."""
        query = {**of(is_global), "backlogQuotaType": quota_type}
        await self._post(f"{self.path(name)}/backlogQuota", quota, query)

    async def remove_backlog_quota(
        self, name: N, quota_type: str = "destination_storage", *, is_global: bool = False
    ) -> None:
        """Remove one of the BACKLOG_QUOTAS."""
        await self._delete(f"{self.path(name)}/backlogQuota", {**of(is_global), "backlogQuotaType": quota_type})

    @abstractmethod
    def path(self, name: N) -> str:
        """Return the path below which the policies are."""

    @abstractmethod
    def _place(self, policy: Policy[Any]) -> PolicyPath | None:
        """Return the calls of a policy here, or None."""


class NamespacePolicies(PoliciesOf[Namespace]):
    """Policies of namespaces. They apply to topics without policies of their own."""

    def path(self, name: Namespace) -> str:
        """Return the path of a namespace, below which its policies are."""
        return self._namespace(name)

    def _place(self, policy: Policy[Any]) -> PolicyPath | None:
        return policy.namespace


class TopicPolicies(PoliciesOf[Topic]):
    """Policies of topics. They override those of the namespace and the broker."""

    def path(self, name: Topic) -> str:
        """Return the path of a topic, below which its policies are."""
        return self._topic(name)

    def _place(self, policy: Policy[Any]) -> PolicyPath | None:
        return policy.topic

    def dispatch_rate_of(self, subscription: str) -> PolicyCalls[Topic, DispatchRate]:
        """Return the calls of SUBSCRIPTION_DISPATCH_RATE for one subscription."""
        place = PolicyPath(f"{twice(subscription)}/dispatchRate", applied=True)
        return self[replace(SUBSCRIPTION_DISPATCH_RATE, topic=place)]

    async def delete_topic_policies(self, topic: Topic) -> None:
        """Remove all policies of a topic."""
        await self._delete(f"{self.path(topic)}/policies")


class PolicyCalls(Generic[N, T]):
    """The calls of one policy, of namespaces or of topics.

    With `applied`, read the value that takes effect, which may come from the namespace or the broker. With `is_global`,
    read or set the value for all clusters, not only for this one. Both apply to topics.
    """

    def __init__(self, exchange: Exchange, policies: PoliciesOf[N], place: PolicyPath, policy: Policy[T]) -> None:
        self._exchange = exchange
        self._policies = policies
        self._at = place
        self._policy = policy

    async def get(self, name: N, *, applied: bool = False, is_global: bool = False) -> T | None:
        """Return the value, or None when it is not set."""
        query: dict[str, object] = {"applied": applied} if self._at.applied else {}
        found: T | None = await self._send("GET", name, query, is_global=is_global)
        return found

    async def set(self, name: N, value: T, *, is_global: bool = False) -> None:
        """Set the policy. Raise `ValueError` for False, if the policy has no such value."""
        if not (value or self._policy.has_body):
            raise ValueError("this policy cannot be set to False: remove it instead")
        if self._at.in_query:
            await self._send(self._at.setting, name, {self._at.word: value}, is_global=is_global)
        else:
            body = value if self._policy.has_body else NO_BODY
            await self._send(self._at.setting, name, body=body, is_global=is_global)

    async def remove(self, name: N, *, is_global: bool = False) -> None:
        """Remove the policy, so that the namespace's or the broker's takes effect."""
        query: dict[str, object] = {self._at.word: 0} if self._at.in_query else {}
        await self._send(self._at.removal, name, query, is_global=is_global, word=self._at.removed_at)

    async def _send(
        self,
        method: str,
        name: N,
        query: Mapping[str, object] | None = None,
        *,
        is_global: bool,
        body: object = NO_BODY,
        word: str = "",
    ) -> Any:
        if not method:
            raise TypeError(f"Pulsar has no such call for {self._at.word}")
        path = f"{self._policies.path(name)}/{word or self._at.word}"
        asked = {**of(is_global and not self._at.is_local), **(query or {})}
        return (await self._exchange.send(RestRequest(method, path, asked, body))).data()


def of(is_global: bool) -> dict[str, object]:
    """Return the query for a policy of all clusters."""
    return {"isGlobal": True} if is_global else {}
