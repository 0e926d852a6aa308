"""Values that are read well and refused all the same."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.admin.policies.policy import Check, Json
from pulsarium.broker.admin.policies.values import request_failed
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError, unexpected_body

INVALID = "Invalid configuration for autoTopicCreationOverride. the detail is "


def at_least_0(text: str) -> Check:
    """Refuse negative numbers."""

    def check(call: Call, kept: Json, value: Any) -> None:
        if value is not None and value < 0:
            raise AdminError(412, text)

    return check


def check_auto_creation(call: Call, kept: Json, value: Any) -> None:
    """Refuse topics of a type that there is not, or of no partitions."""
    if value is None or not value["allowAutoTopicCreation"]:
        return
    kind, partitions = value.get("topicType"), value.get("defaultNumPartitions")
    if kind not in ("partitioned", "non-partitioned"):
        raise AdminError(412, f"{INVALID}Unknown topic type [{'null' if kind is None else kind}]")
    if kind == "non-partitioned":
        if partitions is not None:
            text = "[defaultNumPartitions] is not allowed to be set when the type is non-partition."
            raise AdminError(412, INVALID + text)
        return
    if partitions is None:
        raise AdminError(412, f"{INVALID}[defaultNumPartitions] cannot be null when the type is partitioned.")
    if partitions <= 0:
        raise AdminError(412, f"{INVALID}[defaultNumPartitions] cannot be less than 1 for partition type.")
    limit = call.broker.config.maxNumPartitionsPerPartitionedTopic
    if 0 < limit < partitions:
        raise AdminError(406, f"Number of partitions should be less than or equal to {limit}")


def check_types_of_namespace(call: Call, kept: Json, value: Any) -> None:
    """Refuse null and unknown types, as Pulsar stumbles over them."""
    if value is None or None in value:
        raise request_failed()


def check_types_of_topic(call: Call, kept: Json, value: Any) -> None:
    """The same in the words that topics have for it."""
    if value is None:
        what = 'java.util.Set.forEach(java.util.function.Consumer)" because "subscriptionTypesEnabledSet'
    elif None in value:
        what = 'org.apache.pulsar.client.api.SubscriptionType.name()" because "subscriptionType'
    else:
        return
    raise unexpected_body(f'Cannot invoke "{what}" is null')


def check_message_size(call: Call, kept: Json, value: Any) -> None:
    """Refuse what is larger than the broker takes."""
    if not 0 <= value <= call.broker.config.maxMessageSize:
        text = "topic-level maxMessageSize must be greater than or equal to 0 and must be smaller than that in the "
        raise AdminError(412, f"{text}broker-level")
