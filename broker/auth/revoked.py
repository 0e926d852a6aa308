"""Disconnect producers and consumers that lost their grants when the policies of their namespace change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast

from pulsarium.broker.auth.authorization import (
    Authorization,
    OperationTarget,
    TenantNotFound,
    WrongSubscriptionName,
    of_topic,
)
from pulsarium.broker.auth.identity import Principal
from pulsarium.broker.auth.needs import Needs, topic_operation
from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.namespace.metadata import Metadata
from pulsarium.broker.model.subscription.base import Consumer
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.producers import Producer
from pulsarium.broker.model.topic.topics import Topics
from pulsarium.proto.topic_name import TopicName

log = PartLog("auth")

CONSUME, PRODUCE = topic_operation("CONSUME"), topic_operation("PRODUCE")


class Proved(Protocol):
    """A connection with a principal. The model's `client` has no such attribute in its type."""

    @property
    def principal(self) -> Principal: ...


def watch_grants(authorization: Authorization, metadata: Metadata, topics: Topics) -> None:
    """Disconnect clients that lost their grants whenever policies change (Pulsar's onPoliciesUpdate)."""

    def changed(namespace: str, name: TopicName | None) -> None:
        for topic in topics.loaded_of(namespace, name):
            disconnect_revoked(authorization, topic)

    metadata.policies_listeners.append(changed)


def disconnect_revoked(authorization: Authorization, topic: Topic) -> None:
    """Close the producers and consumers of the topic that are no longer authorized.

    Their clients reconnect, and get the error then.
    """
    may_not_produce = _lost(authorization, PRODUCE, of_topic(topic.name))
    topic.producers.dismiss_waiting(may_not_produce)  # first: they would take over
    topic.producers.disconnect_those(may_not_produce)
    for subscription in list(topic.subscriptions.values()):
        subscription.disconnect_those(_lost(authorization, CONSUME, of_topic(topic.name, subscription.name)))


def _lost(authorization: Authorization, needs: Needs, target: OperationTarget) -> Callable[[Producer | Consumer], bool]:
    def lost(each: Producer | Consumer) -> bool:
        principal = cast("Proved", each.client).principal
        try:
            allowed = authorization.allows(principal, needs, target)
        except (TenantNotFound, WrongSubscriptionName):
            allowed = False
        if not allowed:
            log.warning(
                "closing a client that is no longer authorized",
                peer=each.client,
                role=principal,
                needs=needs,
                topic=target.topic,
            )
        return not allowed

    return lost
