"""/admin/v2: what schemas must be like, of namespaces and of topics."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.admin.policies.policy import Json, NamespacePolicy, TopicPolicy
from pulsarium.broker.admin.policies.values import BOOL, COMPATIBILITY, DATA, choice
from pulsarium.broker.config.keys import SCHEMA_STRATEGIES
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.reply import done, json_reply

RIGHT = "SCHEMA_COMPATIBILITY_STRATEGY"
STRATEGY = "schema_compatibility_strategy"
ENFORCED = "schema_validation_enforced"
COMPATIBLE = "What a new schema must be compatible with"
VALIDATED = "Whether producers without a schema are refused where there is one"
UNDEFINED = "UNDEFINED"
GET_PUT = ("GET", "PUT")
GET_POST = ("GET", "POST")

OLDER_STRATEGY = choice(
    f"{DATA}.SchemaAutoUpdateCompatibilityStrategy",
    (
        "AutoUpdateDisabled",
        "Backward",
        "Forward",
        "Full",
        "AlwaysCompatible",
        "BackwardTransitive",
        "ForwardTransitive",
        "FullTransitive",
    ),
)
STRATEGY_OF_TOPIC = choice(COMPATIBILITY.java_type, SCHEMA_STRATEGIES)


def read_strategy(call: Call) -> Any:
    """Of a topic, UNDEFINED is none."""
    value = STRATEGY_OF_TOPIC.read(call)
    return None if value == UNDEFINED else value


class TopicStrategy(TopicPolicy):
    """Of a topic, or of its namespace, which has one when it is not UNDEFINED."""

    __slots__ = ()

    def in_force(self, call: Call, kept: Json, namespace: Json) -> Any:
        found = kept.get(STRATEGY) or namespace.get(STRATEGY, UNDEFINED)
        return call.broker.config.schemaCompatibilityStrategy if found == UNDEFINED else found


NAMESPACE_SCHEMAS = (
    NamespacePolicy(
        STRATEGY,
        "schemaCompatibilityStrategy",
        RIGHT,
        COMPATIBLE,
        COMPATIBILITY,
        unset=json_reply(UNDEFINED),
        methods=GET_PUT,
    ),
    NamespacePolicy(
        "schema_auto_update_compatibility_strategy",
        "schemaAutoUpdateCompatibilityStrategy",
        RIGHT,
        "The same, as it was set before",
        OLDER_STRATEGY,
        unset=done(),
        methods=GET_PUT,
    ),
    NamespacePolicy(
        "is_allow_auto_update_schema",
        "isAllowAutoUpdateSchema",
        RIGHT,
        "Whether producers may bring new schemas",
        BOOL,
        unset=json_reply(True),
        methods=GET_POST,
    ),
    NamespacePolicy(
        ENFORCED, "schemaValidationEnforced", RIGHT, VALIDATED, BOOL, unset=json_reply(False), methods=GET_POST
    ),
)
TOPIC_SCHEMAS = (
    TopicStrategy(
        STRATEGY,
        "schemaCompatibilityStrategy",
        RIGHT,
        COMPATIBLE,
        STRATEGY_OF_TOPIC,
        methods=("GET", "PUT", "DELETE"),
        read=read_strategy,
        default=lambda config: config.schemaCompatibilityStrategy,
        is_local=True,
    ),
    TopicPolicy(
        ENFORCED,
        "schemaValidationEnforced",
        RIGHT,
        VALIDATED,
        BOOL,
        unset=json_reply(False),
        methods=GET_POST,
        default=lambda config: False,
        is_local=True,
    ),
)
