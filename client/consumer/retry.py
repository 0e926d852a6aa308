"""`reconsume_later`: messages go through a topic of their own, from which they come again after a delay (PIP-22)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pulsarium.client.consumer.letters import Letters
from pulsarium.client.consumer.options import ConsumerOptions
from pulsarium.client.consumer.policies import ConsumerDeadLetterPolicy
from pulsarium.client.errors import InvalidMessage
from pulsarium.client.message import Message
from pulsarium.client.topics import full_name, parse

MAX_RECONSUME_TIMES = 16


def with_topics(options: ConsumerOptions[Any]) -> ConsumerOptions[Any]:
    """Options that name the topics of letters, as far as they are the same for all topics, and subscribe to those that
    come again. InvalidTopicName."""
    policy = options.dead_letter_policy
    if policy is not None:
        dead = policy.dead_letter_topic and full_name(policy.dead_letter_topic)
        retry = policy.retry_letter_topic and full_name(policy.retry_letter_topic)
        policy = replace(policy, dead_letter_topic=dead, retry_letter_topic=retry)
        options = replace(options, dead_letter_policy=policy)
    topic = options.topic
    if not options.retry_enable:
        return options
    policy = policy or ConsumerDeadLetterPolicy(MAX_RECONSUME_TIMES)
    if not isinstance(topic, str | list | tuple):
        return replace(options, dead_letter_policy=policy)  # of a pattern each topic has its own
    topics = [full_name(one) for one in ([topic] if isinstance(topic, str) else topic)]
    policy = of_topic(policy, min(topics), options.subscription_name)
    return replace(options, dead_letter_policy=policy, topic=[*topics, policy.retry_letter_topic or ""])


def of_topic(policy: ConsumerDeadLetterPolicy, topic: str, subscription: str) -> ConsumerDeadLetterPolicy:
    """The policy with topics named after this one where it names none."""
    return replace(
        policy,
        dead_letter_topic=policy.dead_letter_topic or f"{topic}-{subscription}-DLQ",
        retry_letter_topic=policy.retry_letter_topic or f"{topic}-{subscription}-RETRY",
    )


async def send_back(
    letters: Letters,
    policy: ConsumerDeadLetterPolicy,
    message: Message[Any],
    delay: float,
    properties: Mapping[str, str],
) -> None:
    """Put a message where it comes again after `delay` seconds, or among the dead letters if it came too often.

    Raises what the producer does.
    """
    assert policy.dead_letter_topic is not None
    assert policy.retry_letter_topic is not None
    origin = str(parse(message.topic_name()).partitioned_name)
    all_properties = letters.properties_of(message, origin) | dict(properties)
    before = all_properties.get("RECONSUMETIMES", "0")
    if not before.isdecimal():
        raise InvalidMessage(f"{message.message_id()}: RECONSUMETIMES is {before!r}")
    times = int(before) + 1
    all_properties["RECONSUMETIMES"] = str(times)
    all_properties["DELAY_TIME"] = str(int(max(0.0, delay) * 1000))
    if times > policy.max_redeliver_count:
        name = policy.initial_subscription_name
        await letters.send(policy.dead_letter_topic, message, all_properties, initial_subscription_name=name)
    else:
        after = delay if delay > 0 else None
        await letters.send(policy.retry_letter_topic, message, all_properties, deliver_after=after)
