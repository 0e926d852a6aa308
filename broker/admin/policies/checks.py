"""Values that are read well and refused all the same."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.admin.policies.policy import Json
from pulsarium.broker.admin.policies.values import BOOKIES, FILTER_NAMES, request_failed
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError, unexpected_body

MOST_BOOKIES = 5  # managedLedgerMaxEnsembleSize, managedLedgerMaxWriteQuorum, managedLedgerMaxAckQuorum
INVALID = "Invalid configuration for autoTopicCreationOverride. the detail is "


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


def check_filters(call: Call, kept: Json, value: Any) -> None:
    """Refuse filters of entries, which nobody brought."""
    if value is None:
        return
    names = [name.strip() for name in value.get(FILTER_NAMES, "").split(",") if name.strip()]
    if not names:
        raise AdminError(400, f"{FILTER_NAMES} can't be empty. To remove entry filters use the remove method.")
    raise AdminError(400, f"Entry filter '{names[0]}' not found")


def check_persistence(call: Call, kept: Json, value: Any) -> None:
    """Refuse numbers of bookies that Pulsar would not have."""
    if value is None:
        raise AdminError(400, "persistence policies should not be null")
    numbers = {word: value[name] for word, name in BOOKIES.items()}
    for word, number in numbers.items():
        if not 0 < number <= MOST_BOOKIES:
            raise AdminError(400, f"Bookkeeper-{word} must be <= {MOST_BOOKIES} and > 0.")
    if list(numbers.values()) != sorted(numbers.values(), reverse=True):
        raise AdminError(400, "Bookkeeper " + " >= ".join(f"{word} ({number})" for word, number in numbers.items()))
