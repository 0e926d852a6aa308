"""States of topics and subscriptions that a caller can wait for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.lab.arguments import OF_SUBSCRIPTION, OF_TOPIC
from pulsarium.broker.lab.expectations import (
    AckedExpectation,
    DeliveredExpectation,
    Expectation,
    OfSubscription,
    OfTopic,
    Produced,
)
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.text import did_you_mean
from pulsarium.proto.topic_name import TopicName


class AwaitedError(ValueError):
    """A state that nobody can wait for. The text says what is allowed."""


def awaited(cluster: Cluster, topic: str, subscription: str | None, state: str, count: int | None) -> Expectation:
    """Return the expectation of a state. Raise `AwaitedError` when the arguments do not fit together."""
    try:
        name = TopicName.parse(topic)
    except InvalidTopicName as error:
        raise AwaitedError(str(error)) from None
    if name.is_scalable:
        raise AwaitedError(f"{name} is a scalable topic: wait for one of its segments, segment://...")
    known, what = (OF_TOPIC, "a topic") if subscription is None else (OF_SUBSCRIPTION, "a subscription")
    if state not in known:
        meant = did_you_mean(state, known) or f"there are {', '.join(known)}"
        raise AwaitedError(f"{what} has no state {state!r}; {meant}")
    if count is not None and not known[state].counted:
        counted = ", ".join(each for each, row in known.items() if row.counted)
        raise AwaitedError(f"the state {state} has no count; {counted} have one")
    wanted = 1 if count is None else count
    try:
        if subscription is None:
            return _TOPIC[state](cluster, topic, wanted)
        return _SUBSCRIPTION[state](cluster, topic, subscription, wanted)
    except ValueError as error:  # messages of a topic that is not persistent
        raise AwaitedError(str(error)) from None


class _Exists(OfSubscription):
    """Expect the subscription on each partition."""

    def __init__(self, cluster: Cluster, topic: str, subscription: str, count: int) -> None:
        super().__init__(cluster, topic, subscription)
        self._count = count

    def everywhere(self) -> bool:
        """Return whether the subscription exists on each partition."""
        topics = self.topics()
        return bool(topics) and len(self.subscriptions()) == len(topics)

    def connected(self) -> int:
        """Return the number of consumers on the partition that has fewest."""
        return min((len(each.consumers) for each in self.subscriptions()), default=0)

    def decided(self) -> bool:
        return self.everywhere()

    def problem(self) -> str | None:
        return None if self.decided() else self.wrong() if self.subscriptions() else self.missing()

    def wrong(self) -> str:
        """Return how the subscription differs from the expectation."""
        return f"{self.subscription} does not exist on every partition of {self.name}"


class _Absent(_Exists):
    def decided(self) -> bool:
        return not self.subscriptions()

    def wrong(self) -> str:
        return f"{self.name} still has the subscription {self.subscription}; {self.consumers()}"


class _Connected(_Exists):
    def decided(self) -> bool:
        return self.everywhere() and self.connected() >= self._count

    def wrong(self) -> str:
        there = f"{self.connected()} of {self._count} consumers"
        return f"{self.subscription} of {self.name} has {there}; {self.consumers()}"


class _NoConsumer(_Exists):
    def decided(self) -> bool:
        return self.everywhere() and not any(each.consumers for each in self.subscriptions())

    def wrong(self) -> str:
        return f"{self.subscription} of {self.name} still has {self.consumers()}"


class _TopicExists(OfTopic):
    """Expect the topic."""

    def __init__(self, cluster: Cluster, topic: str, count: int) -> None:
        super().__init__(cluster, topic)
        self._count = count

    def decided(self) -> bool:
        return bool(self.topics())

    def problem(self) -> str | None:
        return None if self.decided() else self.wrong() if self.topics() else self.absent()

    def producers(self) -> list[str]:
        """Return the names of the connected producers."""
        return [name for topic in self.topics() for name in topic.producers.by_name]

    def wrong(self) -> str:
        """Return how the topic differs from the expectation."""
        return f"producers of {self.name}: {', '.join(self.producers()) or 'none'}"


class _TopicAbsent(_TopicExists):
    def decided(self) -> bool:
        return not self.topics()

    def wrong(self) -> str:
        return f"{self.name} still exists; {super().wrong()}"


class _TopicConnected(_TopicExists):
    def decided(self) -> bool:
        return bool(self.topics()) and len(self.producers()) >= self._count

    def wrong(self) -> str:
        return f"{self.name} has {len(self.producers())} of {self._count} producers; {super().wrong()}"


class _NoProducer(_TopicExists):
    def decided(self) -> bool:
        return bool(self.topics()) and not self.producers()


_SUBSCRIPTION: Final[Mapping[str, Callable[[Cluster, str, str, int], Expectation]]] = {
    "exists": _Exists,
    "absent": _Absent,
    "connected": _Connected,
    "no-consumer": _NoConsumer,
    "caught-up": lambda cluster, topic, subscription, _: AckedExpectation(cluster, topic, subscription, None),
    "delivered": DeliveredExpectation,
    "acked": AckedExpectation,
}
_TOPIC: Final[Mapping[str, Callable[[Cluster, str, int], Expectation]]] = {
    "exists": _TopicExists,
    "absent": _TopicAbsent,
    "connected": _TopicConnected,
    "no-producer": _NoProducer,
    "produced": Produced,
}
