"""Read the facts about a topic from any Pulsar broker. Only the stats are needed: each other part may be refused.

A real broker answers 401 also to a role that may not read a part. So only a 401 to the stats means wrong credentials.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import Any, Final

from pulsarium.rest.exchange import RestReply, RestRequest
from pulsarium.rest.group import CallGroup, Topic, twice
from pulsarium.rest.why.facts import Facts, Json

POLICIES: Final = (
    "backlogQuotaMap",
    "dispatchRate",
    "dispatcherPauseOnAckStatePersistent",
    "maxUnackedMessagesOnConsumer",
    "maxUnackedMessagesOnSubscription",
    "publishRate",
    "subscriptionDispatchRate",
)
KEYS: Final = (
    "dispatchThrottlingRateInByte",
    "dispatchThrottlingRateInMsg",
    "dispatchThrottlingRatePerSubscriptionInByte",
    "dispatchThrottlingRatePerSubscriptionInMsg",
    "dispatchThrottlingRatePerTopicInByte",
    "dispatchThrottlingRatePerTopicInMsg",
    "managedLedgerMaxUnackedRangesToPersist",
    "maxUnackedMessagesPerBroker",
    "maxUnackedMessagesPerConsumer",
    "maxUnackedMessagesPerSubscription",
    "maxUnackedMessagesPerSubscriptionOnBrokerBlocked",
)
"""The settings of a broker that hold delivery up."""
REFUSALS: Final = tuple(range(400, 600))
MAY_BE_REFUSED: Final = tuple(status for status in REFUSALS if status != 401)
PEEKED: Final = "x-pulsar-"


class WhyReader(CallGroup):
    """Reads that explain why a subscription waits. Nothing is changed."""

    async def read(self, topic: Topic, subscription: str | None = None) -> list[Facts]:
        """Return the facts about a subscription, or about each, on each partition of the topic.

        A topic without stats or without the subscription has one element, whose `subscription` is "".
        """
        policies, config, found = await self.policies(topic), await self.config(), list[Facts]()
        for each in await self.partitions(topic):
            of_topic = await self.of_topic(each, policies, config)
            found += [await self._with_messages(facts) for facts in of_topic.by_subscription(subscription)]
        return found

    async def partitions(self, topic: Topic) -> list[str]:
        """Return the partitions of a topic, or the topic itself when it has none."""
        name = self._name(topic)
        data = await self._ask(f"{self._topic(name)}/partitions")
        count = data.get("partitions", 0) if isinstance(data, Mapping) else 0
        return [str(name.partition(index)) for index in range(count)] or [str(name)]

    async def config(self) -> Json:
        """Return the settings of the broker that hold delivery up, if the caller may read them."""
        data = await self._ask("brokers/configuration/runtime")
        return {key: data[key] for key in KEYS if key in data} if isinstance(data, Mapping) else {}

    async def policies(self, topic: Topic) -> Json:
        """Return the policies that take effect on the topic, those that the caller may read."""
        path = self._topic(topic)
        found = {word: await self._ask(f"{path}/{word}", applied=True) for word in POLICIES}
        return {word: value for word, value in found.items() if value is not None}

    async def of_topic(self, topic: Topic, policies: Json, config: Json) -> Facts:
        """Return the facts about a topic that has no partitions, without those about one subscription."""
        name = self._name(topic)
        reply = await self._reply(f"{self._topic(name)}/stats", MAY_BE_REFUSED, getEarliestTimeInBacklog=False)
        if reply.status >= REFUSALS[0]:
            return Facts(str(name), "", {}, refused=_refusal(reply))
        return Facts(
            str(name),
            "",
            reply.data(),
            internal=await self._ask(f"{self._topic(name)}/internalStats") or {},
            policies=policies,
            config=config,
            transactions=await self._buffer(topic, reply.data()),
            now_ms=_instant(reply.headers.get("date")),
        )

    async def _with_messages(self, facts: Facts) -> Facts:
        """Return the facts about a subscription with those about the messages of its backlog."""
        if not facts.of_subscription.get("msgBacklog"):
            return facts
        acks = await self.pending_acks(facts.topic, facts.subscription)
        transactions = {**facts.transactions, **({"pendingAck": acks} if acks else {})}
        return replace(facts, peeked=await self.peeked(facts.topic, facts.subscription), transactions=transactions)

    async def peeked(self, topic: Topic, subscription: str) -> Json:
        """Return the headers of the first message of a backlog, or `status` and `reason` of the refusal."""
        reply = await self._reply(f"{self._topic(topic)}/subscription/{twice(subscription)}/position/1")
        if reply.status >= REFUSALS[0]:
            return _refusal(reply)
        return {name: value for name, value in reply.headers.items() if name.startswith(PEEKED)}

    async def pending_acks(self, topic: Topic, subscription: str) -> Json:
        """Return the stats of acknowledgements in open transactions, or {} where the broker has none."""
        return await self._ask(f"{self._transactions('pendingAckStats', topic)}/{twice(subscription)}") or {}

    async def _buffer(self, topic: Topic, stats: Json) -> Json:
        waits = any(each.get("msgBacklog") for each in (stats.get("subscriptions") or {}).values())
        if not waits and not stats.get("ongoingTxnCount"):
            return {}
        found = await self._ask(self._transactions("transactionBufferStats", topic))
        return {"buffer": found} if found else {}

    def _transactions(self, what: str, topic: Topic) -> str:
        name = self._name(topic)
        return f"/admin/v3/transactions/{what}/{name.namespace_name}/{name.encoded_local_name}"

    async def _ask(self, path: str, **query: object) -> Any:
        """Return the JSON of an answer, or None when the broker refuses it."""
        reply = await self._reply(path, **query)
        return None if reply.status >= REFUSALS[0] else reply.data()

    async def _reply(self, path: str, known: tuple[int, ...] = REFUSALS, /, **query: object) -> RestReply:
        return await self._exchange.send(RestRequest("GET", path, query, known=known))


def _refusal(reply: RestReply) -> Json:
    return {"status": reply.status, "reason": reply.reason}


def _instant(date: str | None) -> int | None:
    """Return the time of an answer in milliseconds, or None."""
    try:
        return None if date is None else round(parsedate_to_datetime(date).timestamp() * 1000)
    except ValueError:
        return None
