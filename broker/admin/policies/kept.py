"""What is kept of a topic's policies, by the topic that a call names."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.admin.policies.policy import Json, with_value
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.reply import Reply, done
from pulsarium.broker.model.namespace.metadata import GLOBAL
from pulsarium.proto.topic_name import TopicName


def topic_of(call: Call) -> TopicName:
    """The topic of the path, which must exist; partitions have no policies of their own."""
    if not call.broker.config.takes_topic_policies:
        raise AdminError(405, "Topic level policies is disabled, to enable the topic level policy and retry.")
    name = call.topic
    if name.is_partition:
        raise AdminError(412, "Not allowed to set/get topic policy for a partition")
    if not (call.broker.topics.exists(name) or call.broker.metadata.partitions_of(name)):
        raise AdminError(404, f"Topic {name} not found")
    return name


def kept_of(call: Call, name: TopicName, *, is_local: bool = False) -> dict[str, Any]:
    """What is set for a topic, here or, unless `is_local`, for all clusters."""
    kept = call.broker.metadata.topic_policies.get(str(name), {})
    found: dict[str, Any] = kept.get(GLOBAL, {}) if call.flag("isGlobal") and not is_local else kept
    return found


def keep(call: Call, name: TopicName, changed: Json, *, is_local: bool = False) -> Reply:
    """Keep it there."""
    metadata = call.broker.metadata
    policies = {field: value for field, value in changed.items() if value != {}}
    if call.flag("isGlobal") and not is_local:
        policies = with_value(metadata.topic_policies.get(str(name), {}), GLOBAL, policies or None)
    metadata.put_topic_policies(name, policies)
    return done()
