"""Publish the dead letters of a queue consumer, also to a scalable topic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pulsarium.client.consumer.letters import LetterProducer, Letters
from pulsarium.client.consumer.policies import ConsumerDeadLetterPolicy
from pulsarium.client.errors import InvalidConfiguration
from pulsarium.client.message import Message
from pulsarium.client.producer.options import ProducerOptions
from pulsarium.client.scalable.producer import ScalableProducer
from pulsarium.client.topics import full_name, parse
from pulsarium.proto.special_names import DEAD_LETTERS
from pulsarium.proto.topic_name import SCALABLE, SegmentName, TopicName


class ScalableLetters(Letters):
    """Publish messages of segments to other topics."""

    def properties_of(self, message: Message[Any], topic: str) -> dict[str, str]:
        """Return a message's properties, and add its original topic and id. The topic is that of the segment."""
        name = parse(topic)
        return super().properties_of(message, str(SegmentName.of(name).parent) if name.is_segment else topic)

    def _producer(self, options: ProducerOptions[bytes]) -> LetterProducer:
        is_scalable = parse(options.topic).is_scalable
        return ScalableProducer(self._core, options) if is_scalable else super()._producer(options)


def with_dead_letters(policy: ConsumerDeadLetterPolicy, topic: str) -> ConsumerDeadLetterPolicy:
    """Return the policy of a queue consumer of `topic`, with a dead letter topic.

    Raise `InvalidConfiguration` for a retry letter topic, which a queue consumer has no calls for.
    """
    if policy.retry_letter_topic is not None:
        raise InvalidConfiguration("a queue consumer of a scalable topic has no retry letter topic")
    name = parse(topic)
    default = TopicName(SCALABLE, name.tenant, name.namespace, f"{name.local_name}{DEAD_LETTERS}")
    return replace(policy, dead_letter_topic=full_name(policy.dead_letter_topic or str(default)))
