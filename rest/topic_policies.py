"""Policies of topics: they win over the namespace's and the broker's."""

from __future__ import annotations

from pulsarium.rest.group import Topic, twice
from pulsarium.rest.of_names import asked, of
from pulsarium.rest.policies import DispatchRate
from pulsarium.rest.topic_limits import TopicLimits
from pulsarium.rest.topic_rules import TopicRules


class TopicPolicies(TopicLimits, TopicRules):
    """`topicPolicies`. None is what is not set for the topic.

    `applied`: also what the namespace or the broker says. `is_global`: of all clusters, not of this one alone.
    """

    async def delete_topic_policies(self, topic: Topic) -> None:
        """Remove all policies of a topic."""
        await self._delete(self._path(topic, "policies"))

    async def get_subscription_dispatch_rate(
        self, topic: Topic, subscription: str | None = None, *, applied: bool = False, is_global: bool = False
    ) -> DispatchRate | None:
        """How fast messages are dispatched to each subscription, or to one."""
        return await self._find(DispatchRate, self._rate(topic, subscription), asked(applied, is_global))

    async def set_subscription_dispatch_rate(
        self, topic: Topic, rate: DispatchRate, subscription: str | None = None, *, is_global: bool = False
    ) -> None:
        """Set it."""
        await self._post(self._rate(topic, subscription), rate, of(is_global))

    async def remove_subscription_dispatch_rate(
        self, topic: Topic, subscription: str | None = None, *, is_global: bool = False
    ) -> None:
        """The namespace's holds again."""
        await self._delete(self._rate(topic, subscription), of(is_global))

    def _rate(self, topic: Topic, subscription: str | None) -> str:
        one = "subscriptionDispatchRate" if subscription is None else f"{twice(subscription)}/dispatchRate"
        return self._path(topic, one)
