"""Explain a subscription of a partitioned topic, all partitions in one answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.lab.why.answer import CAUGHT_UP, AskedMessage, NotThere, Why, WhyError
from pulsarium.broker.model.subscription.base import redelivery_loop
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.proto.topic_name import TopicName

EXPLAINED: Final = 20  # partitions whose next message is explained; the others have the dispatcher's last reason

Explain = Callable[[PersistentSubscription], Why]


class _Partition(NamedTuple):
    number: int
    subscription: PersistentSubscription
    backlog: int

    @property
    def rank(self) -> tuple[bool, bool, int, int]:
        """Return a sort key: loops come first, then partitions whose delivery stopped, then the largest backlog."""
        stopped = self.backlog > 0 and self.subscription.reason is not Reason.CAUGHT_UP
        return redelivery_loop(self.subscription) is None, not stopped, -self.backlog, self.number


def explain_partitions(cluster: Cluster, name: TopicName, count: int, subscription: str, explain: Explain) -> Why:
    """Return the reason of the partition that is stuck most, with a row for each partition in `partitions`."""
    found, others = list[_Partition](), set[str]()
    for index in range(count):
        topic = cluster.topics.loaded.get(str(name.partition(index)))
        if not isinstance(topic, PersistentTopic):
            continue
        others |= topic.subscriptions.keys()
        its = topic.subscriptions.get(subscription)
        if its is not None:
            found.append(_Partition(index, its, its.cursor.backlog()))
    if not found:
        known = ", ".join(sorted(others)[:20]) or "none"
        raise NotThere(f"no partition of {name} that is loaded has a subscription {subscription}; there are: {known}")
    found.sort(key=lambda each: each.rank)
    answers = [explain(each.subscription) for each in found[:EXPLAINED]]
    rows = [_row(each, answers[number] if number < EXPLAINED else None) for number, each in enumerate(found)]
    details: dict[str, Any] = {"topic": str(name), "subscription": subscription, "partitions": rows}
    details["backlog"] = sum(each.backlog for each in found)
    first, answer = found[0], answers[0]
    if answer.reason == CAUGHT_UP and not details["backlog"]:
        return Why(CAUGHT_UP, f"everything was acknowledged in all {len(found)} partitions", details)
    waiting = sum(1 for each in found if each.backlog)
    text = f"partition {first.number}: {answer.text}"
    if waiting > 1:
        text += f"; {waiting} of {len(found)} partitions have a backlog"
    return Why(answer.reason, text, {**answer.details, **details})


def _row(partition: _Partition, answer: Why | None) -> dict[str, Any]:
    subscription = partition.subscription
    row = {
        "partition": partition.number,
        "backlog": partition.backlog,
        "unacked": sum(each.unacked for each in subscription.consumers),
        "reason": subscription.reason.word,
        "text": subscription.reason.value,
        "messageId": None,
    }
    if answer is not None:
        row |= {"reason": answer.reason, "text": answer.text, "messageId": answer.details.get("messageId")}
    return row


def partition_with(cluster: Cluster, name: TopicName, count: int, asked: AskedMessage) -> TopicName:
    """Return the partition that has the ledger of a message. Raise `WhyError` when none that is loaded has it."""
    for index in range(count):
        topic = cluster.topics.loaded.get(str(name.partition(index)))
        if isinstance(topic, PersistentTopic) and asked.position.ledger_id in topic.ledger.ledgers:
            return name.partition(index)
    raise WhyError(
        f"no partition of {name} that is loaded has ledger {asked.position.ledger_id}; name one of its {count} "
        f"partitions: {name}-partition-0"
    )
