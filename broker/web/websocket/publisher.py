"""Publish to a topic or to all its partitions."""

from __future__ import annotations

import random

from pulsarium.broker.web.websocket.link import BrokerFailure, BrokerLinks
from pulsarium.broker.web.websocket.options import ProducerOptions
from pulsarium.broker.web.websocket.topic_producer import Opened, OutgoingMessage, TopicProducer
from pulsarium.proto.routing import java_hash, partition_murmur3
from pulsarium.proto.topic_name import TopicName


class SocketPublisher:
    """The producers of a topic's partitions, and the choice among them."""

    def __init__(self, links: BrokerLinks, topic: TopicName, options: ProducerOptions) -> None:
        self._links = links
        self._topic = topic
        self._options = options
        self._targets: list[TopicProducer] = []
        self._turn = random.randrange(2**31)  # producers shall not all begin with the same partition

    @property
    def waiting_bytes(self) -> int:
        """Return the size of messages without a receipt."""
        return sum(each.waiting_bytes for each in self._targets)

    def open(self, opened: Opened) -> None:
        """Create the producers. `opened` hears of success or of the first error."""

        def counted(partitions: int | BrokerFailure) -> None:
            if isinstance(partitions, BrokerFailure):
                opened(partitions)
                return
            names = [self._topic.partition(index) for index in range(partitions)] or [self._topic]
            self._targets = [TopicProducer(self._links, name, self._options) for name in names]
            one = all_opened(len(names), opened)
            for target in self._targets:
                target.open(one)

        self._links.partitions(str(self._topic), counted)

    def send(self, message: OutgoingMessage) -> None:
        """Publish a message to the partition of its key, or to the next one."""
        count, metadata = len(self._targets), message.metadata
        if metadata.HasField("partition_key"):
            hash_of = partition_murmur3 if self._options.murmur3 else java_hash
            index = hash_of(metadata.partition_key)
        else:
            if self._options.round_robin and not self._targets[self._turn % count].has_batch:
                self._turn += 1
            index = self._turn
        self._targets[index % count].send(message)

    def close(self) -> None:
        for target in self._targets:
            target.close()


def all_opened(count: int, opened: Opened) -> Opened:
    """Return a function for `count` openings, which calls `opened` once: after the last one, or with an error."""
    left, told = count, False

    def one(failed: BrokerFailure | None) -> None:
        nonlocal left, told
        left -= 1
        if not told and (failed is not None or not left):
            told = True
            opened(failed)

    return one
